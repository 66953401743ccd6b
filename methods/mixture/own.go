package mixture

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// Own shows a site where its own rows lie in the mixture that it gets back. It never leaves.
func Own(ctx context.Context, s *Setup, data []byte, rows dataset.Source) (*method.Result, error) {
	model := new(shared)
	if err := wire.Unmarshal(data, model); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	m, err := model.open(s)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return ownResult(ctx, s, m, rows)
}

func ownResult(ctx context.Context, s *Setup, m gmm.Mixture, data dataset.Source) (*method.Result, error) {
	of, err := gmm.NewPredictive(&gmm.Posterior{Draws: []gmm.Mixture{m}, Weights: []float64{1}})
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	own, logLik := newBeside(m, s.Names), 0.0
	columns := make([]figure.Numbers, len(s.Names))
	x := make([]float64, len(s.Names))
	rows, left := 0, 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !Complete(row, x) {
			left++
			continue
		}
		rows++
		says, err := of.Of(x)
		if err != nil {
			return nil, fmt.Errorf("the shared model: %w", err)
		}
		own.add(x, says)
		logLik += says.LogDensity
		for i, v := range x {
			columns[i] = append(columns[i], v)
		}
	}
	r := &method.Result{Metrics: map[string]float64{"subjects": float64(rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here", Value: figure.Count.Text(float64(rows))}}}
	verdicts := own.notes()
	if note := leftOut(left, rows+left); note != nil {
		verdicts = append(verdicts, *note)
	}
	r.Sections = figure.Verdicts(verdicts)
	if left > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "left out: a feature is missing", Value: figure.Count.Text(float64(left))})
	}
	if rows == 0 {
		return r, nil
	}
	if !math.IsInf(logLik, 0) && !math.IsNaN(logLik) { // as it is of gross errors
		r.Metrics["log_density_per_subject"] = logLik / float64(rows)
	}
	section := figure.Section{ID: "own", Title: "Your subjects in the shared mixture", Lead: "Made at this site from its own rows; it does not leave. The mixture is of all sites together: a component that no row here belongs to is one that other sites know of."}
	for _, f := range ownFigures(s, m, columns, own.expected) {
		section.Items = append(section.Items, figure.Item{Figure: f})
	}
	section.Items = append(section.Items, figure.Item{Figure: &figure.Figure{ID: "own-components", Title: "How many of your subjects belong to each component",
		Caption: "Each subject counts in parts, by the probability that each component made it.",
		Alt:     "Bars of the expected number of this site's subjects in each component.",
		Chart:   figure.Bars{X: figure.Axis{Label: "expected number of subjects"}, Labels: componentNames(m.Components()), Values: own.expected}}})
	r.Sections = append(r.Sections, section)
	return r, nil
}

// ownFigures draw the density of the site's rows, given by column, with the shared
// components over it.
func ownFigures(s *Setup, m gmm.Mixture, columns []figure.Numbers, expected figure.Numbers) []*figure.Figure {
	if len(columns) == 1 {
		return []*figure.Figure{ownHistogram(s, m, columns[0], expected)}
	}
	labels := s.Labels()
	if len(columns) > 2 {
		chart := inPairs(s, m)
		chart.Values = columns
		return []*figure.Figure{{ID: "own-pairs", Title: "Your rows, and the shared components", Chart: chart,
			Caption: "Grey is the density of this site's rows, smoothed, and on the diagonal how many there are; marks, ellipses and curves are the components of all sites' mixture, which hold half and nine tenths of their rows. Where the grey is elsewhere, your subjects are not those of the others.",
			Alt:     "Density of this site's rows in all pairs, with an ellipse and a mark for each shared component."}}
	}
	c := figure.Contours{X: figure.Axis{Label: labels[0]}, Y: figure.Axis{Label: labels[1]}, Groups: groupsIn(m, 0, 1), Subject: true,
		XAt: over(m, 0, columns[0]), YAt: over(m, 1, columns[1])}
	c.Panels = []figure.Panel{{Legend: "density of your rows", Values: figure.KernelDensity(columns[0], columns[1], c.XAt, c.YAt)}}
	return []*figure.Figure{{ID: "own-pair-1-2", Title: fmt.Sprintf("Your rows in %s and %s, and the shared components", s.Names[0], s.Names[1]), Chart: c,
		Caption: "Grey is the density of this site's rows, smoothed; marks and ellipses are the components of all sites' mixture, with half (solid) and nine tenths (dashed) of their rows.",
		Alt:     fmt.Sprintf("Density of this site's rows over %s and %s, with an ellipse and a mark for each shared component.", s.Names[0], s.Names[1])}}
}

