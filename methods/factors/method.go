// Package factors is multi-view probabilistic principal component analysis for data that
// stay where they are, which plans name mvppca. Register [Method]; a plan says the rest in
// its [options.Options]. What leaves a site is what the plan's requests list, and nothing of
// it depends on anything but the plan, the task and the site's rows.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q factors
// x ~ N(0, I) and one noise variance per view or per feature. In the first exchange each site
// describes its subjects, those who have the same views together, and the coordinator fits one
// model to these descriptions. Exchanges after that, if wanted, estimate how sites differ.
// Under differential protection each site releases three clipped and noised sums over its
// subjects, and the coordinator makes the model of them.
package factors

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/federated"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/statistics"
	"parley/privacy"
	"parley/study"
)

var _ method.Opener = Method{}

// Method is the factor model for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "mvppca" }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Defaults() }

// Coordinator implements [method.Method]: that of the way to fit which the plan chose.
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	if set.Options.Mechanism == options.MechanismStatistics {
		return statistics.Coordinator(set)
	}
	return federated.Coordinator(set), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	half, err := siteOf(p, name)
	if err != nil {
		return nil, err
	}
	return half, nil
}

func siteOf(p *study.Plan, name string) (*halves.Site, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	if set.Options.Mechanism == options.MechanismStatistics {
		return statistics.Site(set, name)
	}
	return federated.Site(set, name), nil
}

// Revision implements [method.Method].
func (Method) Revision() int { return 19 }

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	half, err := siteOf(p, name)
	if err != nil {
		return nil, err
	}
	var list []privacy.Listed
	for kind, times := range p.Method.Options.(*options.Options).Schedule(p) {
		r, err := half.Request(kind)
		if err != nil {
			return nil, err
		}
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: r})
	}
	return list, nil
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return fitted.ModelFormats() }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return fitted.LoadModel(data) }

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
