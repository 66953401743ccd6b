package pvi

import (
	"parley/method"
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
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	return &coordinator{s}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	return &site{setup: s, name: name}, nil
}
