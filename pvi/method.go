package pvi

import (
	"slices"

	"parley/method"
	"parley/privacy"
	"parley/study"
)

// Method is partitioned variational inference for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "pvi" }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return defaults() }

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

// Charges implements [method.Charger].
func (m Method) Charges(p *study.Plan, name string) ([]privacy.Request, error) {
	s, err := newSetup(p, []string{name})
	if err != nil {
		return nil, err
	}
	h := &site{setup: s, name: name}
	var all []privacy.Request
	for _, kind := range []string{taskScale, taskUpdate, taskAssess} {
		times := s.times(kind, name)
		if times == 0 {
			continue
		}
		r, err := h.Request(method.Task{Site: name, Kind: kind})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.Repeat([]privacy.Request{r}, times)...)
	}
	return all, nil
}

// times says how often a site is asked for something, at most.
func (s *setup) times(kind, site string) int {
	p := s.protected[site]
	switch kind {
	case taskScale:
		if s.opts.Scaling == ScaleStandard {
			return 1
		}
		return 0
	case taskUpdate:
		switch {
		case p != nil:
			return p.updates
		case s.opts.byTotal():
			return s.opts.Rounds * len(s.plan.Sites)
		}
		return s.opts.Rounds
	}
	if p != nil && p.quality == nil {
		return 0
	}
	return 1
}
