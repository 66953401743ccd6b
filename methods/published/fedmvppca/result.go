package fedmvppca

import (
	"encoding/json"
	"fmt"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/report"
)

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	sites := c.reports(s)
	m, err := c.model(s, sites)
	if err != nil {
		return nil, err
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	staying := len(method.Staying(c.Plan.Sites, s.Left))
	switch {
	case c.private():
		r := report.Unassessed(c.Setup, m, files, staying, c.releases.section(c.setup, s.Trace))
		r.Headline = append(r.Headline, figure.Fact{Name: "private mechanism", Value: "difference-clipping"})
		r.Metrics["rounds"] = float64(s.Round)
		return r, nil
	case len(sites) == 0:
		return report.Unassessed(c.Setup, m, files, staying), nil
	}
	settled := report.Convergence(c.Setup, nil, s.Trace)
	return report.Assessed(c.Setup, m, files, sites, s.Trace[len(s.Trace)-1].Round, &settled)
}

// reports lists the sites' assessments in the plan's order.
func (c coordinator) reports(s *state) (sites []report.Site) {
	for _, name := range c.Plan.Sites {
		if r := s.Reports[name]; r != nil {
			sites = append(sites, report.Site{Name: name, Assessment: r})
		}
	}
	return sites
}

// model names what was fitted. What private rounds have for the spread between sites is that of
// their noise, or the plan's, and is left out.
func (c coordinator) model(s *state, sites []report.Site) (*fitted.Model, error) {
	prior, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	scale, err := s.Scale.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	digest, err := c.Plan.Digest()
	if err != nil {
		return nil, err
	}
	said, err := json.Marshal(c.own)
	if err != nil {
		return nil, err
	}
	m := fitted.NewModelFile(c.Plan, c.Options, digest.String(), scale, prior, s.Strengths)
	m.Options, m.Published = nil, &fitted.Published{Method: Name, TypicalSite: true, Private: c.private(), Options: said}
	if !c.private() {
		m.Spread(prior, c.Layout)
	}
	if len(sites) == 0 {
		return m, nil
	}
	m.LogLik = &s.LogLik
	report.AddSites(m, sites)
	m.Verdicts, err = report.Verdicts(c.Setup, m, &prior.Params, sites, s.Apart, s.Standardised)
	return m, err
}

// Share gives every site the whole model, which is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(options.AssessTask{Scale: *s.Scale, Model: s.Model.Params})
}
