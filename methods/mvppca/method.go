package mvppca

import (
	"fmt"

	"parley/internal/vectors"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
	"parley/methods/mvppca/verify"
	"parley/privacy"
	"parley/study"
)

var _ fitted.Opener = Method{}

// Method is Fed-mv-PPCA for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "mvppca" }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Defaults() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	c := &coordinator{plan: p, opts: opts, layout: layout}
	switch {
	case opts.Mechanism == options.MechanismStatistics:
		noised, err := newStatisticsPlan(p, opts, layout)
		if err != nil {
			return nil, err
		}
		return newStatisticsRounds(p, opts, layout, noised).coordinator, nil
	case opts.Variant == options.PublishedVariant:
		c.way, err = newPublishedRounds(c)
	default:
		c.way = &federatedRounds{c}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	h := &site{plan: p, opts: opts, layout: layout, name: name}
	switch {
	case opts.Mechanism == options.MechanismStatistics:
		way := &statisticsSite{site: h}
		way.noised, err = newStatisticsPlan(p, opts, layout)
		h.way = way
	case opts.Variant == options.PublishedVariant:
		h.way, err = newPublishedSite(h)
	default:
		h.way = &federatedSite{h}
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Revision implements [method.Method].
func (Method) Revision() int { return 2 }

// Requests implements [method.Method].
func (m Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	half, err := m.Site(p, name)
	if err != nil {
		return nil, err
	}
	var list []privacy.Listed
	for kind, times := range p.Method.Options.(*options.Options).Schedule(p) {
		r, err := half.(*site).request(kind)
		if err != nil {
			return nil, err
		}
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: r})
	}
	return list, nil
}

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return "fedmvppca/" }

// Verify implements [method.Verifier].
func (Method) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return verify.Vectors(file)
}

func setUp(p *study.Plan) (*options.Options, ppca.Layout, error) {
	opts, ok := p.Method.Options.(*options.Options)
	if !ok {
		return nil, ppca.Layout{}, fmt.Errorf("the plan's options are of method %s, not of mvppca", p.Method.Name)
	}
	dims := make([]int, len(p.Views))
	for k, v := range p.Views {
		dims[k] = len(v.Features)
	}
	layout, err := ppca.NewLayout(dims, opts.NoiseGroups())
	return opts, layout, err
}

// ModelFormats implements [fitted.Opener].
func (Method) ModelFormats() []string { return []string{use.ModelFormat} }

// OpenModel implements [fitted.Opener].
func (Method) OpenModel(data []byte) (fitted.Model, error) { return use.LoadModel(data) }
