package fitted

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/method"
)

// Own shows a site where its own rows lie in the mixture that it gets back. It never leaves.
func Own(ctx context.Context, s *Setup, shared []byte, data dataset.Source) (*method.Result, error) {
	m, of, err := s.openShared(shared)
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
	if note := LeftOut(left, rows+left); note != nil {
		verdicts = append(verdicts, *note)
	}
	r.Sections = figure.Verdicts(verdicts)
	if left > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "left out: a feature is missing",
			Value: figure.Count.Text(float64(left))})
	}
	if rows == 0 {
		return r, nil
	}
	if !math.IsInf(logLik, 0) && !math.IsNaN(logLik) { // as it is of gross errors
		r.Metrics["log_density_per_subject"] = logLik / float64(rows)
	}
	section := figure.Section{ID: "own", Title: "Your subjects in the shared mixture",
		Lead: "Made at this site from its own rows; it does not leave. The mixture is of all sites together: a " +
			"component that no row here belongs to is one that other sites know of."}
	chart := inPairs(s, m)
	chart.Values = columns
	labels := make([]string, m.Components())
	for k := range labels {
		labels[k] = componentName(k)
	}
	section.Items = append(section.Items, figure.Item{Figure: &figure.Figure{ID: "own-pairs",
		Title: "Your rows, and the shared components", Chart: chart,
		Caption: "Grey is the density of this site's rows, smoothed, and on the diagonal how many there are; marks, " +
			"ellipses and curves are the components of all sites' mixture, which hold half and nine tenths of their " +
			"rows. Where the grey is elsewhere, your subjects are not those of the others.",
		Alt: "Density of this site's rows in all pairs, with an ellipse and a mark for each shared component."}},
		figure.Item{Figure: &figure.Figure{ID: "own-components",
			Title:   "How many of your subjects belong to each component",
			Caption: "Each subject counts in parts, by the probability that each component made it.",
			Alt:     "Bars of the expected number of this site's subjects in each component.",
			Chart: figure.Bars{X: figure.Axis{Label: "expected number of subjects"}, Labels: labels,
				Values: own.expected}}})
	r.Sections = append(r.Sections, section)
	return r, nil
}
