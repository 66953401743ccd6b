package fitted

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// Level is the probability of being wrong above which a report has a doubt.
const Level = 0.01

// View is a posterior on its way into a report.
type View struct {
	*Setup
	Posterior *gmm.Posterior
	Mean      gmm.Mixture // of the posterior
	// What a sampler adds that has it:
	Published *Published // the method that made it as a paper has it; nil for mixture
	Options   any        // what the plan says under method
	Accepted  bool       // draws are what Algorithm 2 accepted, and no posterior
	Called    string     // what draws are called: posterior, or sample, as of those that are none
	// Doubted has the reasons against the posterior, each with its evidence behind a colon.
	Doubted []string
}

// NewView is one of a sample.
func NewView(s *Setup, p *gmm.Posterior) View {
	return View{Setup: s, Posterior: p, Mean: p.Mean(), Called: "sample"}
}

// Published says which method made a model, and by which of its algorithms.
type Published struct {
	Method    string `json:"method"`
	Algorithm string `json:"algorithm,omitempty"`
}

// ModelParameter is one number of the mixture, with the interval that holds it
// with a probability of 90 %.
type ModelParameter struct {
	Component int     `json:"component"` // from 1
	Name      string  `json:"name"`      // weight, mean of …, standard deviation of …
	Mean      float64 `json:"mean"`
	Low       float64 `json:"low_90"`
	High      float64 `json:"high_90"`
}

// parameters lists what people read of a posterior: of each component its weight, its means, and its standard
// deviations.
func (v *View) parameters() (all []ModelParameter) {
	p, values := v.Posterior, make([]float64, len(v.Posterior.Draws))
	add := func(k int, name string, value func(gmm.Mixture) float64) {
		mean := 0.0
		for i, m := range p.Draws {
			values[i] = value(m)
			mean += p.Weights[i] * values[i]
		}
		all = append(all, ModelParameter{k + 1, name, mean, gmm.Quantile(values, p.Weights, 0.05),
			gmm.Quantile(values, p.Weights, 0.95)})
	}
	for k := range v.Prior.Components() {
		add(k, "weight", func(m gmm.Mixture) float64 { return m.Weights[k] })
		for i, name := range v.Names {
			add(k, "mean of "+name, func(m gmm.Mixture) float64 { return m.Mean(k)[i] })
		}
		for i, name := range v.Names {
			add(k, "standard deviation of "+name, func(m gmm.Mixture) float64 { return math.Sqrt(m.Cov(k)[i*m.Dim+i]) })
		}
	}
	return all
}

// Components adds the posterior means of weights and of component means.
func (v *View) Components(out map[string]float64) {
	for k := range v.Prior.Components() {
		out[fmt.Sprintf("weight/%d", k+1)] = v.Mean.Weights[k]
		for i, name := range v.Names {
			out[fmt.Sprintf("mean/%d/%s", k+1, name)] = v.Mean.Mean(k)[i]
		}
	}
}

// Overview shows how many rows of each site the mixture was learned from.
func (v *View) Overview(sites []figure.SiteSubjects) figure.Section {
	section := method.Overview(v.Plan, sites)
	f := section.Items[0].Figure
	f.Title = "Rows by site"
	f.Caption = "A bar is as long as the site has rows with all features. d is the number of features, n that of rows."
	if v.Plan.Privacy.Differential() { // nobody has paid for the number of the others
		f.Caption += " Rows that lack a feature take no part, and only their sites know how many these are."
		f.Caption += " Counts hold privacy noise: ± is two standard deviations of it, and a count that noise took " +
			"below 0 stands at 0."
	} else {
		f.Caption += " Others take no part."
	}
	f.Alt = "For every site, how many rows the mixture was learned from."
	return section
}

// posteriorCSV writes a line for every draw: its weight, then π, μ and the lower
// triangle of every Σ.
func (v *View) posteriorCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"draw", "sample_weight"}
	for k := range v.Prior.Components() {
		head = append(head, fmt.Sprintf("weight_%d", k+1))
	}
	for k := range v.Prior.Components() {
		for _, name := range v.Names {
			head = append(head, fmt.Sprintf("mean_%d/%s", k+1, name))
		}
	}
	for k := range v.Prior.Components() {
		for i, a := range v.Names {
			for _, b := range v.Names[:i+1] {
				head = append(head, fmt.Sprintf("covariance_%d/%s/%s", k+1, a, b))
			}
		}
	}
	if err := w.Write(head); err != nil {
		return nil, err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for i, m := range v.Posterior.Draws {
		line := []string{strconv.Itoa(i + 1), number(v.Posterior.Weights[i])}
		for _, x := range m.Weights {
			line = append(line, number(x))
		}
		for _, x := range m.Means {
			line = append(line, number(x))
		}
		for k := range m.Weights {
			for i := range m.Dim {
				for _, x := range m.Cov(k)[i*m.Dim:][:i+1] {
					line = append(line, number(x))
				}
			}
		}
		if err := w.Write(line); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// ComponentsSection shows the mixture that was found, and how surely.
func (v *View) ComponentsSection() figure.Section {
	section := figure.Section{ID: "components", Title: "The mixture",
		Lead: fmt.Sprintf("Each component with the means of its parameters over the %s, and the intervals that hold "+
			"90 %% of it. Components have no names of their own: they were matched over the sample, and their numbers "+
			"mean nothing.", v.Called)}
	if n := v.Posterior.Size; n > 0 && n < leastSize {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true,
			Title: fmt.Sprintf("This sample is worth %.0f draws: do not rely on it", n),
			Text: "Too few of the parameters that were drawn carry the weight. Means are rough, and intervals are " +
				"too narrow. Try fewer components or features, or more draws (method.draws)."}})
	}
	section.Items = append(section.Items, figure.Item{Figure: v.pairsFigure()},
		figure.Item{Table: v.ComponentTable(fmt.Sprintf("Means over the %s, and the intervals that hold nine tenths "+
			"of it.", v.Called))})
	return section
}

