package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/evaluate"
	"parley/study"
)

// Central implements [method.Centraliser]: exact mean-field inference on all rows,
// which is what partitioned inference converges to and the ceiling of everything
// private. Numbers are scaled as the plan says, by moments of all rows if it says
// standard.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	return Central(ctx, p, rows)
}

// CentralFit is an exact fit to all rows in one place.
type CentralFit struct {
	Model *Model
	Info  Info // with the evidence lower bound as Value

	binding *Binding
	predict *predictor
	row     Row
}

// Central is [Method.Central] with more to look at.
func Central(ctx context.Context, p *study.Plan, rows dataset.Source) (*CentralFit, error) {
	s, err := newSetup(p, nil)
	if err != nil {
		return nil, err
	}
	h := &site{setup: s}
	var scale *scaleMessage
	if s.opts.Scaling == ScaleStandard {
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
	q, info, err := (&Local{Likelihood: s.likelihood, Data: d, Cavity: s.prior}).Optimum(s.prior, Solve{})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", ErrNotConverged)
	}
	e, err := s.scaled(scale)
	if err != nil {
		return nil, err
	}
	fit := &CentralFit{Info: info, predict: newPredictor(s.likelihood, q, e.Width())}
	if fit.Model, err = s.model(q, e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.binding, err = s.bind(e, rows.Schema())
	return fit, err
}

// Infer implements [evaluate.Model] of the outcome: Latent holds the expected
// activations, LogLik is that of the row's outcome given its features, and Mean is
// NaN, since the model takes features as given and predicts none.
func (f *CentralFit) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	y, err := f.binding.Outcome(f.predict.likelihood, row)
	if err == nil {
		err = f.binding.Row(row, &f.row)
	}
	if err != nil {
		return err
	}
	f.predict.row(f.row)
	var features []int
	for _, v := range f.Model.Views {
		features = append(features, len(v.Columns))
	}
	dst.Resize(len(f.predict.a), features)
	copy(dst.Latent, f.predict.a)
	for _, v := range dst.Mean {
		for j := range v {
			v[j] = math.NaN()
		}
	}
	_, _, _, dst.LogLik = f.predict.judge(y)
	return nil
}
