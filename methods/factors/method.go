package factors

import (
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
func (Method) Revision() int { return 15 }

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