// leastSize is an effective sample size below which nothing should be reported: see
// [gmm.EffectiveSize].
const leastSize = 20

// ComponentTable has a row for each component and feature, with means and standard deviations
// beside each other.
func (v *View) ComponentTable(caption string) *figure.Table {
	t := &figure.Table{ID: "components", Title: "Components", Caption: caption +
		" model/posterior.csv has every draw, model/model.json every covariance."}
	column := func(name string) *figure.Column { return &figure.Column{Name: name} }
	component, weight, feature, mean, sd := column("component"), column("weight"), column("feature"), column("mean"),
		column("standard deviation")
	weight.Format = figure.Percent
	put := func(c *figure.Column, x ModelParameter) {
		c.Numbers, c.Low, c.High = append(c.Numbers, x.Mean), append(c.Low, x.Low), append(c.High, x.High)
	}
	d := len(v.Names)
	for one := range slices.Chunk(v.parameters(), 1+2*d) {
		for i, name := range v.Names {
			component.Text, feature.Text = append(component.Text, strconv.Itoa(one[0].Component)),
				append(feature.Text, name)
			put(weight, one[0])
			put(mean, one[1+i])
			put(sd, one[1+d+i])
		}
	}
	t.Columns = []figure.Column{*component, *weight, *feature, *mean, *sd}
	if v.Prior.Components() == 1 { // the only one has all the weight
		t.Columns = slices.Delete(t.Columns, 1, 2)
	}
	return t
}

func componentName(k int) string { return fmt.Sprintf("component %d", k+1) }

// inPairs is a chart of all pairs, which ends where the plan says that a feature does.
func inPairs(s *Setup, m gmm.Mixture) figure.Pairs {
	c := figure.Pairs{Low: s.Lo, High: s.Hi}
	for _, v := range s.Plan.Views {
		for _, f := range v.Features {
			name := f.Name
			if f.Unit != "" {
				name += " (" + f.Unit + ")"
			}
			c.Features = append(c.Features, name)
		}
	}
	for k, w := range m.Weights {
		c.Groups = append(c.Groups, figure.Normal{Name: componentName(k), Share: w, Mean: m.Mean(k), Cov: m.Cov(k)})
	}
	return c
}

// pairsFigure draws the components in all pairs of features.
func (v *View) pairsFigure() *figure.Figure {
	return &figure.Figure{ID: "pairs", Title: "Components in all pairs of features", Chart: inPairs(v.Setup, v.Mean),
		Caption: "The mark is a component's mean; the ellipses hold half and nine tenths of its rows, if they are as " +
			"normal as the mixture takes them to be. On the diagonal each component's density, as large as its share " +
			"of the rows.",
		Alt: "Ellipses of each component's rows in all pairs, and each component's density in every one."}
}

// shared is what sites get back.
type shared struct {
	Weights wire.Vector `cbor:"weights"`
	Means   wire.Vector `cbor:"means"`
	Covs    wire.Vector `cbor:"covariances"`
}

// Share encodes the mixture that sites get back; an empty one where there is none.
func Share(m gmm.Mixture) ([]byte, error) {
	return wire.Marshal(shared{m.Weights, m.Means, m.Covs})
}

// open checks it: whoever asks may send anything.
func (m *shared) open(s *Setup) (x gmm.Mixture, err error) {
	x = gmm.Mixture{Dim: len(s.Names), Weights: m.Weights, Means: m.Means, Covs: m.Covs}
	if k := s.Prior.Components(); len(m.Weights) != k {
		return x, fmt.Errorf("a mixture of %d components where the plan has %d", len(m.Weights), k)
	}
	return x, x.Check()
}

// Found says in words what a mixture is.
func (v *View) Found() string {
	n := v.Prior.Components()
	if n == 1 {
		return fmt.Sprintf("The rows of all sites were described as one group in %s.",
			figure.Plural(len(v.Names), "feature"))
	}
	shares := make([]string, 0, n)
	for _, k := range gmm.BySize(v.Mean.Weights) {
		shares = append(shares, fmt.Sprintf("%.0f %%", 100*v.Mean.Weights[k]))
	}
	if len(shares) > 4 {
		shares = []string{shares[0], "down to " + shares[len(shares)-1]}
	}
	return fmt.Sprintf("The rows of all sites were described as a mixture of %d components, in %s. They hold %s of "+
		"the rows.",
		n, figure.Plural(len(v.Names), "feature"), strings.Join(shares, ", "))
}

// seriously is the share of subjects who lack a feature from which on a report warns: wrong by
// as much can a weight be, if all of them belong to one component.
const seriously = 0.05

// LeftOut warns that so many of all subjects take no part because they lack a feature; nil if
// those are too few to matter.
func LeftOut(lacking, all int) *figure.Note {
	if lacking == 0 || float64(lacking) < seriously*float64(all) {
		return nil
	}
	return &figure.Note{Warning: true, Title: "Subjects who lack a feature take no part",
		Text: fmt.Sprintf("%d of %d subjects lack a feature, and the mixture is of the others. Where that goes with "+
			"the component that they belong to, weights are wrong by it, and means and standard deviations can be. "+
			"Leave out of the plan what many lack.", lacking, all)}
}
