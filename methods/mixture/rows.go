package mixture

import (
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
		return nil, problem.Problem{Where: "method", What: "what the published algorithm accepts is no posterior, and says nothing of single rows", Hint: "a study of method graffl"}
	case m.Sample == nil:
		return nil, problem.Problem{Where: "sample", What: "the model keeps no part of the posterior", Hint: "parley model refit, which asks no site, or another run"}
	}
	return gmm.NewPredictive(m.Sample)
}

// Transform implements [method.Transformer]: by which component each subject may have been made.
// The columns are id, values (how many features were measured), component_1 to component_K
// (probabilities), sd_1 to sd_K (their standard deviations over the posterior), log_density and
// tail; see [gmm.Row].
func (m *Model) Transform(ctx context.Context, data dataset.Source, to io.Writer, opts method.TransformOptions) (int, method.Notes, error) {
	switch {
	case opts.Covariance:
		return 0, nil, problem.Problem{Where: "--covariance", What: "a mixture has no factors, and probabilities of components add up to 1", Hint: "leave it out: standard deviations are written"}
	case opts.Site != "" || opts.NewSite:
		return 0, nil, problem.Problem{Where: "--site", What: "a mixture is of all sites together, and takes no site for another", Hint: "leave it out"}
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
		line := []string{row.ID, strconv.Itoa(says.Values)}
		for _, v := range append(append(says.Probability, says.SD...), says.LogDensity, says.Tail) {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
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
		if se := math.Sqrt(v.Squares / max(1, v.N-1) / v.N); v.N >= enoughBeside && math.Abs(v.Mean) > max(movedFrom, surely*se) {
			moved = append(moved, fmt.Sprintf("%s by %+.2f", b.names[j], v.Mean))
		}
	}
	if moved != nil {
		all = append(all, figure.Note{Warning: true, Title: "These subjects lie beside the mixture's components: " + strings.Join(moved, ", ") + " standard deviations on average",
			Text: "The mixture is of all sites together and has the same components everywhere. Where a site measures otherwise, or its subjects differ, probabilities of components are wrong there, and components that all sites share are wider than at any of them. Look for other units, devices or rules of admission."})
	}
	if b.far > 3*farTail*b.n && (distuv.Binomial{N: b.n, P: farTail}).Survival(b.far-1) < Level {
		all = append(all, figure.Note{Warning: true, Title: fmt.Sprintf("%.0f of %.0f subjects lie farther from every component than one in %.0f would", b.far, b.n, 1/farTail),
			Text: "For them the probabilities of components say only which is the least far. Look for errors and codes for missing values. If there are none, the components' tails are heavier than those of normal distributions, or there are more components."})
	}
	return all
}