// densityGrid is how many places along an axis a density of rows is computed at.
const densityGrid = 64

// over lays places over a feature's rows and over the middle 95 % of components with rows.
func over(m gmm.Mixture, i int, column figure.Numbers) figure.Numbers {
	lo, hi := slices.Min(column), slices.Max(column)
	for k, w := range m.Weights {
		if w < hardlyAny {
			continue
		}
		reach := 2 * math.Sqrt(m.Cov(k)[i*m.Dim+i])
		lo, hi = min(lo, m.Mean(k)[i]-reach), max(hi, m.Mean(k)[i]+reach)
	}
	margin := (hi - lo) / 20
	lo, hi = lo-margin, hi+margin
	at := make(figure.Numbers, densityGrid)
	for n := range at {
		at[n] = lo + (hi-lo)*float64(n)/(densityGrid-1)
	}
	return at
}

// ownHistogram draws one feature's rows, with the shared components in the shares that
// they have here.
func ownHistogram(s *Setup, m gmm.Mixture, column, expected figure.Numbers) *figure.Figure {
	at := over(m, 0, column)
	shares := make([]float64, len(expected))
	total := 0.0
	for _, e := range expected {
		total += e
	}
	for k, e := range expected {
		if total > 0 {
			shares[k] = e / total
		}
	}
	lines := append([]figure.Line{histogram("your rows", column)}, curves(m, at[0], at[len(at)-1], shares)...)
	return &figure.Figure{ID: "own-density", Title: fmt.Sprintf("Your rows in %s, and the shared components", s.Names[0]),
		Chart:   figure.Lines{X: figure.Axis{Label: s.Labels()[0]}, Y: figure.Axis{Label: "density"}, Series: lines, Subject: true},
		Caption: "The area is a histogram of this site's rows. Each curve is a component of all sites' mixture, as large as its share of the rows here.",
		Alt:     "Histogram of this site's rows with the densities of the shared components over it."}
}

// histogram counts rows in bins that are twice the interquartile range wide, over the
// cube root of their number (Freedman and Diaconis 1981), 8 to 60 of them.
func histogram(name string, column figure.Numbers) figure.Line {
	sorted := slices.Clone(column)
	slices.SortFunc(sorted, cmp.Compare)
	n := len(sorted)
	lo, hi := sorted[0], sorted[n-1]
	if !(hi > lo) {
		lo, hi = lo-0.5, hi+0.5
	}
	bins := 8
	if width := 2 * (sorted[3*n/4] - sorted[n/4]) / math.Cbrt(float64(n)); width > 0 {
		bins = int(min(max(math.Ceil((hi-lo)/width), 8), 60))
	}
	line := figure.Line{Name: name, Steps: true, X: make(figure.Numbers, bins+1), Y: make(figure.Numbers, bins+1)}
	for b := range line.X {
		line.X[b] = lo + (hi-lo)*float64(b)/float64(bins)
	}
	for _, v := range sorted {
		b := min(max(int((v-lo)/(hi-lo)*float64(bins)), 0), bins-1)
		line.Y[b] += float64(bins) / (hi - lo) / float64(n)
	}
	return line
}
