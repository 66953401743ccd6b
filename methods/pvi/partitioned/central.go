package partitioned

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
	"parley/methods/pvi/options"
	"parley/methods/pvi/setup"
	"parley/methods/pvi/use"
	"parley/study"
)

// Fit is an exact fit to all rows in one place.
type Fit struct {
	Model *use.Model
	Info  gvi.Info // with the evidence lower bound as Value

	*use.Forecaster
}

// Central fits all rows in one place: exact mean-field inference, which partitioned
// inference converges to. Numbers are scaled as the plan says, by moments of all rows if
// it says standard.
func Central(ctx context.Context, p *study.Plan, rows dataset.Source) (*Fit, error) {
	s, err := setup.New(p)
	if err != nil {
		return nil, err
	}
	var scale *message.Scale
	if s.Options.Scaling == options.ScaleStandard {
		moments, err := s.Moments(ctx, rows)
		if err != nil {
			return nil, err
		}
		if scale, err = s.Pool([]*message.ScaleAnswer{moments}); err != nil {
			return nil, err
		}
	}
	d, err := s.Design(ctx, scale, rows)
	if err != nil {
		return nil, err
	}
	q, info, err := (&gvi.Local{Likelihood: s.Likelihood, Data: d, Cavity: s.Prior}).Optimum(s.Prior, gvi.Solve{})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", gvi.ErrNotConverged)
	}
	e, err := s.Scaled(scale)
	if err != nil {
		return nil, err
	}
	fit := &Fit{Info: info}
	if fit.Model, err = use.New(p, s.Options, s.Prior, q.Normal(), e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.Forecaster, err = fit.Model.Forecaster(rows.Schema())
	return fit, err
}
