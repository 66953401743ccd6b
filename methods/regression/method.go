package regression

import (
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
	"parley/methods/regression/private"
	"parley/privacy"
	"parley/study"
)

// Method is Bayesian regression for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return options.Name }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Default() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if s.Options.Noised(p) {
		return private.New(s)
	}
	return exact.New(s), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	return siteOf(p, name)
}

// listing is a site's half, which says what it may be asked for.
type listing interface {
	method.Site
	Listed() []privacy.Listed
}

func siteOf(p *study.Plan, name string) (listing, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if s.Options.Noised(p) {
		return private.NewSite(s, name)
	}
	return exact.NewSite(s, name), nil
}

// Revision implements [method.Method].
func (Method) Revision() int { return 19 }

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	h, err := siteOf(p, name)
	if err != nil {
		return nil, err
	}
	return h.Listed(), nil
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{fitted.ModelFormat, fitted.OldFormat} }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return fitted.LoadModel(data) }
