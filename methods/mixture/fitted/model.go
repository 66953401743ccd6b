// Package fitted is a fitted mixture: [LoadModel] reads model.json, a [Model] describes itself and transforms rows, as
// package method asks, a [View] is a posterior on its way into files and reports, [Own] what a site's own people see.
package fitted

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/problem"
)

// ModelFormat names the format of model.json.
const ModelFormat = "parley/graffl-model/1"

// Model is what a study found, as model.json: the sample itself is beside it, in posterior.csv.
type Model struct {
	Format string `json:"format"` // ModelFormat
	// Published is the method that made it as a paper has it; nil for mixture.
	Published *Published `json:"published,omitempty"`
	// what wrote it, if it was older: a model does not depend on that
	Program string             `json:"program,omitempty"`
	Plan    string             `json:"plan_sha256"`
	Study   string             `json:"study"`
	Seed    uint64             `json:"seed"`
	Private bool               `json:"private"`           // made from noised releases alone
	Options any                `json:"options,omitempty"` // what its plan said under method
	Views   []method.ModelView `json:"views"`
	Prior   gmm.Prior          `json:"prior"`
	Mean    gmm.Mixture        `json:"mean"` // of the posterior, or of what was accepted; components matched
	Summed  []ModelParameter   `json:"parameters"`
	Doubts  []string           `json:"doubts,omitempty"` // reasons against the mixture
	// Sample has some of the posterior's draws, which stand for all, for what is said of single
	// rows. Nil of Algorithm 2 as published, which has no posterior.
	Sample *gmm.Posterior `json:"sample,omitempty"`
}

// Files are those of the model.
func (v *View) Files() ([]method.File, error) {
	digest, err := v.Plan.Digest()
	if err != nil {
		return nil, err
	}
	m := &Model{Format: ModelFormat, Published: v.Published, Plan: digest.String(), Study: v.Plan.Name,
		Seed:    v.Plan.Seed,
		Private: v.Plan.Privacy.Differential(), Options: v.Options, Views: method.ModelViews(v.Plan), Prior: v.Prior,
		Mean: v.Mean, Summed: v.parameters(), Doubts: v.Doubted}
	if !v.Accepted {
		m.Sample = kept(v.Posterior)
	}
	data, err := method.EncodeModel(m)
	if err != nil {
		return nil, err
	}
	posterior, err := v.posteriorCSV()
	if err != nil {
		return nil, err
	}
	return []method.File{{Name: "model/model.json", Data: data},
		{Name: "model/posterior.csv", Data: posterior}}, nil
}

// LoadModel reads model.json. A model of another format or version is refused by
// name, and whatever else is wrong with it is an error.
func LoadModel(data []byte) (*Model, error) {
	return method.DecodeModel(data, (*Model).check, ModelFormat)
}

func (m *Model) check() error {
	d := 0
	for _, v := range m.Views {
		d += len(v.Columns)
	}
	if m.Mean.Dim != d || m.Prior.Dim() != d || m.Mean.Components() != m.Prior.Components() {
		return fmt.Errorf("a mixture of %d components in %d dimensions, a prior of %d in %d, of %d features",
			m.Mean.Components(), m.Mean.Dim, m.Prior.Components(), m.Prior.Dim(), d)
	}
	err := cmp.Or(m.Mean.Check(), m.Prior.Check())
	if err == nil && m.Sample != nil {
		err = m.Sample.Check(m.Mean.Components(), m.Mean.Dim)
	}
	if err != nil {
		return err
	}
	for i, p := range m.Summed {
		if p.Component < 1 || p.Component > m.Mean.Components() || math.IsNaN(p.Mean) || !(p.Low <= p.High) {
			return fmt.Errorf("parameter %d is of component %d, from %v to %v", i+1, p.Component, p.Low, p.High)
		}
	}
	return nil
}

// Method implements [method.Model].
func (m *Model) Method() string {
	if m.Published != nil {
		return m.Published.Method
	}
	return Name
}

// accepted says whether the model is of what Algorithm 2 accepted.
func (m *Model) accepted() bool { return m.Sample == nil && m.Published != nil }

