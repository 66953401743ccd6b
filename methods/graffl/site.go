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

// decode reads a task, whose kind must be the variant's.
func (h *site) decode(t method.Task, task any) error {
	if t.Kind != h.variant.task() {
		return fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return decodeTask(t, task)
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
