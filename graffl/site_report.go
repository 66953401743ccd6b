package graffl

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
)

// Report shows a site where its own rows lie in the shared mixture. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	model := new(sharedModel)
	if err := wire.Unmarshal(shared, model); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	if h.opts.Variant == VariantPublished {
		return h.publishedReport(ctx, data)
	}
	k := h.opts.Components
	m, err := model.mixture(k, len(h.names))
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	all, err := m.Density()
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	parts := make([]*Density, k)
	for c := range parts {
		if parts[c], err = m.only(c).Density(); err != nil {
			return nil, fmt.Errorf("the shared model: %w", err)
		}
	}
	expected := make(figure.Numbers, k)
	x := make([]float64, len(h.names))
	rows, left, logLik := 0, 0, 0.0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !read(row, x) {
			left++
			continue
		}
		rows++
		own := all.Log(x)
		logLik += own
		for c, p := range parts {
			if m.Weights[c] > 0 && !math.IsInf(own, -1) {
				expected[c] += math.Exp(math.Log(m.Weights[c]) + p.Log(x) - own)
			}
		}
	}
	r := &method.Result{Metrics: map[string]float64{"subjects": float64(rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(rows)}}}
	if left > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "left out: a feature is missing", Value: fmt.Sprint(left)})
	}
	if rows > 0 && !math.IsInf(logLik, 0) {
		r.Metrics["log_density_per_subject"] = logLik / float64(rows)
		r.Sections = []figure.Section{{ID: "own", Title: "Your subjects in the shared mixture", Lead: "Made at this site from its own rows; it does not leave.",
			Items: []figure.Item{{Figure: &figure.Figure{ID: "own-components", Title: "How many of your subjects belong to each component",
				Caption: "Each subject counts in parts, by the probability that each component made it.",
				Alt:     "Bars of the expected number of this site's subjects in each component.",
				Chart:   figure.Bars{X: figure.Axis{Label: "expected number of subjects"}, Labels: componentNames(k), Values: expected}}}}}}
	}
	return r, nil
}

// only returns component c alone.
func (m Mixture) only(c int) Mixture {
	return Mixture{m.Dim, []float64{1}, m.Mean(c), m.Cov(c)}
}

func componentNames(k int) (names []string) {
	for c := range k {
		names = append(names, fmt.Sprintf("component %d", c+1))
	}
	return names
}
