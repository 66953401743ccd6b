package fedmvppca

import (
	"errors"
	"fmt"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// state is what the coordinator carries.
type state struct {
	Phase   string                        `cbor:"phase"`
	Round   int                           `cbor:"round"` // rounds that were asked for
	Steps   int                           `cbor:"steps"` // tasks given out so far, for progress
	Left    []string                      `cbor:"left"`
	Inbox   method.Inbox                  `cbor:"inbox"` // answers of this round, by site
	Scale   *ppca.Scale                   `cbor:"scale"`
	Model   *PackedPrior                  `cbor:"model"`
	Reports map[string]*fitted.Assessment `cbor:"reports"` // what the sites said of the final model
	Trace   trace                         `cbor:"trace"`
	LogLik  float64                       `cbor:"log_lik"` // of the final model, mean per subject, in nats
	// Views of sites that seem to be in other units.
	Apart     []ppca.Apart `cbor:"apart,omitempty"`
	Strengths wire.Vector  `cbor:"strengths"` // eigenvalues that order the factors, once they are final
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// coordinator is the coordinator's half.
type coordinator struct {
	setup
	releases bySite // in private rounds; nil of a plan without protection
}

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	return &state{Inbox: method.Inbox{}, Reports: map[string]*fitted.Assessment{}}, nil
}

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	return s, method.OpenState(data, s)
}

// steps is how many times the sites are asked.
func (c coordinator) steps() int {
	n := c.own.Rounds
	if !c.private() {
		n++ // the assessment
		if c.Pools() {
			n++
		}
	}
	return n
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	tasks, info, err := c.advance(s)
	if err != nil {
		return method.Step{}, err
	}
	clear(s.Inbox)
	if len(tasks) > 0 {
		s.Steps++
	}
	of := c.steps()
	if s.Phase == method.Done {
		of = max(s.Steps, 1)
		s.Steps = of
	}
	return method.Step{State: s, Tasks: tasks, Done: s.Phase == method.Done, Progress: min(s.Steps, of), Of: of,
		Info: info}, nil
}

