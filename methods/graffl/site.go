package graffl

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/method/rounds"
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

// open reads a task, which must be of a kind.
func (h *site) open(t method.Task, kind string, task any) error {
	if t.Kind != kind {
		return fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return rounds.Open(t, task)
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
