package mvppca

import (
	"errors"
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
)

// federatedRounds is the default: one shot, then hierarchical rounds.
type federatedRounds struct{ *coordinator }

func (c *federatedRounds) steps() int {
	n := c.opts.Rounds + 2 // the one shot and the assessment
	if c.opts.Pools() {
		n++
	}
	return n
}

func (c *federatedRounds) begin(s *state) ([]method.Task, method.Info, error) {
	return c.ask(s, options.TaskFit, func(string) (any, error) { return fitTask{Scale: *s.Scale}, nil })
}

func (c *federatedRounds) advance(s *state) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskFit:
		return c.oneShot(s)
	case options.TaskRefine:
		return c.refine(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c *federatedRounds) receive(a method.Contribution) ([]byte, error) {
	switch a.Kind {
	case options.TaskFit:
		return received(a, func(x *fitAnswer) error { return x.check(c.layout) })
	case options.TaskRefine:
		return received(a, func(x *refineAnswer) error { return x.check(c) })
	}
	return nil, fmt.Errorf("no such task")
}

func (c *federatedRounds) estimatesSpread() bool { return c.opts.Rounds > 0 }

func (c *federatedRounds) describe(*state, *use.Model) {}

func (c *federatedRounds) result(s *state, m *use.Model, files []method.File) (*method.Result, error) {
	return c.assessedResult(s, m, files)
}

