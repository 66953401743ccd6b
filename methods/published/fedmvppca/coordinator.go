// Package fedmvppca is the iteration of the paper, exactly, in clear or by a clipping
// mechanism. It is kept for comparison: it shrinks its variances towards zero at every
// round. Use [Coordinator] and [Site].
package fedmvppca

import (
	"fmt"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
)

// Coordinator is the coordinator's half of a study by the published iteration.
func Coordinator(set options.Setup) (method.Coordinator, error) {
	c := way{Common: halves.Common{Setup: set}}
	if set.Options.Clips() {
		var err error
		if c.clips, err = NewPlans(set); err != nil {
			return nil, err
		}
	}
	return halves.NewCoordinator(set, c), nil
}

// way is the iteration of the paper, in clear or by a clipping mechanism.
type way struct {
	halves.Common
	// clips is what each site releases in a private round; nil where no
	// clipping mechanism is in use.
	clips Plans
}

// record is what the private rounds carry.
type record struct {
	// Learned says whether anything that was released stood out of its noise.
	Learned bool `cbor:"learned"`
}

func (way) Record() any { return new(record) }

// Check implements [halves.Way].
func (c way) Check(s *halves.State) error {
	if s.Phase == options.TaskClip && s.Model == nil {
		return fmt.Errorf("it has no model")
	}
	for _, p := range s.Trace {
		if len(p.SDW) == 0 {
			return fmt.Errorf("round %d has no spread between sites", p.Round)
		}
	}
	if !c.Options.Clips() && (s.Phase == options.TaskAssess || s.Phase == method.Done) && len(s.Trace) == 0 {
		return fmt.Errorf("it has no trace of its rounds")
	}
	return nil
}

func own(s *halves.State) *record { return s.Own.(*record) }

func (c way) Steps() int {
	if c.Options.Clips() {
		return c.Options.Rounds
	}
	n := c.Options.Rounds + 1 // and the assessment
	if c.Options.Pools() {
		n++
	}
	return n
}

func (c way) Advance(s *halves.State) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskIterate:
		return c.published(s)
	case options.TaskClip:
		return c.clipped(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c way) Receive(a method.Contribution) (halves.Answer, error) {
	switch a.Kind {
	case options.TaskIterate:
		return halves.Received(a, func(x *IterateAnswer) error { return x.check(c.Setup) })
	case options.TaskClip:
		x, err := c.clips[a.Site].Receive(a)
		return halves.Keep(x, err)
	}
	return halves.Answer{}, fmt.Errorf("no such task")
}

// EstimatesSpread implements [halves.Way]: what the clipping mechanisms have for it is the
// spread of their noise, or the plan's.
func (c way) EstimatesSpread() bool { return !c.Options.Clips() }

func (way) Describe(*halves.State, *fitted.Model) error { return nil }

func (c way) Result(s *halves.State, m *fitted.Model, files []method.File) (*method.Result, error) {
	if !c.Options.Clips() {
		settled := report.Convergence(c.Setup, nil, s.Trace)
		return c.AssessedResult(s, m, files, &settled)
	}
	r := report.Unassessed(c.Setup, m, files, len(c.Staying(s)), c.clips.Section(c.Setup, s.Trace, own(s).Learned))
	r.Headline = append(r.Headline, figure.Fact{Name: "private mechanism", Value: c.Options.Mechanism})
	r.Metrics["rounds"] = float64(s.Round)
	return r, nil
}

// Begin asks for round 1: expectation maximisation from each site's
// own random start, or MAP from the plan's prior.
func (c way) Begin(s *halves.State) ([]method.Task, method.Info, error) {
	if p := c.Options.Published.Prior; p != nil {
		s.Model = options.PackPrior(c.Layout, c.initialPrior(p))
	}
	tasks, err := c.iterate(s)
	return tasks, nil, err
}