// Schema implements [method.Model].
func (m *Model) Schema() dataset.Schema { return method.ViewsSchema(m.Views) }

// Summary implements [method.Summariser]. Of the parameters it gives the first.
func (m *Model) Summary(top int) (*method.Account, error) {
	shown := m.Summed[:min(max(top, 0), len(m.Summed))]
	protection := "none: fitted from exact releases"
	if m.Private {
		protection = "differential: fitted from noised releases"
	}
	by := m.Method()
	if m.Published != nil && m.Published.Algorithm != "" {
		by += ", " + m.Published.Algorithm
	}
	facts := []figure.Fact{{Name: "study", Value: m.Study}, {Name: "method", Value: by},
		{Name: "components", Value: strconv.Itoa(m.Mean.Components())}, {Name: "privacy", Value: protection},
		{Name: "plan", Value: m.Plan}}
	if m.accepted() {
		facts = append(facts, figure.Fact{Name: "not a posterior",
			Value: "what the published algorithm accepts does not contract to it"})
	}
	table := figure.Table{ID: "components", Title: "Parameters",
		Caption: "Mean, and the ends of the interval that holds 90 %.",
		Columns: figure.TextColumns("component", "parameter", "mean", "5 %", "95 %")}
	for _, p := range shown {
		table.Add(strconv.Itoa(p.Component), p.Name, p.Mean, p.Low, p.High)
	}
	short := *m
	short.Summed, short.Sample = shown, nil
	return &method.Account{Facts: facts, Tables: []figure.Table{table}, Value: short}, nil
}

// Cautions implements [method.Cautious].
func (m *Model) Cautions() (notes method.Notes) {
	for _, doubt := range m.Doubts {
		notes.Add(problem.Problem{Where: "mixture", What: doubt, Hint: "its report says more"})
	}
	return notes
}

// Predictive is what the model says of single rows.
func (m *Model) Predictive() (*gmm.Predictive, error) {
	switch {
	case m.accepted():
		return nil, problem.Problem{Where: "method", What: "what the published algorithm accepts is no posterior, " +
			"and says nothing of single rows", Hint: "a study of method mixture"}
	case m.Sample == nil:
		return nil, problem.Problem{Where: "sample", What: "the model keeps no part of the posterior",
			Hint: "parley model refit, which asks no site, or another run"}
	}
	return gmm.NewPredictive(m.Sample), nil
}

// Transform implements [method.Transformer]: by which component each subject may have been made. The columns are id,
// values (how many features were measured), component_1 to component_K (probabilities), sd_1 to sd_K (their standard
// deviations over the posterior), log_density and tail; see [gmm.Row].
func (m *Model) Transform(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.TransformOptions) (int, method.Notes, error) {
	if opts.Site != "" || opts.NewSite {
		return 0, nil, problem.Problem{Where: "--site", What: "a mixture is of all sites together, and takes no site " +
			"for another", Hint: "leave it out"}
	}
	of, err := m.Predictive()
	if err != nil {
		return 0, nil, err
	}
	header := []string{"id", "values"}
	for _, name := range []string{"component_", "sd_"} {
		for k := range of.Components() {
			header = append(header, name+strconv.Itoa(k+1))
		}
	}
	w := csv.NewWriter(to)
	w.Write(append(header, "log_density", "tail")) // an error comes back from Flush
	widths := make([]int, len(m.Views))
	for i, v := range m.Views {
		widths[i] = len(v.Columns)
	}
	own, n := newBeside(m.Mean, m.names()), 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return n, nil, errors.Join(err, flush(w))
		}
		x := observed(row, widths)
		says, err := of.Of(x)
		if err != nil {
			return n, nil, errors.Join(err, flush(w))
		}
		own.add(x, says)
		line := figure.Exact([]string{row.ID, strconv.Itoa(says.Values)},
			append(append(says.Probability, says.SD...), says.LogDensity, says.Tail)...)
		if err := w.Write(line); err != nil {
			return n, nil, err
		}
		n++
	}
	var notes method.Notes
	for _, note := range own.notes() {
		notes.Add(problem.Problem{Where: "subjects", What: note.Title, Hint: note.Text})
	}
	return n, notes, flush(w)
}

