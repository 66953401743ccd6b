package statistics

import (
	"context"
	"fmt"

	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/privacy"
)

// Site is a site's half of a study of noised statistics.
func Site(set options.Setup, name string) (*halves.Site, error) {
	noised, err := newDeclared(set, name)
	if err != nil {
		return nil, err
	}
	return halves.NewSite(set, name, siteWay{set, noised}), nil
}

// siteWay is a site's part where the mechanism is statistics.
type siteWay struct {
	options.Setup
	noised *declared // what it releases
}

func (h siteWay) Request(kind string) (privacy.Request, error) {
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
	}
	return nil, fmt.Errorf("unknown task %q", t.Kind)
}
