package mixture

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

var (
	_ method.Centraliser = Method{}
	_ method.Evaluable   = Method{}
	_ method.Simplifier  = Method{}
	_ method.Refitter    = Method{}
)

// Name implements [method.Method].
func (Method) Name() string { return Name }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return &Options{Prior: DefaultPrior()} }

// Revision implements [method.Method].
func (Method) Revision() int { return 7 }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return &coordinator{s}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return half{s, name}, nil
}

// Requests implements [method.Method]: one release.
func (Method) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return []privacy.Listed{{Kind: task, Times: 1, Request: s.request()}}, nil
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, err := setupOf(p)
	if err != nil {
		return ""
	}
	return s.Describe() + " " + s.tells()
}

// CheckData implements [method.DataChecker].
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (notes problem.List, err error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return s.CheckData(ctx, rows)
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{ModelFormat} }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return LoadModel(data) }

// Evaluator implements [method.Evaluable] by [Evaluator].
func (Method) Evaluator(p *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return Evaluator(s.Setup, files)
}

// Simplest implements [method.Simplifier]: one normal distribution.
func (Method) Simplest(p *study.Plan) (*study.Plan, string) {
	o := p.Method.Options.(*Options)
	if o.Components == 1 {
		return nil, ""
	}
	one, err := o.withComponents(p, 1)
	if err != nil {
		return nil, ""
	}
	simplest := *p
	simplest.Method.Options = one
	return &simplest, "one component"
}

// Central implements [method.Centraliser]: the posterior given the same sums over all rows,
// without noise. It is no result of a study, since nothing passed a gate.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	s.Sum = nil
	sums, err := half{s, ""}.sums(ctx, rows)
	if err != nil {
		return nil, err
	}
	o, err := s.observation(&released{Sums: sums.Sums, Sites: []releasedSite{{Rows: float64(sums.Rows)}}})
	if err != nil {
		return nil, err
	}
	post, err := s.posterior(o)
	if err != nil {
		return nil, err
	}
	of, err := gmm.NewPredictive(post)
	if err != nil {
		return nil, err
	}
	return newPredictive(of, s.Setup), nil
}

// Chooses implements [method.Refitter].
func (Method) Chooses() string { return chosen }

// ReleasedFile implements [method.Refitter]. The sums that sites release do not depend on the number of
// components.
func (Method) ReleasedFile(p *study.Plan) (string, error) {
	_, err := setupOf(p)
	return releasedName, err
}

// Refit implements [method.Refitter].
func (m Method) Refit(p *study.Plan, releases []byte, components int) (*method.Result, error) {
	if _, err := m.ReleasedFile(p); err != nil {
		return nil, err
	}
	return refitted(p, releases, components)
}

// SelectReleased implements [method.Refitter] by [selected].
func (m Method) SelectReleased(ctx context.Context, p *study.Plan, releases []byte, c method.SelectConfig) (*method.Selection, error) {
	if _, err := m.ReleasedFile(p); err != nil {
		return nil, err
	}
	return selected(ctx, p, releases, c)
}