// advance works through the answers of the phase and says what comes next.
func (c coordinator) advance(s *state) (tasks []method.Task, info method.Info, err error) {
	switch s.Phase {
	case "":
		if c.Pools() {
			tasks, err = c.ask(s, taskScale, scaleTask{})
			return tasks, nil, err
		}
		return c.begin(s, ppca.StartScale(c.Frame))
	case taskScale:
		sites := c.staying(s)
		all, err := method.Answers[ppca.FeatureSums](s.Inbox, sites)
		if err != nil {
			return nil, nil, err
		}
		scale, apart, err := ppca.PoolScale(c.Frame, sites, all)
		if err != nil {
			return nil, nil, err
		}
		s.Apart = apart
		return c.begin(s, scale)
	case taskIterate:
		return c.iterated(s)
	case taskClip:
		return c.clipped(s)
	case taskAssess:
		return c.assessed(s)
	case method.Done:
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

// ask gives every site that is left a task, and counts the round.
func (c coordinator) ask(s *state, kind string, body any) ([]method.Task, error) {
	if s.Phase != kind {
		s.Phase, s.Round = kind, 0
	}
	s.Round++
	return method.Ask(kind, c.staying(s), func(string) (any, error) { return body, nil })
}

// begin asks for round 1: expectation maximisation from each site's
// own random start, or MAP from the plan's prior.
func (c coordinator) begin(s *state, scale *ppca.Scale) ([]method.Task, method.Info, error) {
	s.Scale = scale
	if p := c.own.Prior; p != nil {
		s.Model = packPrior(c.initialPrior(p))
	}
	tasks, err := c.iterate(s)
	return tasks, nil, err
}

// initialPrior is the plan's prior around loadings drawn from the plan's seed.
func (c coordinator) initialPrior(p *initialPrior) *Prior {
	d, q := c.Layout.Features(), c.own.Latent
	out := &Prior{Params: ppca.Params{
		Features: c.Layout.AllFeatures(), Rank: q, W: make([]float64, d*q), Mu: make([]float64, d),
		Noise: make([]float64, c.Layout.Views()),
	}}
	rng := method.Draws("mvppca %d %q %d", c.Plan.Seed, "", 0)
	for i := range out.W {
		out.W[i] = rng.NormFloat64() * p.LoadingSD
	}
	for j := range out.Mu {
		out.Mu[j] = p.Mean
	}
	for k, d := range c.Layout.Dims {
		lo, hi := c.Layout.View(k)
		for j := lo; j < hi; j++ { // the column rule
			clear(out.W[j*q+effectiveRank(d, q) : (j+1)*q])
		}
		out.VarW = append(out.VarW, p.LoadingSD*p.LoadingSD)
		out.VarMu = append(out.VarMu, p.MeanSD*p.MeanSD)
		out.Alpha, out.Beta = append(out.Alpha, p.NoiseAlpha), append(out.Beta, p.NoiseBeta)
		out.Noise[k] = p.NoiseBeta / (p.NoiseAlpha + 1) // the mode, which exists for every α
	}
	return out
}

// iterate asks for the next round.
func (c coordinator) iterate(s *state) ([]method.Task, error) {
	kind := taskIterate
	begun := s.Phase == taskIterate || s.Phase == taskClip
	if c.private() && (begun || !c.own.firstInClear()) {
		kind = taskClip
	}
	if begun {
		s.Phase = kind // rounds are counted on after one in clear
	}
	round := 1
	if begun {
		round = s.Round + 1
	}
	return c.ask(s, kind, iterateTask{Scale: *s.Scale, Round: round, Prior: s.Model})
}

// iterated folds a round in clear: equations (13), (14), (17), (18) and the maximum
// likelihood of the inverse-gamma prior.
func (c coordinator) iterated(s *state) ([]method.Task, method.Info, error) {
	all, err := method.Answers[iterateAnswer](s.Inbox, c.staying(s))
	if err != nil {
		return nil, nil, err
	}
	var params []ppca.Params
	for _, a := range all {
		p, err := a.Params.unpack(c.Layout)
		if err != nil {
			return nil, nil, err
		}
		params = append(params, *p)
	}
	model, _, err := updateMaster(c.Layout, params)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Complete(model.Params.Features); err != nil {
		return nil, nil, err
	}
	c.blur(model)
	return c.nextRound(s, model)
}

// clearest bounds how far the factors of a model stand out of its noise, tr WᵀΨ⁻¹W: beyond, the precision of the
// factors is not to be inverted.
const clearest = 1e13

// blur raises noise variances that are next to nothing beside the loadings: sites
// could not compute with them. Where sites are honest they are not.
func (c coordinator) blur(model *Prior) {
	for k := range c.Layout.Views() {
		lo, hi := c.Layout.View(k)
		squares := 0.0
		for _, w := range model.W[lo*model.Rank : hi*model.Rank] {
			squares += w * w
		}
		if least := squares * float64(c.Layout.Views()) / clearest; model.Noise[k] < least {
			model.Noise[k] = least
		}
	}
}

// clipped folds a private round.
func (c coordinator) clipped(s *state) ([]method.Task, method.Info, error) {
	prior, err := s.Model.unpack(c.Layout)
	if err != nil {
		return nil, nil, err
	}
	sites := c.staying(s)
	all, err := method.Answers[noisedAnswer](s.Inbox, sites)
	if err != nil {
		return nil, nil, err
	}
	model, err := c.releases.fold(c.Layout, prior, sites, all)
	if err != nil {
		return nil, nil, fmt.Errorf("round %d: %w: the noise of the private rounds grew without end, as it does if "+
			"the clipping constants are too large for the budget", s.Round, err)
	}
	return c.nextRound(s, model)
}

// nextRound keeps a round's model and asks for another round, or ends the rounds. How well the
// model of a private study describes the sites would be a further release, which nobody has paid for.
func (c coordinator) nextRound(s *state, model *Prior) (tasks []method.Task, info method.Info, err error) {
	info = s.Trace.record(s.Round, model)
	if err := model.Check(c.Layout); err != nil {
		return nil, nil, err
	}
	s.Model = packPrior(model)
	if s.Round < c.own.Rounds {
		tasks, err = c.iterate(s)
		return tasks, info, err
	}
	if model, err = s.Model.unpack(c.Layout); err != nil {
		return nil, nil, err
	}
	turned, strengths, _, err := ppca.Canonical(c.Layout, &model.Params)
	if err != nil {
		return nil, nil, err
	}
	model.Params = *turned
	s.Model, s.Strengths = packPrior(model), strengths
	if c.private() {
		s.Phase = method.Done
		return nil, info, nil
	}
	tasks, err = c.ask(s, taskAssess, s.finished())
	return method.Optional(tasks), info, err
}

// finished is the model as sites get it.
func (s *state) finished() fitted.AssessTask {
	t := fitted.AssessTask{Model: s.Model.Params}
	t.Scale.Scale = *s.Scale
	return t
}

// assessed keeps what the sites said; then the study is done.
func (c coordinator) assessed(s *state) ([]method.Task, method.Info, error) {
	sites := c.staying(s)
	all, err := method.Answers[fitted.Assessment](s.Inbox, sites)
	if err != nil {
		return nil, nil, err
	}
	for i, site := range sites {
		s.Reports[site] = all[i]
	}
	s.Phase = method.Done
	if len(all) == 0 {
		return nil, nil, nil
	}
	sum := fitted.Together(all)
	s.LogLik = sum.LogLik / float64(sum.Subjects())
	return nil, method.Info{"log-likelihood per subject": s.LogLik}, nil
}

// Fold keeps an answer until the round is complete, so that it is worked
// through in the plan's order of sites. What is wrong with it shows now.
func (c coordinator) Fold(ms method.State, a method.Contribution) (method.State, error) {
	s := ms.(*state)
	_, answered := s.Inbox[a.Site]
	if err := errors.Join(method.Expect(a, c.staying(s), s.Phase), method.Once(a, answered)); err != nil {
		return nil, err
	}
	kept, err := c.receive(a)
	if err != nil {
		return nil, fmt.Errorf("site %s: its answer to %q: %w", a.Site, a.Kind, err)
	}
	s.Inbox.Keep(a.Site, kept)
	return s, nil
}

// receive checks an answer, and returns what is kept of it.
func (c coordinator) receive(a method.Contribution) (any, error) {
	switch a.Kind {
	case taskScale:
		return method.Received(a, func(x *ppca.FeatureSums) error {
			return x.Check(c.Layout.Features(), c.own.Scaling == ppca.ScaleMinMax)
		})
	case taskAssess:
		return method.Received(a, func(x *fitted.Assessment) error { return x.Check(c.Layout, c.own.Latent) })
	case taskIterate:
		return method.Received(a, func(x *iterateAnswer) error { return x.check(c.setup) })
	}
	return c.releases[a.Site].receive(a)
}

// staying are the sites that have not left, in the plan's order.
func (c coordinator) staying(s *state) []string { return method.Staying(c.Plan.Sites, s.Left) }

// Leave goes on without a site. What it said before stays in the model.
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	var err error
	if s.Left, err = method.Leave(c.Plan.Sites, s.Left, site); err != nil {
		return nil, err
	}
	// a final model stands without being assessed
	if len(c.staying(s)) == 0 && len(s.Strengths) == 0 {
		return nil, fmt.Errorf("no site is left")
	}
	return s, nil
}

// point is how the fit stood after a round.
type point struct {
	Round int         `cbor:"round"`
	SDW   wire.Vector `cbor:"sd_w"` // between sites, per view; none before the first round
	SDMu  wire.Vector `cbor:"sd_mu"`
}

// trace is how the fit stood after each round.
type trace []point
