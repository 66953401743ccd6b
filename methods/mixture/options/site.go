package options

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/privacy"
)

// Site is the half at one site. Between tasks it remembers only what one more pass
// over the same rows gives again.
type Site struct {
	*Setup
	Name string
	Rows []float64 // that the mixture is of; samplers need them again and again
	// Keep is the state that a release leaves in the site's store: of package stages, the
	// digest of the encoder that this study began with.
	Keep []byte
}

// Open reads a task, which must be of a kind.
func (h *Site) Open(t method.Task, kind string, task any) error {
	if t.Kind != kind {
		return fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return method.OpenTask(t, task)
}

// Seal makes an answer of what was computed for a task, with the state that the site keeps.
func (h *Site) Seal(t method.Task, answer any, err error) (method.Answer, error) {
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, h.Keep)
}

// Complete writes a row's features in their order; false if one is missing or not finite.
// Such a row takes no part.
func Complete(row *dataset.Row, x []float64) bool {
	n := 0
	for _, view := range row.Views {
		n += copy(x[n:], view)
	}
	return n == len(x) && gmm.NotFinite(x) < 0
}

// All reads the rows that the mixture is of, and keeps them.
func (h *Site) All(ctx context.Context, s *privacy.Session) ([]float64, error) {
	data, err := s.Data()
	if err != nil || h.Rows != nil {
		return h.Rows, err
	}
	rows, x := []float64{}, make([]float64, len(h.Names))
	for row, err := range h.Mixed(data).Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if Complete(row, x) {
			rows = append(rows, x...)
		}
	}
	h.Rows = rows
	return rows, ctx.Err()
}
