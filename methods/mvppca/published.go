package mvppca

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
)

// iterateTask asks for a round of the published iteration.
type iterateTask struct {
	Scale scaleMessage  `cbor:"scale"`
	Round int           `cbor:"round"` // from 1; it seeds what is drawn
	Prior *priorMessage `cbor:"prior"` // none in a first round without a prior
}

// iterateAnswer is θ_c.
type iterateAnswer struct {
	Params paramsMessage `cbor:"params"`
}

// draws returns the random numbers of one site in one round: a function of the
// plan's seed, the site's name and the round alone.
func draws(seed uint64, site string, round int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "mvppca %d %q %d", seed, site, round))))
}

// publishedRounds is the iteration of the paper, in clear or by a clipping mechanism.
type publishedRounds struct {
	*coordinator
	// clips is what each site releases in a private round; nil where no
	// clipping mechanism is in use.
	clips map[string]*clipPlan
}

func newPublishedRounds(c *coordinator) (_ *publishedRounds, err error) {
	out := &publishedRounds{coordinator: c}
	if c.opts.Clips() {
		out.clips, err = clipPlans(c.plan, c.opts, c.layout)
	}
	return out, err
}

func (c *publishedRounds) steps() int {
	if c.opts.Clips() {
		return c.opts.Rounds
	}
	n := c.opts.Rounds + 1 // and the assessment
	if c.opts.Pools() {
		n++
	}
	return n
}

func (c *publishedRounds) advance(s *state) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskIterate:
		return c.published(s)
	case options.TaskClip:
		return c.clipped(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c *publishedRounds) receive(a method.Contribution) ([]byte, error) {
	switch a.Kind {
	case options.TaskIterate:
		return received(a, func(x *iterateAnswer) error { return x.check(c) })
	case options.TaskClip:
		if err := bodiless(a); err != nil {
			return nil, err
		}
		x := new(clipAnswer)
		for _, declared := range c.clips[a.Site].sums {
			sum, err := a.Sum(declared.Name)
			if err != nil {
				return nil, err
			}
			x.Sums = append(x.Sums, *sum)
		}
		return keep(x, x.check(c.clips[a.Site]))
	}
	return nil, fmt.Errorf("no such task")
}

// estimatesSpread implements rounds: what the clipping mechanisms have for it is the
// spread of their noise, or the plan's.
func (c *publishedRounds) estimatesSpread() bool { return !c.opts.Clips() }

func (c *publishedRounds) describe(*state, *use.Model) {}

func (c *publishedRounds) result(s *state, m *use.Model, files []method.File) (*method.Result, error) {
	if !c.opts.Clips() {
		return c.assessedResult(s, m, files)
	}
	r := c.unassessed(s, m, files, c.clippingSection(s))
	r.Headline = append(r.Headline, figure.Fact{Name: "private mechanism", Value: c.opts.Mechanism})
	r.Metrics["rounds"] = float64(s.Round)
	return r, nil
}

// begin asks for round 1: expectation maximisation from each site's
// own random start, or MAP from the plan's prior.
func (c *publishedRounds) begin(s *state) ([]method.Task, method.Info, error) {
	if p := c.opts.Published.Prior; p != nil {
		s.Model = packPrior(c.layout, c.initialPrior(p))
	}
	return c.iterate(s)
}

// initialPrior is the plan's prior around loadings drawn from the plan's seed.
func (c *publishedRounds) initialPrior(p *options.InitialPrior) *ppca.Prior {
	d, q := c.layout.Features(), c.opts.Latent
	out := &ppca.Prior{Params: ppca.Params{
		Features: c.layout.AllFeatures(), Rank: q, W: make([]float64, d*q), Mu: make([]float64, d), Noise: make([]float64, c.layout.Views()),
	}}
	rng := draws(c.plan.Seed, "", 0)
	for i := range out.W {
		out.W[i] = rng.NormFloat64() * p.LoadingSD
	}
	for j := range out.Mu {
		out.Mu[j] = p.Mean
	}
	for k := range c.layout.Views() {
		dropLoadings(c.layout, &out.Params, k)
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
		clear(p.W[j*p.Rank+ppca.EffectiveRank(hi-lo, p.Rank):][:p.Rank-ppca.EffectiveRank(hi-lo, p.Rank)])
	}
}

