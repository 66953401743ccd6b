package regression

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
	"parley/problem"
	"parley/study"
)

// Outcome implements [method.Supervised].
func (Method) Outcome(p *study.Plan) (evaluate.Outcome, error) {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return evaluate.Outcome{}, fmt.Errorf("the plan's options are of method %s, not of pvi", p.Method.Name)
	}
	return o.Outcome.Judged(), nil
}

// Evaluator implements [method.Evaluable]. The model knows nothing of how sites
// differ, so that a new site is to it as any other.
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files)
}

// Central implements [method.Centraliser]: the same posterior fitted to all rows, which is the ceiling of
// everything private. Numbers are scaled as the plan says, by moments of all rows if it says standard.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	return exact.Central(ctx, p, rows)
}

// Simulate implements [method.Simulator].
func (Method) Simulate(p *study.Plan, c method.Simulation) (*method.Simulated, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	return s.Simulate(c)
}

// CheckData implements [method.DataChecker]. A private study counts rows that it cannot use
// as nothing, so that there is nothing to refuse.
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (problem.List, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if !p.Privacy.Differential() {
		if err := s.CheckRows(ctx, rows); err != nil {
			return nil, err
		}
	}
	return s.Notes(ctx, rows)
}
