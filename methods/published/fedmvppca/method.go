// Package fedmvppca is Fed-mv-PPCA and, of plans under differential privacy, DP-Fed-mv-PPCA
// (Algorithm 2), as published: Balelli, Silva and Lorenzi, "A Differentially Private
// Probabilistic Framework for Modeling the Variability Across Federated Datasets of
// Heterogeneous Multi-View Observations", MELBA 2022:012. Numbers in parentheses are its
// equations. Register [Method]; plans name it fed-mv-ppca.
//
// In each round every site fits the model to its own rows ([em]), and the coordinator takes
// what they found for draws from one law ([updateMaster]), which is the prior of the next
// round. It is for comparison: it shrinks its variances towards zero at every round, and its
// noise hides whole sites. Model file, scale, assessment and reports are those of factors.
package fedmvppca

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/study"
)

var (
	_ method.Evaluable   = Method{}
	_ method.Centraliser = Method{}
	_ method.Simulator   = Method{}
	_ method.Describer   = Method{}
)

// Method is Fed-mv-PPCA for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return Name }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return &Options{Scaling: ppca.ScaleStandard} }

// Revision implements [method.Method].
func (Method) Revision() int { return 1 }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	set, err := setUp(p)
	if err != nil {
		return nil, err
	}
	c := coordinator{setup: set}
	if set.private() {
		c.releases, err = newBySite(set)
	}
	return c, err
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) { return newSite(p, name) }

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, name string) (list []privacy.Listed, err error) {
	h, err := newSite(p, name)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{taskScale, taskIterate, taskClip, taskAssess} {
		if times := h.times(kind); times > 0 {
			list = append(list, privacy.Listed{Kind: kind, Times: times, Request: h.request(kind)})
		}
	}
	return list, nil
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	set, err := setUp(p)
	if err != nil {
		return ""
	}
	factors := "1 factor"
	if set.own.Latent != 1 {
		factors = fmt.Sprintf("%d factors", set.own.Latent)
	}
	text := fmt.Sprintf("It looks for %s, patterns that run through the %d features of all %d views together, and how "+
		"strongly each feature belongs to each. In each of %d rounds every site fits the model to its own subjects, "+
		"and sends the model's numbers back",
		factors, set.Layout.Features(), set.Layout.Views(), set.own.Rounds)
	switch {
	case set.own.firstInClear():
		return text + ", the first time as they are and then noised."
	case set.private():
		return text + ", noised."
	}
	return text + "."
}

// Evaluator implements [method.Evaluable] by [fitted.Evaluator].
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files, newSite)
}

// Central implements [method.Centraliser] by [fitted.Central].
func (Method) Central(ctx context.Context, p *study.Plan, all dataset.Source) (evaluate.Model, error) {
	set, err := setUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Central(ctx, set.Frame, all, nil, nil)
}

// Simulate implements [method.Simulator] by [fitted.Simulate].
func (Method) Simulate(p *study.Plan, c method.Simulation) (*method.Simulated, error) {
	set, err := setUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Simulate(set.Frame, nil, c)
}