func flush(w *csv.Writer) error {
	w.Flush()
	return w.Error()
}

// names are those of what the mixture is of.
func (m *Model) names() (names []string) {
	for _, v := range m.Views {
		for _, c := range v.Columns {
			names = append(names, c.Name)
		}
	}
	return names
}

const (
	// enoughBeside is of how many rows is said how they lie beside a mixture.
	enoughBeside = 30
	// farTail is a tail that one row in a thousand has by chance.
	farTail = 0.001
	// movedFrom is how far rows lie from their components on average, in standard deviations, before it
	// is said: less hardly moves a row to another component.
	movedFrom = 0.25
	// surely is in how many standard errors something differs that is said of rows.
	surely = 4
)

// beside adds up how rows lie beside a mixture of others: by how much they are off from their
// components, how many of them are too far from all, and how they divide.
type beside struct {
	m        gmm.Mixture
	names    []string
	n, far   float64
	expected []float64       // of each component, the sum of the rows' probabilities
	moved    []method.Values // of each feature, Σ_k r_k (x − μ_k)/σ_k
}

func newBeside(m gmm.Mixture, names []string) *beside {
	return &beside{m: m, names: names, expected: make([]float64, m.Components()), moved: make([]method.Values, m.Dim)}
}

// add takes in a row, and what the mixture says of it.
func (b *beside) add(x []float64, says gmm.Row) {
	if says.Values == 0 {
		return
	}
	b.n++
	for k, r := range says.Probability {
		b.expected[k] += r
	}
	if says.Tail < farTail { // a gross error says nothing of where others are
		b.far++
		return
	}
	for j, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		off := 0.0
		for k, r := range says.Probability {
			off += r * (v - b.m.Mean(k)[j]) / math.Sqrt(b.m.Cov(k)[j*b.m.Dim+j])
		}
		b.moved[j].Add(off)
	}
}

// notes say where rows are not as the mixture has them, by more than chance.
func (b *beside) notes() (all []figure.Note) {
	if b.n < enoughBeside {
		return nil
	}
	var moved []string
	for j, v := range b.moved {
		if se := math.Sqrt(v.Squares / max(1, v.N-1) / v.N); v.N >= enoughBeside &&
			math.Abs(v.Mean) > max(movedFrom, surely*se) {
			moved = append(moved, fmt.Sprintf("%s by %+.2f", b.names[j], v.Mean))
		}
	}
	if moved != nil {
		all = append(all, figure.Note{Warning: true, Title: "These subjects lie beside the mixture's components: " +
			strings.Join(moved, ", ") + " standard deviations on average",
			Text: "The mixture is of all sites together and has the same components everywhere. Where a site " +
				"measures otherwise, or its subjects differ, probabilities of components are wrong there, and " +
				"components that all sites share are wider than at any of them. Look for other units, devices or " +
				"rules of admission."})
	}
	if b.far > 3*farTail*b.n && (distuv.Binomial{N: b.n, P: farTail}).Survival(b.far-1) < Level {
		all = append(all, figure.Note{Warning: true,
			Title: fmt.Sprintf("%.0f of %.0f subjects lie farther from every component than one in %.0f would", b.far,
				b.n, 1/farTail),
			Text: "For them the probabilities of components say only which is the least far. Look for errors and " +
				"codes for missing values. If there are none, the components' tails are heavier than those of normal " +
				"distributions, or there are more components."})
	}
	return all
}

// Draws that a model keeps: most, or as many as have keptNumbers together, but fewest.
const (
	mostKept, fewestKept = 64, 16
	keptNumbers          = 100_000
)

// kept is the part of a posterior that a model keeps.
func kept(p *gmm.Posterior) *gmm.Posterior {
	k, d := p.Draws[0].Components(), p.Draws[0].Dim
	return p.Thin(min(max(keptNumbers/(k*(1+d+d*d)), fewestKept), mostKept))
}
