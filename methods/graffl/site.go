package graffl

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/graffl/mixture"
	"parley/privacy"
)

// site is the half at one site. Between tasks it remembers only what one more pass
// over the same rows gives again.
type site struct {
	*setup
	name string
	rows []float64 // that the mixture is of; variants need them again and again
	// keep is the state that a release leaves in the site's store: see [stagedSite].
	keep []byte
}

// Run implements [method.Site].
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	var answer any
	var err error
	switch {
	case t.Kind != h.task():
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	case h.opts.Variant == VariantPublished:
		answer, err = h.distances(ctx, t, s)
	case h.opts.Variant == VariantSet:
		answer, err = h.discrepancies(ctx, t, s)
	case h.sum != nil:
		return method.Answer{State: h.keep}, h.noised(ctx, t, s)
	default:
		answer, err = h.exact(ctx, t, s)
	}
	if err != nil {
		return method.Answer{}, err
	}
	return h.answer(t, answer)
}

func (h *site) answer(t method.Task, answer any) (method.Answer, error) {
	body, err := wire.Marshal(answer)
	if err != nil {
		return method.Answer{}, fmt.Errorf("encoding the answer to %q: %w", t.Kind, err)
	}
	return method.Answer{Body: body, State: h.keep}, nil
}

func decodeTask(t method.Task, task any) error {
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	return nil
}

// read writes a row's features in their order; false if one is missing or not finite.
// Such a row takes no part.
func read(row *dataset.Row, x []float64) bool {
	n := 0
	for _, view := range row.Views {
		n += copy(x[n:], view)
	}
	return n == len(x) && mixture.NotFinite(x) < 0
}

// noised releases the one sum. Nothing that depends on a row but through it shows.
func (h *site) noised(ctx context.Context, t method.Task, s *privacy.Session) error {
	if err := decodeTask(t, new(landmarkTask)); err != nil {
		return err
	}
	x, n := make([]float64, len(h.names)), h.marks.Len()
	_, err := s.Sum(ctx, h.sum.Name, func(row *dataset.Row, v []float64) int {
		if !h.read(row, x) {
			return -1
		}
		h.marks.Features(v[:n], x)
		for r := range v[:n] {
			v[r] /= h.scale
		}
		v[n] = countEntry
		return 0
	})
	return err
}

// all reads the rows that the mixture is of, and keeps them.
func (h *site) all(ctx context.Context, s *privacy.Session) ([]float64, error) {
	data, err := s.Data()
	if err != nil || h.rows != nil {
		return h.rows, err
	}
	rows, x := []float64{}, make([]float64, len(h.names))
	for row, err := range h.mixed(data).Rows(ctx) {
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
	for row, err := range h.mixed(data).Rows(ctx) {
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
