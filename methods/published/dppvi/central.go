package dppvi

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// centre is an exact fit of independent weights to all rows in one place.
type centre struct {
	Model *fitted.Model
	Info  info // with the evidence lower bound as Value

	*fitted.Forecaster
}

// central fits all rows in one place: exact mean-field inference, which partitioned
// inference converges to. Numbers are scaled as the plan says, by moments of all rows if
// it says standard.
func central(ctx context.Context, s *options.Setup, rows dataset.Source) (*centre, error) {
	var scale *options.Scale
	if s.Options.Scaling == options.ScaleStandard {
		moments, err := s.Moments(ctx, rows)
		if err != nil {
			return nil, err
		}
		if scale, err = s.Pool([]*options.ScaleAnswer{moments}); err != nil {
			return nil, err
		}
	}
	d, err := s.Design(ctx, scale, rows)
	if err != nil {
		return nil, err
	}
	q, info, err := (&freeEnergy{Likelihood: expectationsOf(s.Likelihood), Data: d, Cavity: s.Prior}).Optimum(s.Prior, limits{})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", glm.ErrNotConverged)
	}
	e, err := s.Scaled(scale)
	if err != nil {
		return nil, err
	}
	fit := &centre{Info: info}
	if fit.Model, err = fitted.New(s.Plan, s.Options, s.Prior, q.Normal(), e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.Forecaster, err = fit.Model.Forecaster(rows.Schema())
	return fit, err
}
