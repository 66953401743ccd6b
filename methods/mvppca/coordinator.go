package mvppca

import (
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
	"parley/study"
)

// coordinator is the coordinator's half, as far as all ways to fit have it in common:
// a scale, the way's own rounds, an assessment of the model by every site.
type coordinator struct {
	plan   *study.Plan
	opts   *options.Options
	layout ppca.Layout
	way    rounds
}

// rounds is one way to fit a model, between the scale and the assessment. There are
// three, each a coordinator's half with its own part of a site's ([siteRounds]):
// federatedRounds, statisticsRounds, publishedRounds.
type rounds interface {
	// steps is how many times the sites are asked, at most.
	steps() int
	// begin gives out the first tasks, once the scale is known.
	begin(s *state) ([]method.Task, method.Info, error)
	// advance works through the answers of one of the way's phases.
	advance(s *state) ([]method.Task, method.Info, error)
	// receive checks an answer in such a phase, and returns what is kept of it.
	receive(a method.Contribution) ([]byte, error)
	// estimatesSpread says whether anything is learned of how sites differ.
	estimatesSpread() bool
	// describe adds to the model's file what only this way knows.
	describe(s *state, m *use.Model)
	// result draws the model that is in these files.
	result(s *state, m *use.Model, files []method.File) (*method.Result, error)
}

// phaseDone follows the last task; the other phases are named by the task
// whose answers they wait for, and "" is the start.
const phaseDone = "done"

// state is what the coordinator carries, whichever way it fits: a checkpoint says
// nothing of the way, the plan does.
type state struct {
	Phase string                 `cbor:"phase"`
	Round int                    `cbor:"round"` // rounds of the phase that were asked for
	Steps int                    `cbor:"steps"` // tasks given out so far, for progress
	Left  []string               `cbor:"left"`
	Inbox map[string][]byte      `cbor:"inbox"` // answers of this round, by site
	Scale *scaleMessage          `cbor:"scale"`
	Model *priorMessage          `cbor:"model"`
	Sites map[string]*siteRecord `cbor:"sites"`
	Trace []tracePoint           `cbor:"trace"`
	// OneShot is what the one shot found; none in the published variant.
	OneShot *oneShotRecord `cbor:"one_shot"`
	LogLik  float64        `cbor:"log_lik"` // of the final model, mean per subject, in nats
	// Strengths are the eigenvalues that order the factors, once they are final.
	Strengths wire.Vector `cbor:"strengths"`
	// Of mechanism statistics: what privacy noise adds to the variance of each
	// feature's predictions, and the variance explained by the noised sums.
	Doubt  wire.Vector `cbor:"doubt"`
	Pooled *assessment `cbor:"pooled"`
}

// siteRecord is what the coordinator knows of one site.
type siteRecord struct {
	Local  *paramsMessage `cbor:"local"` // its own parameters, where its next hierarchical round starts
	Nu     wire.Vector    `cbor:"nu"`    // mean of its factors under them: q
	Xi     wire.Vector    `cbor:"xi"`    // and their covariance: q × q by rows
	Report *assessment    `cbor:"report"`
	// Of mechanism statistics: what it released.
	Released *statisticsRecord `cbor:"released"`
	Checked  *checkAnswer      `cbor:"checked"` // its diagnostics of the model, if it gave any
}

// oneShotRecord is the one shot's model, and how its fit went.
type oneShotRecord struct {
	Params    paramsMessage `cbor:"params"`
	Trace     wire.Vector   `cbor:"trace"` // log-likelihood per subject of the pseudo-data, by iteration
	Converged bool          `cbor:"converged"`
}

// tracePoint is how the fit stood after a round; round 0 is the one shot.
type tracePoint struct {
	Round  int         `cbor:"round"`
	LogLik float64     `cbor:"log_lik"` // of the round's model, mean per subject; 0 until the next round tells
	SDW    wire.Vector `cbor:"sd_w"`    // between sites, per view; none before the first round
	SDMu   wire.Vector `cbor:"sd_mu"`
	// StandsOut is the share of what a round of joint-clipping released that
	// stood out of its noise.
	StandsOut float64 `cbor:"stands_out,omitempty"`
}

func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

func (c *coordinator) Init() (method.State, error) {
	return &state{Inbox: map[string][]byte{}, Sites: map[string]*siteRecord{}}, nil
}

func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Inbox == nil {
		s.Inbox = map[string][]byte{}
	}
	if s.Sites == nil {
		s.Sites = map[string]*siteRecord{}
	}
	return s, nil
}

func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	tasks, info, err := c.advance(s)
	if err != nil {
		return method.Step{}, err
	}
	clear(s.Inbox)
	if len(tasks) > 0 {
		s.Steps++
	}
	of := c.way.steps()
	if s.Phase == phaseDone {
		s.Steps, of = max(s.Steps, 1), max(s.Steps, 1) // rounds may have ended early
	}
	return method.Step{State: s, Tasks: tasks, Done: s.Phase == phaseDone, Progress: min(s.Steps, of), Of: of, Info: info}, nil
}

