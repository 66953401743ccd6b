package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// Outcome implements [judged.Supervised].
func (Method) Outcome(p *study.Plan) (evaluate.Outcome, error) {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return evaluate.Outcome{}, fmt.Errorf("the plan's options are of method %s, not of pvi", p.Method.Name)
	}
	return evaluate.Outcome(o.Outcome), nil
}

// Evaluator implements [judged.Evaluable]. The model knows nothing of how sites
// differ, so that a new site is to it as any other.
func (Method) Evaluator(files []method.File, newSite bool) (evaluate.Model, error) {
	data, err := fitted.JSON(files)
	if err != nil {
		return nil, err
	}
	m, err := LoadModel(data)
	if err != nil {
		return nil, err
	}
	return m.forecaster(m.Schema())
}

// Sized implements [judged.Sizer].
func (Method) Sized(p *study.Plan, subjects map[string]int) *study.Plan {
	o, ok := p.Method.Options.(*options.Options)
	if !ok || len(o.Rows) == 0 {
		return p
	}
	sized, with := *p, *o
	with.Rows = nil
	for _, site := range p.Sites {
		with.Rows = append(with.Rows, options.SiteRows{Site: site, Rows: max(subjects[site], 1)})
	}
	sized.Method.Options = &with
	return &sized
}

// forecaster is a model that rows are handed to.
type forecaster struct {
	binding *gvi.Binding
	predict *predictor
	row     gvi.Row
}

// forecaster predicts rows of a schema that has the model's features.
func (m *Model) forecaster(s dataset.Schema) (*forecaster, error) {
	b, err := m.Encoding.Bind(s, nil)
	if err != nil {
		return nil, err
	}
	return &forecaster{binding: b, predict: newPredictor(m.Options.Family(), m.Posterior, m.Encoding.Width())}, nil
}

// Infer implements [evaluate.Model] of the outcome: Latent holds the expected
// activations, and nothing is expected of features, which the model takes as given.
func (f *forecaster) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := f.binding.Row(row, &f.row); err != nil {
		return err
	}
	f.predict.row(f.row)
	dst.Unknown(len(f.predict.a), row)
	copy(dst.Latent, f.predict.a)
	f.predict.forecast(&dst.Outcome)
	return nil
}

// forecast says what is expected of the last row's outcome.
func (m *predictor) forecast(dst *evaluate.Prediction) {
	dst.LogP = dst.LogP[:0]
	switch l := m.likelihood.(type) {
	case gvi.Linear:
		dst.Mean, dst.SD = m.a[0], math.Sqrt(l.Variance+m.c[0])
	case gvi.Softmax:
		for _, p := range m.p {
			dst.LogP = append(dst.LogP, math.Log(max(p, math.SmallestNonzeroFloat64)))
		}
	default:
		dst.LogP = append(dst.LogP, measured(gvi.LogExpectSigmoid(-m.a[0], m.c[0])), measured(gvi.LogExpectSigmoid(m.a[0], m.c[0])))
	}
}

// central implements [judged.Centraliser]: exact mean-field inference on all rows,
// which is what partitioned inference converges to and the ceiling of everything
// private. Numbers are scaled as the plan says, by moments of all rows if it says
// standard.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	return central(ctx, p, rows)
}

// centralFit is an exact fit to all rows in one place.
type centralFit struct {
	Model *Model
	Info  gvi.Info // with the evidence lower bound as Value

	*forecaster
}

// central is [Method.Central] with more to look at.
func central(ctx context.Context, p *study.Plan, rows dataset.Source) (*centralFit, error) {
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
	fit := &centralFit{Info: info}
	if fit.Model, err = s.model(q, e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.forecaster, err = fit.Model.forecaster(fit.Model.Schema())
	return fit, err
}
