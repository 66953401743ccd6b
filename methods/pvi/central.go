package pvi

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// Central implements [judged.Centraliser]: exact mean-field inference on all rows,
// which is what partitioned inference converges to and the ceiling of everything
// private. Numbers are scaled as the plan says, by moments of all rows if it says
// standard.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	return Central(ctx, p, rows)
}

// CentralFit is an exact fit to all rows in one place.
type CentralFit struct {
	Model *Model
	Info  gvi.Info // with the evidence lower bound as Value

	*forecaster
}

// Central is [Method.Central] with more to look at.
func Central(ctx context.Context, p *study.Plan, rows dataset.Source) (*CentralFit, error) {
	s, err := newSetup(p, nil)
	if err != nil {
		return nil, err
	}
	h := &site{setup: s}
	var scale *scaleMessage
	if s.opts.Scaling == options.ScaleStandard {
		moments, err := h.moments(ctx, rows)
		if err != nil {
			return nil, err
		}
		if scale, err = s.pool([]*scaleAnswer{moments}); err != nil {
			return nil, err
		}
	}
	d, err := h.read(ctx, scale, rows)
	if err != nil {
		return nil, err
	}
	q, info, err := (&gvi.Local{Likelihood: s.likelihood, Data: d, Cavity: s.prior}).Optimum(s.prior, gvi.Solve{})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", gvi.ErrNotConverged)
	}
	e, err := s.scaled(scale)
	if err != nil {
		return nil, err
	}
	fit := &CentralFit{Info: info}
	if fit.Model, err = s.model(q, e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.forecaster, err = fit.Model.forecaster(fit.Model.Schema())
	return fit, err
}