// advance works through the answers of the phase and says what comes next.
func (c *coordinator) advance(s *state) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case "":
		if c.opts.Pools() {
			return c.ask(s, options.TaskScale, func(string) (any, error) { return scaleTask{}, nil })
		}
		scale := unitScale(c.layout.Features())
		if c.opts.Scaling == options.ScaleRange {
			scale = rangeScale(c.plan)
		}
		s.Scale = &scaleMessage{scale.Shift, scale.Factor}
		return c.way.begin(s)
	case options.TaskScale:
		if err := c.poolScale(s); err != nil {
			return nil, nil, err
		}
		return c.way.begin(s)
	case options.TaskAssess:
		return c.assessed(s)
	case phaseDone:
		return nil, nil, nil
	}
	return c.way.advance(s)
}

// ask gives every site that is left a task.
func (c *coordinator) ask(s *state, kind string, body func(site string) (any, error)) (tasks []method.Task, _ method.Info, _ error) {
	if s.Phase != kind {
		s.Phase, s.Round = kind, 0
	}
	s.Round++
	for _, site := range c.present(s) {
		b, err := body(site)
		if err != nil {
			return nil, nil, err
		}
		data, err := wire.Marshal(b)
		if err != nil {
			return nil, nil, fmt.Errorf("encoding task %q for site %s: %w", kind, site, err)
		}
		tasks = append(tasks, method.Task{Site: site, Kind: kind, Body: data, Optional: kind == options.TaskCheck || kind == options.TaskAssess})
	}
	return tasks, nil, nil
}

// present lists the sites that have not left, in the plan's order.
func (c *coordinator) present(s *state) []string {
	return slices.DeleteFunc(slices.Clone(c.plan.Sites), func(site string) bool { return slices.Contains(s.Left, site) })
}

// Fold keeps an answer until the round is complete, so that it is worked
// through in the plan's order of sites. What is wrong with it shows now.
func (c *coordinator) Fold(ms method.State, a method.Contribution) (method.State, error) {
	s := ms.(*state)
	switch {
	case !slices.Contains(c.present(s), a.Site):
		return nil, fmt.Errorf("%q is not a site of this study, or has left it", a.Site)
	case a.Kind != s.Phase:
		return nil, fmt.Errorf("an answer to %q while waiting for %q", a.Kind, s.Phase)
	case s.Inbox[a.Site] != nil:
		return nil, fmt.Errorf("site %s has already answered", a.Site)
	}
	kept, err := c.receive(a)
	if err != nil {
		return nil, fmt.Errorf("site %s: its answer to %q: %w", a.Site, a.Kind, err)
	}
	s.Inbox[a.Site] = kept
	return s, nil
}

// receive checks an answer, and returns what is kept of it.
func (c *coordinator) receive(a method.Contribution) ([]byte, error) {
	switch a.Kind {
	case options.TaskScale:
		return received(a, func(x *featureSums) error { return x.check(c.layout.Features(), c.opts.Scaling == options.ScaleMinMax) })
	case options.TaskAssess:
		return received(a, func(x *assessment) error { return x.check(c.layout, c.opts.Latent) })
	}
	return c.way.receive(a)
}

// received checks an answer that is kept as it came.
func received[A any](a method.Contribution, check func(*A) error) ([]byte, error) {
	x := new(A)
	if err := wire.Unmarshal(a.Body, x); err != nil {
		return nil, err
	}
	return a.Body, check(x)
}

// bodiless demands that noised sums are all of an answer.
func bodiless(a method.Contribution) error {
	if len(a.Body) > 0 {
		return fmt.Errorf("%d bytes beside the noised sums, which are all that was asked for", len(a.Body))
	}
	return nil
}

func keep(x any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return wire.Marshal(x)
}

// Leave goes on without a site. What it said before stays in the model.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	s.Left = append(s.Left, site)
	if len(c.present(s)) == 0 && s.Phase != options.TaskCheck && s.Phase != options.TaskAssess { // the model stands without being assessed
		return nil, fmt.Errorf("no site is left")
	}
	return s, nil
}

// answers decodes the inbox in the plan's order of sites.
func answers[A any](c *coordinator, s *state, check func(site string, a *A) error) (sites []string, all []*A, err error) {
	for _, site := range c.present(s) {
		data, ok := s.Inbox[site]
		if !ok {
			return nil, nil, fmt.Errorf("site %s has not answered %q", site, s.Phase)
		}
		a := new(A)
		if err := wire.Unmarshal(data, a); err != nil {
			return nil, nil, fmt.Errorf("site %s: decoding its answer to %q: %w", site, s.Phase, err)
		}
		if err := check(site, a); err != nil {
			return nil, nil, fmt.Errorf("site %s: its answer to %q: %w", site, s.Phase, err)
		}
		sites, all = append(sites, site), append(all, a)
	}
	return sites, all, nil
}

func (c *coordinator) poolScale(s *state) error {
	extremes := c.opts.Scaling == options.ScaleMinMax
	_, all, err := answers(c, s, func(_ string, a *featureSums) error { return a.check(c.layout.Features(), extremes) })
	if err != nil {
		return err
	}
	pooled := newFeatureSums(c.layout.Features())
	for _, a := range all {
		pooled.merge(a, extremes)
	}
	scale, err := pooled.scale(c.plan, c.layout, c.opts.Scaling)
	if err != nil {
		return err
	}
	s.Scale = &scaleMessage{scale.Shift, scale.Factor}
	return nil
}
