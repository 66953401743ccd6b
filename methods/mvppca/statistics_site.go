package mvppca

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/mvppca/moments"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
)

// statisticsSite is a site's part where the mechanism is statistics.
type statisticsSite struct {
	*site
	noised *statisticsPlan // what it releases
}

func (h *statisticsSite) request(kind string) (privacy.Request, error) {
	if kind == options.TaskCheck {
		return h.noised.checkRequest(), nil
	}
	return h.noised.request(), nil
}

func (h *statisticsSite) run(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	switch t.Kind {
	case options.TaskStatistics:
		return run(t, func(*statisticsTask) (any, error) { return h.noised.release(ctx, s) })
	case options.TaskCheck:
		return run(t, func(task *checkTask) (any, error) { return nil, h.check(ctx, task, s) })
	}
	return h.exact(ctx, s, func(*rowSums, dataset.Source) (any, error) { return nil, fmt.Errorf("unknown task %q", t.Kind) })
}

func (h *statisticsSite) held(views [][]float64) [][]float64 { return asTheyAre(views) }

// check answers the task.
func (h *statisticsSite) check(ctx context.Context, t *checkTask, s *privacy.Session) error {
	model, err := t.Model.params(h.layout)
	if err != nil {
		return err
	}
	if err := h.checkRank(model.Rank); err != nil {
		return err
	}
	// In parts of the ranges, whose squares are 1.
	if err := ppca.Within("privacy noise in predictions", t.Doubt, 1); err != nil {
		return err
	}
	c, err := moments.NewChecker(h.layout, rangeScale(h.plan), model, t.Doubt)
	if err != nil {
		return err
	}
	_, err = s.Sum(ctx, moments.SumDiagnostics, func(row *dataset.Row, v []float64) int { return c.Add(row.Views, v) })
	return err
}
