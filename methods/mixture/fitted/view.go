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

// ModelParameter is one number of the mixture, with the interval that holds it with a probability of 90 %.
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
		f.Caption += " Rows that lack a feature take no part, and only their sites know how many these are. Counts " +
			"hold privacy noise: ± is one standard deviation of it, and a count that noise took below 0 stands at 0."
	} else {
		f.Caption += " Others take no part."
	}
	f.Alt = "For every site, how many rows the mixture was learned from."
	return section
}

// posteriorCSV writes a line for every draw: its weight, then π, μ and the lower triangle of every Σ.
func (v *View) posteriorCSV() ([]byte, error) {
	var weights, means, covariances []string
	for k := range v.Prior.Components() {
		weights = append(weights, fmt.Sprintf("weight_%d", k+1))
		for i, name := range v.Names {
			means = append(means, fmt.Sprintf("mean_%d/%s", k+1, name))
			for _, other := range v.Names[:i+1] {
				covariances = append(covariances, fmt.Sprintf("covariance_%d/%s/%s", k+1, name, other))
			}
		}
	}
	lines := [][]string{slices.Concat([]string{"draw", "sample_weight"}, weights, means, covariances)}
	for i, m := range v.Posterior.Draws {
		numbers := slices.Concat([]float64{v.Posterior.Weights[i]}, m.Weights, m.Means)
		for k := range m.Weights {
			for i := range m.Dim {
				numbers = append(numbers, m.Cov(k)[i*m.Dim:][:i+1]...)
			}
		}
		lines = append(lines, figure.Exact([]string{strconv.Itoa(i + 1)}, numbers...))
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(lines)
	return b.Bytes(), err
}

// ComponentsSection shows the mixture that was found, and how surely.
func (v *View) ComponentsSection() figure.Section {
	return figure.Section{ID: "components", Title: "The mixture",
		Lead: fmt.Sprintf("Each component with the means of its parameters over the %s, and the intervals that hold "+
			"90 %% of it. Components have no names of their own: they were matched over the sample, and their numbers "+
			"mean nothing.", v.Called),
		Items: []figure.Item{{Figure: v.pairsFigure()}, {Table: v.ComponentTable(fmt.Sprintf("Means over the %s, and "+
			"the intervals that hold nine tenths of it.", v.Called))}}}
}

// ComponentTable has a row for each component and feature, with means and standard deviations beside each other.
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

// openShared reads and checks it: whoever asks may send anything.
func (s *Setup) openShared(data []byte) (m gmm.Mixture, of *gmm.Predictive, err error) {
	var x shared
	if err = wire.Unmarshal(data, &x); err != nil {
		return m, nil, err
	}
	m = gmm.Mixture{Dim: len(s.Names), Weights: x.Weights, Means: x.Means, Covs: x.Covs}
	if k := s.Prior.Components(); len(m.Weights) != k {
		return m, nil, fmt.Errorf("a mixture of %d components where the plan has %d", len(m.Weights), k)
	}
	return m, gmm.NewPredictive(&gmm.Posterior{Draws: []gmm.Mixture{m}, Weights: []float64{1}}), m.Check()
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
