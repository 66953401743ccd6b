package mixture

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/privacy"
)

// half is the site half.
type half struct {
	*setup
	Name string
}

// Run implements [method.Site].
func (h half) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if t.Kind != task {
		return method.Answer{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	if err := method.OpenTask(t, new(sumsTask)); err != nil {
		return method.Answer{}, err
	}
	if h.Sum != nil {
		return method.Answer{}, h.noised(ctx, s)
	}
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	answer, err := h.sums(ctx, data)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, nil)
}

// noised releases the one sum. Nothing that depends on a row but through it shows.
func (h half) noised(ctx context.Context, s *privacy.Session) error {
	x, n := make([]float64, len(h.Names)), h.Of.Len()
	_, err := s.Sum(ctx, h.Sum.Name, func(row *dataset.Row, v []float64) int {
		if !fitted.Complete(row, x) {
			return -1
		}
		h.Of.Features(v[:n], x)
		for r := range v[:n] {
			v[r] /= h.Scale
		}
		v[n] = countEntry
		return 0
	})
	return err
}

// Report implements [method.Site]: where the site's own rows lie in the shared mixture.
func (h half) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return fitted.Own(ctx, h.Setup, shared, data)
}

// sums are those over rows, without noise.
func (h half) sums(ctx context.Context, data dataset.Source) (sumsAnswer, error) {
	a := sumsAnswer{Sums: make(wire.Vector, h.Of.Len())}
	x, phi := make([]float64, len(h.Names)), make([]float64, h.Of.Len())
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return a, err
		}
		if !fitted.Complete(row, x) {
			a.Lacking++
			continue
		}
		h.Of.Features(phi, x)
		for r, v := range phi {
			a.Sums[r] += v
		}
		a.Rows++
	}
	return a, ctx.Err()
}
