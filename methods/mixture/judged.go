package mixture

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/study"
)

var (
	_ method.Centraliser = Method{}
	_ method.Evaluable   = Method{}
	_ method.Simplifier  = Method{}
)

// Evaluator implements [method.Evaluable] by [report.Evaluator].
func (Method) Evaluator(p *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	return report.Evaluator(s, files)
}

// Simplest implements [method.Simplifier]: one normal distribution.
func (Method) Simplest(p *study.Plan) (*study.Plan, string) {
	o := p.Method.Options.(*options.Options)
	if o.Components == 1 {
		return nil, ""
	}
	one, err := o.WithComponents(p, 1)
	if err != nil {
		return nil, ""
	}
	simplest := *p
	simplest.Method.Options = one
	return &simplest, "one component"
}

// Central implements [method.Centraliser]: the posterior given the same sums over all rows,
// without noise.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := options.New(p)
	if err == nil {
		err = report.OfAll(s)
	}
	if err != nil {
		return nil, err
	}
	sample, err := centralSample(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	of, err := gmm.NewPredictive(sample)
	if err != nil {
		return nil, err
	}
	return report.NewPredictive(of, s), nil
}
