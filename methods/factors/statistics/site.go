package statistics

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is a site's half of a study of noised statistics.
func Site(set options.Setup, name string) (*halves.Site, error) {
	noised, err := newDeclared(set, name)
	if err != nil {
		return nil, err
	}
	return halves.NewSite(set, name, siteWay{set, noised}, nil), nil
}

// siteWay is a site's part where the mechanism is statistics.
type siteWay struct {
	options.Setup
	noised *declared // what it releases
}

func (h siteWay) Request(kind string) (privacy.Request, error) {
	if kind == options.TaskCheck {
		return h.noised.checkRequest(), nil
	}
	return h.noised.request(kind)
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, _ *halves.Site) (any, error) {
	switch t.Kind {
	case options.TaskOverview:
		return halves.Open(t, func(*OverviewTask) (any, error) { return nil, h.noised.overview(ctx, s) })
	case options.TaskCoarse:
		return halves.Open(t, func(task *MomentsTask) (any, error) { return nil, h.noised.moments(ctx, s, moments.SumCoarse, task) })
	case options.TaskFine:
		return halves.Open(t, func(task *MomentsTask) (any, error) { return nil, h.noised.moments(ctx, s, moments.SumFine, task) })
	case options.TaskCheck:
		return halves.Open(t, func(task *CheckTask) (any, error) { return nil, h.check(ctx, task, s) })
	}
	return nil, fmt.Errorf("unknown task %q", t.Kind)
}

// check answers the task.
func (h siteWay) check(ctx context.Context, t *CheckTask, s *privacy.Session) error {
	model, err := t.Model.Unpack(h.Layout)
	if err != nil {
		return err
	}
	if err := h.CheckRank(model.Rank); err != nil {
		return err
	}
	// In parts of the ranges, whose squares are 1.
	if err := ppca.Within("privacy noise in predictions", t.Doubt, 1); err != nil {
		return err
	}
	c, err := moments.NewChecker(h.Layout, h.RangeScale(), model, t.Doubt)
	if err != nil {
		return err
	}
	_, err = s.Sum(ctx, moments.SumDiagnostics, func(row *dataset.Row, v []float64) int { return c.Add(row.Views, v) })
	return err
}