// initialPrior is the plan's prior around loadings drawn from the plan's seed.
func (c way) initialPrior(p *options.InitialPrior) *ppca.Prior {
	d, q := c.Layout.Features(), c.Options.Latent
	out := &ppca.Prior{Params: ppca.Params{
		Features: c.Layout.AllFeatures(), Rank: q, W: make([]float64, d*q), Mu: make([]float64, d), Noise: make([]float64, c.Layout.Views()),
	}}
	rng := options.Draws(c.Plan.Seed, "", 0)
	for i := range out.W {
		out.W[i] = rng.NormFloat64() * p.LoadingSD
	}
	for j := range out.Mu {
		out.Mu[j] = p.Mean
	}
	for k := range c.Layout.Views() {
		dropLoadings(c.Layout, &out.Params, k)
		out.VarW = append(out.VarW, p.LoadingSD*p.LoadingSD)
		out.VarMu = append(out.VarMu, p.MeanSD*p.MeanSD)
		out.Alpha, out.Beta = append(out.Alpha, p.NoiseAlpha), append(out.Beta, p.NoiseBeta)
		out.Noise[k] = p.NoiseBeta / (p.NoiseAlpha + 1) // the mode, which exists for every α
	}
	return out
}

// dropLoadings applies the column rule to view k.
func dropLoadings(l ppca.Layout, p *ppca.Params, k int) {
	lo, hi := l.View(k)
	for j := lo; j < hi; j++ {
		clear(p.W[j*p.Rank+EffectiveRank(hi-lo, p.Rank):][:p.Rank-EffectiveRank(hi-lo, p.Rank)])
	}
}

func (c way) iterate(s *halves.State) ([]method.Task, error) {
	kind := options.TaskIterate
	if c.Options.Clips() && !(c.Options.FirstInClear() && s.Phase != options.TaskIterate && s.Phase != options.TaskClip) {
		kind = options.TaskClip
	}
	if s.Phase == options.TaskIterate {
		s.Phase = kind // rounds are counted on after one in clear
	}
	round := s.Round + 1
	if s.Phase != kind {
		round = 1
	}
	return c.Ask(s, kind, func(string) (any, error) {
		return IterateTask{Scale: *s.Scale, Round: round, Prior: s.Model}, nil
	})
}

// published folds a round of the paper's iteration: equations (13), (14), (17),
// (18) and the maximum likelihood of the inverse-gamma prior.
func (c way) published(s *halves.State) ([]method.Task, method.Info, error) {
	var params []ppca.Params
	_, _, err := halves.Answers(c.Common, s, func(_ string, a *IterateAnswer) error {
		p, err := a.Params.Unpack(c.Layout)
		if err == nil {
			params = append(params, *p)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	model, _, err := Master(c.Layout, params)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Complete(&model.Params); err != nil {
		return nil, nil, err
	}
	c.blur(model)
	s.Model = options.PackPrior(c.Layout, model)
	info := s.Trace.Record(s.Round, model)
	tasks, err := c.nextRound(s)
	return tasks, info, err
}

// blur raises noise variances that are next to nothing beside the loadings: sites
// could not compute with them. Where sites are honest they are not.
func (c way) blur(model *ppca.Prior) {
	for k := range c.Layout.Views() {
		lo, hi := c.Layout.View(k)
		squares := 0.0
		for _, w := range model.W[lo*model.Rank : hi*model.Rank] {
			squares += w * w
		}
		if least := squares * float64(c.Layout.Views()) / ppca.Clearest; model.Noise[k] < least {
			model.Noise[k] = least
		}
	}
}

// clipped folds a private round.
func (c way) clipped(s *halves.State) ([]method.Task, method.Info, error) {
	prior, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return nil, nil, err
	}
	sites, all, err := halves.Answers(c.Common, s, c.clips.Check)
	if err != nil {
		return nil, nil, err
	}
	model, stands, err := c.clips.Fold(c.Setup, prior, sites, all)
	if err != nil {
		return nil, nil, fmt.Errorf("round %d: %w: the noise of the private rounds grew without end, as it does if the clipping constants are too large for the budget", s.Round, err)
	}
	var info method.Info
	if c.Options.Mechanism == options.MechanismJoint {
		own(s).Learned = own(s).Learned || stands > 0
		info = method.Info{"share of the released change that stands out of its noise": stands}
	} else {
		info = s.Trace.Record(s.Round, model)
	}
	if err := model.Check(c.Layout); err != nil {
		return nil, nil, err
	}
	s.Model = options.PackPrior(c.Layout, model)
	tasks, err := c.nextRound(s)
	return tasks, info, err
}

// nextRound asks for another round, or ends the rounds. How well the model of a private
// study describes the sites would be a further release, which nobody has paid for.
func (c way) nextRound(s *halves.State) ([]method.Task, error) {
	switch {
	case s.Round < c.Options.Rounds:
		return c.iterate(s)
	case !c.Options.Clips():
		return c.Assess(s)
	}
	model, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	s.Phase = method.Done
	return nil, c.Finish(s, model)
}
