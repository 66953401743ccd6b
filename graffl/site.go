package graffl

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// site is the half at one site. Between tasks it remembers only what one more pass
// over the same rows gives again.
type site struct {
	*setup
	name string
	rows []float64 // those with all features; variants that need them again and again
}

// Request implements [method.Site].
func (h *site) Request(t method.Task) (privacy.Request, error) {
	if t.Kind != h.task() {
		return privacy.Request{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return h.request(), nil
}

// Run implements [method.Site].
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (privacy.Release, error) {
	if t.Kind != h.task() {
		return privacy.Release{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	var answer any
	var err error
	switch {
	case h.opts.Variant == VariantPublished:
		answer, err = h.distances(ctx, t, s)
	case h.opts.Variant == VariantSet:
		answer, err = h.discrepancies(ctx, t, s)
	case h.sum != nil:
		answer, err = h.noised(ctx, t, s)
	default:
		answer, err = h.exact(ctx, t, s)
	}
	if err != nil {
		return privacy.Release{}, err
	}
	body, err := wire.Marshal(answer)
	if err != nil {
		return privacy.Release{}, fmt.Errorf("encoding the answer to %q: %w", t.Kind, err)
	}
	return s.Seal(body, nil)
}

func decodeTask(t method.Task, task any) error {
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	return nil
}

// read writes a row's features in the plan's order; false if one is missing or not
// finite. Such a row takes no part.
func read(row *dataset.Row, x []float64) bool {
	n := 0
	for _, view := range row.Views {
		n += copy(x[n:], view)
	}
	return n == len(x) && notFinite(x) < 0
}

// noised releases the one sum. Nothing that depends on a row but through it shows.
func (h *site) noised(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	if err := decodeTask(t, new(landmarkTask)); err != nil {
		return nil, err
	}
	x, n := make([]float64, len(h.names)), h.marks.Len()
	sum, err := s.Sum(ctx, h.sum.Name, func(row *dataset.Row, v []float64) int {
		if !read(row, x) {
			return -1
		}
		h.marks.Features(v[:n], x)
		for r := range v[:n] {
			v[r] /= h.scale
		}
		v[n] = countEntry
		return 0
	})
	if err != nil {
		return nil, err
	}
	return noisedAnswer{*sum}, nil
}

// all reads the rows that have all features, and keeps them.
func (h *site) all(ctx context.Context, s *privacy.Session) ([]float64, error) {
	data, err := s.Data()
	if err != nil || h.rows != nil {
		return h.rows, err
	}
	rows, x := []float64{}, make([]float64, len(h.names))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if read(row, x) {
			rows = append(rows, x...)
		}
	}
	h.rows = rows
	return rows, ctx.Err()
}

// exact releases the sums without protection.
func (h *site) exact(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	if err := decodeTask(t, new(landmarkTask)); err != nil {
		return nil, err
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	a := landmarkAnswer{Sums: make(wire.Vector, h.marks.Len())}
	x, phi := make([]float64, len(h.names)), make([]float64, h.marks.Len())
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !read(row, x) {
			continue
		}
		h.marks.Features(phi, x)
		for r, v := range phi {
			a.Sums[r] += v
		}
		a.Rows++
	}
	return a, ctx.Err()
}

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
