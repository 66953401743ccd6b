package set

import (
	"context"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/privacy"
)

// half is the site half of variant set.
type half struct{ *options.Site }

// Run implements [method.Site].
func (h half) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	answer, err := h.discrepancies(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, h.Keep)
}

// discrepancies answers a batch.
func (h half) discrepancies(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	task := new(discrepanciesTask)
	if err := h.Open(t, taskDiscrepancies, task); err != nil {
		return nil, err
	}
	proposals, err := task.open(h.Setup)
	if err != nil {
		return nil, err
	}
	rows, err := h.All(ctx, s)
	if err != nil {
		return nil, err
	}
	d := len(h.Names)
	a := discrepanciesAnswer{Across: make(wire.Vector, len(proposals)), Rows: len(rows) / d}
	if a.Rows == 0 {
		return a, nil
	}
	Each(h.Setup, task.First, proposals, func(i int, set []float64) {
		if set == nil {
			return
		}
		// Infinity is sent as the largest float: what travels is finite.
		a.Across[i] = min(h.Options.Discrepancy().Cross(set, rows, d), math.MaxFloat64)
	})
	return a, ctx.Err()
}

// Report implements [method.Site]: where the site's own rows lie in the shared mixture.
func (h half) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return report.Own(ctx, h.Setup, shared, data)
}
