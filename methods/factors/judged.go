package factors

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/study"
)

// Evaluator implements [method.Evaluable].
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files, newSite)
}

// Central implements [method.Centraliser] by [fitted.Central].
func (Method) Central(ctx context.Context, p *study.Plan, all dataset.Source) (evaluate.Model, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Central(ctx, set, all)
}

// Simulate implements [method.Simulator] by [fitted.Simulate].
func (Method) Simulate(p *study.Plan, c method.Simulation) (*method.Simulated, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Simulate(set, c)
}
