package pvi

import (
	"context"
	"fmt"
	"strings"

	"parley/dataset"
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/verify"
	"parley/privacy"
	"parley/study"
)

// Method is partitioned variational inference for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "pvi" }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return options.Default() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := newSetup(p, p.Sites)
	if err != nil {
		return nil, err
	}
	return &coordinator{s}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := newSetup(p, []string{name})
	if err != nil {
		return nil, err
	}
	return &site{setup: s, name: name}, nil
}

// Revision implements [method.Method].
func (Method) Revision() int { return 2 }

// Requests implements [method.Method].
func (m Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	s, err := newSetup(p, []string{name})
	if err != nil {
		return nil, err
	}
	h := &site{setup: s, name: name}
	var list []privacy.Listed
	for _, kind := range []string{taskScale, taskUpdate, taskAssess} {
		if times := s.times(kind, name); times > 0 {
			list = append(list, privacy.Listed{Kind: kind, Times: times, Request: h.request(kind)})
		}
	}
	return list, nil
}

// times says how often a site is asked for something, at most.
func (s *setup) times(kind, site string) int {
	p := s.protected[site]
	switch kind {
	case taskScale:
		if s.opts.Scaling == options.ScaleStandard {
			return 1
		}
		return 0
	case taskUpdate:
		switch {
		case p != nil:
			return p.updates
		case s.opts.ByTotal():
			return s.opts.Rounds * len(s.plan.Sites)
		}
		return s.opts.Rounds
	}
	if p != nil && p.quality == nil {
		return 0
	}
	return 1
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return ""
	}
	features := 0
	for _, v := range p.Views {
		features += len(v.Features)
	}
	what := fmt.Sprintf("the number in column %s", o.Outcome.Column)
	if len(o.Outcome.Levels) > 0 {
		what = fmt.Sprintf("which level of column %s a subject has (%s)", o.Outcome.Column, strings.Join(o.Outcome.Levels, ", "))
	}
	text := fmt.Sprintf("It predicts %s from %d features by a Bayesian %s regression, and says how surely each weight is known.", what, features, o.Likelihood)
	how := "the change of the weights that its own subjects ask for"
	switch {
	case o.Variant == options.VariantGlobal:
		how = "a step along the gradient of some of its own subjects"
	case o.Private(p):
		how += ", which follows from noised sums of their gradients"
	case p.Privacy.Differential():
		how += ", which follows from noised sums of the gradients of samples of them"
	}
	return text + fmt.Sprintf(" Whenever the coordinator asks, a site sends %s.", how)
}

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return verify.Schema }

// Verify implements [method.Verifier].
func (m Method) Verify(file []byte, means method.Means) ([]vectors.Check, error) {
	return verify.Vectors(file, verify.Method{Method: m, Central: centralPosterior, Posterior: posteriorOf}, means)
}

func centralPosterior(ctx context.Context, p *study.Plan, rows dataset.Source) (q gvi.Gaussian, info gvi.Info, err error) {
	fit, err := central(ctx, p, rows)
	if err != nil {
		return q, info, err
	}
	return fit.Model.Posterior, fit.Info, nil
}

func posteriorOf(data []byte) (q gvi.Gaussian, err error) {
	m, err := LoadModel(data)
	if err != nil {
		return q, err
	}
	return m.Posterior, nil
}
