package mvppca

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/ppca"
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

// startPublished asks for round 1: expectation maximisation from each site's
// own random start, or MAP from the plan's prior.
func (c *coordinator) startPublished(s *state) ([]method.Task, method.Info, error) {
	if p := c.opts.Published.Prior; p != nil {
		s.Model = packPrior(c.layout, c.initialPrior(p))
	}
	return c.iterate(s)
}

// initialPrior is the plan's prior around loadings drawn from the plan's seed.
func (c *coordinator) initialPrior(p *InitialPrior) *ppca.Prior {
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

func (c *coordinator) iterate(s *state) ([]method.Task, method.Info, error) {
	kind := taskIterate
	if c.opts.clips() && !(c.opts.firstInClear() && s.Phase != taskIterate && s.Phase != taskClip) {
		kind = taskClip
	}
	if s.Phase == taskIterate {
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

func (a *iterateAnswer) check(c *coordinator) error {
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
func (c *coordinator) published(s *state) ([]method.Task, method.Info, error) {
	var params []ppca.Params
	_, _, err := answers(c, s, func(_ string, a *iterateAnswer) error {
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
func (c *coordinator) blur(model *ppca.Prior) {
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
func (c *coordinator) nextRound(s *state) ([]method.Task, error) {
	if s.Round < c.opts.Rounds {
		tasks, _, err := c.iterate(s)
		return tasks, err
	}
	if c.opts.Mechanism == "" {
		tasks, _, err := c.assess(s)
		return tasks, err
	}
	return nil, c.finish(s)
}

// finish ends a private study. How well the model describes the sites would be
// a further release, which nobody has paid for.
func (c *coordinator) finish(s *state) error {
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

// iterateAt runs a published round on a site's blocks.
func (h *site) iterateAt(t *iterateTask, blocks []ppca.Block) (*ppca.Params, error) {
	if err := h.checkRound(t); err != nil {
		return nil, err
	}
	q, d := h.opts.Latent, h.layout.Features()
	rng := draws(h.plan.Seed, h.name, t.Round)
	w, noise := make([]float64, d*q), make([]float64, h.layout.Views())
	var prior *ppca.Prior
	switch {
	case t.Prior == nil: // the authors' later code starts like this
		for i := range w {
			w[i] = rng.Float64()*4 - 2
		}
		for k := range noise {
			noise[k] = 0.1 + 0.4*rng.Float64()
		}
	default:
		var err error
		if prior, err = t.Prior.prior(h.layout); err != nil {
			return nil, err
		}
		if err := h.checkRank(prior.Rank); err != nil {
			return nil, err
		}
		copy(w, prior.W)
		copy(noise, prior.Noise)
		if h.opts.Published.Restart == "draw" {
			drawStart(h.layout, prior, rng, w, noise)
		}
	}
	it, err := ppca.NewPublished(h.layout, blocks, q, w, noise)
	if err != nil {
		return nil, err
	}
	for range h.opts.iterationsIn(t.Round, h.name) {
		if err := it.Step(prior); err != nil {
			return nil, err
		}
	}
	p := it.Params()
	return &p, nil
}

// checkRound refuses rounds that the plan does not have: what is drawn in one
// follows from its number.
func (h *site) checkRound(t *iterateTask) error {
	if t.Round < 1 || t.Round > h.opts.Rounds {
		return fmt.Errorf("round %d, and the plan has %d", t.Round, h.opts.Rounds)
	}
	return nil
}

// drawStart draws θ_c from P(θ_c | θ̃), equations (5) and (6); μ needs no start.
func drawStart(l ppca.Layout, prior *ppca.Prior, rng *rand.Rand, w, noise []float64) {
	q := prior.Rank
	for k := range l.Views() {
		lo, hi := l.View(k)
		sd := math.Sqrt(prior.VarW[k])
		for i := lo * q; i < hi*q; i++ {
			w[i] += sd * rng.NormFloat64()
		}
		if prior.Alpha[k] > 0 {
			noise[k] = distuv.InverseGamma{Alpha: prior.Alpha[k], Beta: prior.Beta[k], Src: rng}.Rand()
		}
	}
}