func (c *publishedRounds) iterate(s *state) ([]method.Task, method.Info, error) {
	kind := options.TaskIterate
	if c.opts.Clips() && !(c.opts.FirstInClear() && s.Phase != options.TaskIterate && s.Phase != options.TaskClip) {
		kind = options.TaskClip
	}
	if s.Phase == options.TaskIterate {
		s.Phase = kind // rounds are counted on after one in clear
	}
	round := s.Round + 1
	if s.Phase != kind {
		round = 1
	}
	return c.ask(s, kind, func(string) (any, error) {
		return iterateTask{Scale: *s.Scale, Round: round, Prior: s.Model}, nil
	})
}

func (a *iterateAnswer) check(c *publishedRounds) error {
	p, err := a.Params.params(c.layout)
	if err != nil {
		return err
	}
	if p.Rank != c.opts.Latent {
		return fmt.Errorf("%d factors, not %d", p.Rank, c.opts.Latent)
	}
	for k := range c.layout.Views() {
		if view, err := c.layout.FeaturesOf([]int{k}); err != nil || p.Noise[k] != 0 && !ppca.ContainsAll(p.Features, view) {
			return fmt.Errorf("a part of view %s, where the published method knows whole views", c.plan.Views[k].Name)
		}
	}
	return p.Measured(c.layout)
}

// published folds a round of the paper's iteration: equations (13), (14), (17),
// (18) and the maximum likelihood of the inverse-gamma prior.
func (c *publishedRounds) published(s *state) ([]method.Task, method.Info, error) {
	var params []ppca.Params
	_, _, err := answers(c.coordinator, s, func(_ string, a *iterateAnswer) error {
		p, err := a.Params.params(c.layout)
		if err == nil {
			params = append(params, *p)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	model, _, err := ppca.PublishedMaster(c.layout, params)
	if err != nil {
		return nil, nil, err
	}
	if err := c.complete(&model.Params); err != nil {
		return nil, nil, err
	}
	c.blur(model)
	s.Model = packPrior(c.layout, model)
	info := s.record(s.Round, model)
	tasks, err := c.nextRound(s)
	return tasks, info, err
}

// blur raises noise variances that are next to nothing beside the loadings: sites
// could not compute with them. Where sites are honest they are not.
func (c *publishedRounds) blur(model *ppca.Prior) {
	for k := range c.layout.Views() {
		lo, hi := c.layout.View(k)
		squares := 0.0
		for _, w := range model.W[lo*model.Rank : hi*model.Rank] {
			squares += w * w
		}
		if least := squares * float64(c.layout.Views()) / ppca.Clearest; model.Noise[k] < least {
			model.Noise[k] = least
		}
	}
}

// nextRound asks for another round, or ends the rounds.
func (c *publishedRounds) nextRound(s *state) ([]method.Task, error) {
	if s.Round < c.opts.Rounds {
		tasks, _, err := c.iterate(s)
		return tasks, err
	}
	if !c.opts.Clips() {
		tasks, _, err := c.assess(s)
		return tasks, err
	}
	return nil, c.finish(s)
}

// finish ends a private study. How well the model describes the sites would be
// a further release, which nobody has paid for.
func (c *publishedRounds) finish(s *state) error {
	model, err := s.Model.prior(c.layout)
	if err != nil {
		return err
	}
	s.Phase = phaseDone
	return c.canonical(s, model)
}

// record keeps how the sites spread after a round, and returns it as info.
func (s *state) record(round int, model *ppca.Prior) method.Info {
	varW, varMu := model.Spread()
	point := tracePoint{Round: round, SDW: make(wire.Vector, len(varW)), SDMu: make(wire.Vector, len(varMu))}
	for k := range varW {
		point.SDW[k], point.SDMu[k] = math.Sqrt(varW[k]), math.Sqrt(varMu[k])
	}
	s.Trace = append(s.Trace, point)
	return method.Info{"loadings between sites, largest sd": slices.Max(point.SDW), "means between sites, largest sd": slices.Max(point.SDMu)}
}

// score keeps the log-likelihood per subject of the last model in the trace.
func (s *state) score(logLik float64) float64 {
	s.Trace[len(s.Trace)-1].LogLik = logLik
	return logLik
}

// site returns the record of a site, a new one if there is none.
func (s *state) site(name string) *siteRecord {
	r, ok := s.Sites[name]
	if !ok {
		r = new(siteRecord)
		s.Sites[name] = r
	}
	return r
}
