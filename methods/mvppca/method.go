package mvppca

import (
	"fmt"

	"parley/internal/vectors"
	"parley/method"
	"parley/privacy"
	"parley/study"
)

// Method is Fed-mv-PPCA for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "mvppca" }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return defaults() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	c := &coordinator{plan: p, opts: opts, layout: layout}
	switch {
	case opts.clips():
		c.clips, err = clipPlans(p, opts, layout)
	case opts.Mechanism == MechanismStatistics:
		c.noised, err = newStatisticsPlan(p, opts, layout)
	}
	return c, err
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	h := &site{plan: p, opts: opts, layout: layout, name: name}
	switch {
	case opts.clips():
		h.clipping, err = newClipPlan(p, opts, layout, name)
	case opts.Mechanism == MechanismStatistics:
		h.noised, err = newStatisticsPlan(p, opts, layout)
	}
	return h, err
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
	for kind, times := range p.Method.Options.(*Options).schedule(p) {
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
func (Method) Verify(file []byte, _ vectors.Opener) ([]vectors.Check, error) {
	return VerifyVectors(file)
}

func setUp(p *study.Plan) (*Options, Layout, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, Layout{}, fmt.Errorf("the plan's options are of method %s, not of mvppca", p.Method.Name)
	}
	dims := make([]int, len(p.Views))
	for k, v := range p.Views {
		dims[k] = len(v.Features)
	}
	layout, err := NewLayout(dims, opts.noise())
	return opts, layout, err
}
