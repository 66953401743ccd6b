package mixture

import (
	"parley/method"
	"parley/methods/mixture/options"
	"parley/methods/mixture/scarce"
	"parley/privacy"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return options.Name }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Default() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return scarce.NewCoordinator(s, v), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return scarce.NewSite(&options.Site{Setup: s, Name: name}, v), nil
}

// setupOf is what both halves know from a plan, and how its mixture is learned.
func setupOf(p *study.Plan) (*options.Setup, options.Sampler, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, nil, err
	}
	v, err := newSampler(s)
	return s, v, err
}

// Revision implements [method.Method].
func (Method) Revision() int { return 7 }

// Requests implements [method.Method]: one release; of unprotected plans with classes, an
// encoder, classifiers and scores beside it.
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return scarce.Listed(s, name, v), nil
}