// oneShot fits one model to what the sites said of themselves, taken as data:
// the answer after a single round. What follows estimates how sites differ.
func (c *federatedRounds) oneShot(s *state) ([]method.Task, method.Info, error) {
	var blocks []ppca.Block
	_, _, err := answers(c.coordinator, s, func(site string, a *fitAnswer) error {
		own, err := a.blocks(c.layout)
		blocks = append(blocks, own...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	fit, err := ppca.Fit(c.layout, blocks, c.opts.Latent, nil, ppca.FitOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	if err := c.complete(&fit.Params); err != nil {
		return nil, nil, err
	}
	model, err := ppca.Weak(c.layout, &fit.Params)
	if err != nil {
		return nil, nil, err
	}
	s.Model = packPrior(c.layout, model)
	s.OneShot = &oneShotRecord{Params: s.Model.Params, Trace: fit.Trace, Converged: fit.Converged}
	s.Trace = append(s.Trace, tracePoint{})
	info := method.Info{"iterations": float64(fit.Iterations), "log-likelihood per subject of the pseudo-data": fit.LogLik / fit.Subjects}
	if c.opts.Rounds == 0 {
		tasks, _, err := c.assess(s)
		return tasks, info, err
	}
	tasks, _, err := c.askRefine(s)
	return tasks, info, err
}

func (a *fitAnswer) check(l ppca.Layout) error {
	_, err := a.blocks(l)
	return err
}

// complete demands that the sites together have every feature of the plan.
func (c *coordinator) complete(p *ppca.Params) error {
	if len(p.Features) == c.layout.Features() {
		return nil
	}
	at := 0
	for k, v := range c.plan.Views {
		lo, hi := c.layout.View(k)
		for j := lo; j < hi; j++ {
			if at < len(p.Features) && p.Features[at] == j {
				at++
				continue
			}
			return fmt.Errorf("no site has a single value of feature %s of view %s: leave it out of the plan", v.Features[j-lo].Name, v.Name)
		}
	}
	return nil
}

// blocks turns a site's answer into data for the coordinator's fit.
func (a *fitAnswer) blocks(l ppca.Layout) ([]ppca.Block, error) {
	patterns, err := unpackPatterns(a.Patterns, l)
	if err != nil {
		return nil, err
	}
	if a.Params == nil && len(a.Moments) == 0 {
		return nil, fmt.Errorf("it holds neither parameters nor moments")
	}
	if a.Params != nil {
		if len(a.Moments) > 0 {
			return nil, fmt.Errorf("it holds both parameters and moments")
		}
		p, err := a.Params.params(l)
		if err != nil {
			return nil, err
		}
		if err := p.Measured(l); err != nil {
			return nil, err
		}
		return ppca.PseudoBlocks(l, p, patterns)
	}
	var blocks []ppca.Block
	for i := range a.Moments {
		b, err := a.Moments[i].block(l)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(b.Measured(), b.MakePossible()); err != nil {
			return nil, err
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}

// refineTask asks for a hierarchical round.
type refineTask struct {
	Scale scaleMessage `cbor:"scale"`
	Prior priorMessage `cbor:"prior"`
	Start *siteStart   `cbor:"start"` // none in the first round
}

// siteStart is where the round before left a site.
type siteStart struct {
	Params paramsMessage `cbor:"params"`
	Nu     wire.Vector   `cbor:"nu"`
	Xi     wire.Vector   `cbor:"xi"`
}

// refineAnswer is what a site's likelihood says of its own parameters, without
// the prior, and how likely the global model made its subjects.
type refineAnswer struct {
	Runs     [][2]int    `cbor:"runs"`
	Y        wire.Matrix `cbor:"y"`
	Class    []int       `cbor:"class"`
	R        wire.Vector `cbor:"r"`
	Noise    wire.Vector `cbor:"noise"`
	SS       wire.Vector `cbor:"ss"`
	Cells    wire.Vector `cbor:"cells"`
	Spent    wire.Vector `cbor:"spent"`
	Subjects float64     `cbor:"subjects"`
	Nu       wire.Vector `cbor:"nu"`
	Xi       wire.Vector `cbor:"xi"`
	LogLik   float64     `cbor:"log_lik"`
}

func (a *refineAnswer) message(l ppca.Layout) (*ppca.SiteMessage, error) {
	described, err := features(a.Runs, l)
	if err != nil {
		return nil, err
	}
	if err := ppca.Finite("log-likelihood", []float64{a.LogLik}); err != nil {
		return nil, err
	}
	m := &ppca.SiteMessage{
		Features: described, Rank: a.Y.Cols - 1, Y: a.Y.Data, Class: a.Class, R: a.R,
		Noise: a.Noise, SS: a.SS, Cells: a.Cells, Spent: a.Spent, Subjects: a.Subjects, Nu: a.Nu, Xi: a.Xi,
	}
	return m, m.Check(l)
}

func (c *federatedRounds) askRefine(s *state) ([]method.Task, method.Info, error) {
	return c.ask(s, options.TaskRefine, func(site string) (any, error) {
		t := refineTask{Scale: *s.Scale, Prior: *s.Model}
		if r := s.Sites[site]; r != nil && r.Local != nil {
			t.Start = &siteStart{Params: *r.Local, Nu: r.Nu, Xi: r.Xi}
		}
		return t, nil
	})
}

func (a *refineAnswer) check(c *federatedRounds) error {
	m, err := a.message(c.layout)
	if err != nil {
		return err
	}
	if m.Rank != c.opts.Latent {
		return fmt.Errorf("%d factors, not %d", m.Rank, c.opts.Latent)
	}
	return m.Measured()
}

// settledAfter is how many rounds the variances between sites need at least.
const settledAfter = 3

// refine folds a hierarchical round.
func (c *federatedRounds) refine(s *state) ([]method.Task, method.Info, error) {
	var messages []ppca.SiteMessage
	logLik, subjects := 0.0, 0.0
	sites, _, err := answers(c.coordinator, s, func(_ string, a *refineAnswer) error {
		m, err := a.message(c.layout)
		if err != nil {
			return err
		}
		messages = append(messages, *m)
		logLik, subjects = logLik+a.LogLik, subjects+a.Subjects
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	model, states, err := ppca.Pool(c.layout, messages)
	if err != nil {
		return nil, nil, err
	}
	if err := c.complete(&model.Params); err != nil {
		return nil, nil, err
	}
	found, err := c.oneShotParams(s)
	if err != nil {
		return nil, nil, err
	}
	sound := c.sound(&model.Params, &found)
	if !sound {
		if model, err = ppca.Weak(c.layout, &found); err != nil {
			return nil, nil, err
		}
	}
	s.Model = packPrior(c.layout, model)
	for i, name := range sites {
		local := packParams(c.layout, &states[i].Params)
		r := s.site(name)
		r.Local, r.Nu, r.Xi = &local, states[i].Nu, states[i].Xi
		if !sound {
			r.Local, r.Nu, r.Xi = nil, nil, nil
		}
	}
	scored := s.score(logLik / subjects) // the model that the round began with
	info := s.record(s.Round, model)
	info["log-likelihood per subject"] = scored
	if s.Round < c.opts.Rounds && !c.settled(s) {
		tasks, _, err := c.askRefine(s)
		return tasks, info, err
	}
	// The rounds were for the spread between sites. The pooled population is
	// described by the one shot, its maximum likelihood; W̃ and μ̃ of the rounds
	// are those of a typical site, which on real data fit pooled rows less well.
	model.Params = found
	s.Model = packPrior(c.layout, model)
	tasks, _, err := c.assess(s)
	return tasks, info, err
}

// mostApart is by how many standard deviations of the whole population a typical
// site may differ from it: what differs by more is no estimate, and sites could
// not compute with it. Sites that are all honest are part of the population, and
// so is what they differ by.
const mostApart = 1e6

// sound holds the model of a typical site against that of the population.
func (c *federatedRounds) sound(p, population *ppca.Params) bool {
	group, q := c.layout.GroupOf(), population.Rank
	strength := 0.0
	for _, j := range population.Features {
		variance := population.Noise[group[j]]
		for _, w := range population.W[j*q:][:q] {
			variance += w * w
		}
		limit := mostApart * math.Sqrt(variance)
		if ppca.Within("loadings", p.W[j*q:][:q], limit) != nil || !(math.Abs(p.Mu[j]-population.Mu[j]) <= limit) {
			return false
		}
		for _, w := range p.W[j*q:][:q] {
			strength += w * w / p.Noise[group[j]]
		}
	}
	return strength <= ppca.Clearest
}

func (c *federatedRounds) oneShotParams(s *state) (ppca.Params, error) {
	p, err := s.OneShot.Params.params(c.layout)
	if err != nil {
		return ppca.Params{}, fmt.Errorf("restoring the one shot: %w", err)
	}
	return *p, nil
}

// settled says whether the last round whose gain is known gained less than the
// tolerance.
func (c *federatedRounds) settled(s *state) bool {
	n := len(s.Trace)
	return s.Round >= settledAfter && math.Abs(s.Trace[n-2].LogLik-s.Trace[n-3].LogLik) < *c.opts.Tolerance
}
