package pvi

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
)

// coordinator is the coordinator's half: a common scale where the plan has none,
// updates of the sites' factors in the order of a schedule, an assessment of the
// model by every site.
type coordinator struct{ *setup }

// state is what the coordinator carries. The posterior is nowhere in it: it is the
// prior times the factors, in the plan's order, so that no change can be in q and
// not in a factor.
type state struct {
	Phase string `cbor:"phase"`
	Turn  int    `cbor:"turn"`  // sequential: place in the plan's sites of the next to be asked
	Round int    `cbor:"round"` // sequential, synchronous: complete rounds
	Asked int    `cbor:"asked"` // updates asked for, of all sites
	// Of all sites: updates folded, the divergence that the last one made, and how
	// many weights a factor was projected in, over all updates.
	Folded    int                    `cbor:"folded"`
	LastKL    float64                `cbor:"last_kl"`
	Projected int                    `cbor:"projected"`
	Left      []string               `cbor:"left"`
	Scale     *scaleMessage          `cbor:"scale"`
	Point     wire.Vector            `cbor:"point"` // variant global: means, then logarithms of variances
	Sites     map[string]*siteRecord `cbor:"sites"`
	Trace     []tracePoint           `cbor:"trace"`
	Stride    int                    `cbor:"stride"` // of the trace; 0 is 1
}

// siteRecord is what the coordinator knows of one site.
type siteRecord struct {
	Factor  gaussianMessage `cbor:"factor"`
	From    gaussianMessage `cbor:"from"`  // q as the site was sent it with the update that it works on
	Asked   int             `cbor:"asked"` // updates asked for
	Folded  int             `cbor:"folded"`
	Moved   float64         `cbor:"moved"` // by its last update, before damping: see moved
	Moments *scaleAnswer    `cbor:"moments"`
	Report  *assessment     `cbor:"report"`
}

// tracePoint is what one update did.
type tracePoint struct {
	Update int     `cbor:"update"` // the study's count, from 1
	KL     float64 `cbor:"kl"`     // of the new q from the old, in nats
}

// maxTrace bounds what a checkpoint holds of a long study.
const maxTrace = 1000

// follow keeps a point of the trace; of a long study only every second, fourth, …
func (s *state) follow(kl float64) {
	s.Folded++
	s.LastKL = kl
	stride := max(s.Stride, 1)
	if s.Folded%stride != 0 {
		return
	}
	s.Trace = append(s.Trace, tracePoint{s.Folded, kl})
	if len(s.Trace) > maxTrace {
		s.Stride = 2 * stride
		s.Trace = slices.DeleteFunc(s.Trace, func(p tracePoint) bool { return p.Update%s.Stride != 0 })
	}
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	s := &state{Sites: map[string]*siteRecord{}}
	for _, name := range c.plan.Sites {
		s.Sites[name] = &siteRecord{Factor: packGaussian(gvi.Flat(c.weights()))}
	}
	c.variant.begin(s)
	return s, nil
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if err := c.variant.check(s); err != nil {
		return nil, err
	}
	for _, name := range c.plan.Sites {
		r := s.Sites[name]
		if r == nil {
			return nil, fmt.Errorf("the state has no site %s", name)
		}
		if _, err := r.Factor.factor(c.weights()); err != nil {
			return nil, fmt.Errorf("the state's factor of site %s: %w", name, err)
		}
		if s.waits(name) {
			if _, err := r.From.density(c.weights()); err != nil {
				return nil, fmt.Errorf("the state's q for site %s: %w", name, err)
			}
		}
	}
	return s, nil
}

// staying lists the sites that have not left, in the plan's order.
func (c *coordinator) staying(s *state) []string {
	return rounds.Staying(c.plan.Sites, s.Left)
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s}
	was := s.Phase
	var err error
	switch was {
	case "":
		s.Phase = taskUpdate
		if c.opts.Scaling == options.ScaleStandard {
			s.Phase = taskScale
			step.Tasks, err = rounds.Ask(taskScale, c.staying(s), func(string) (any, error) { return scaleTask{}, nil })
		}
	case taskScale:
		s.Phase = taskUpdate
		s.Scale, err = c.poolMoments(s)
	case taskUpdate:
		step, err = c.update(s)
	case taskAssess:
		s.Phase = rounds.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == rounds.Done
	step.Progress, step.Of = c.progress(s)
	if was == taskUpdate && s.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.LastKL}
	}
	return step, nil
}

// update asks the sites whose turn it is, or goes on to the assessment.
func (c *coordinator) update(s *state) (method.Step, error) {
	step := method.Step{State: s}
	sites := c.turn(s)
	if c.opts.Schedule == options.ScheduleAsynchronous {
		step.Wait = method.Any
	}
	if len(sites) == 0 {
		if slices.ContainsFunc(c.staying(s), s.waits) {
			return step, nil // for what is still on its way
		}
		return c.assess(s)
	}
	q, err := c.variant.posterior(s)
	if err != nil {
		return step, err
	}
	step.Tasks, err = rounds.Ask(taskUpdate, sites, func(site string) (any, error) {
		r := s.Sites[site]
		r.Asked++
		s.Asked++
		r.From = packGaussian(q)
		return updateTask{Scale: s.Scale, Q: packGaussian(q), Factor: r.Factor, Update: r.Asked}, nil
	})
	if c.opts.Schedule == options.ScheduleAsynchronous {
		for i, site := range sites {
			step.Tasks[i].Takes = c.takes(site, s.Sites[site].Asked)
		}
	}
	return step, err
}

// assess asks every site how well the model predicts, where that costs nothing.
func (c *coordinator) assess(s *state) (method.Step, error) {
	if p := c.protected[c.plan.Sites[0]]; p != nil && p.quality == nil {
		s.Phase = rounds.Done
		return method.Step{State: s}, nil
	}
	s.Phase = taskAssess
	q, err := c.variant.posterior(s)
	if err != nil {
		return method.Step{}, err
	}
	tasks, err := rounds.Ask(taskAssess, c.staying(s), func(string) (any, error) {
		return assessTask{Scale: s.Scale, Q: packGaussian(q)}, nil
	})
	return method.Step{State: s, Tasks: rounds.Optional(tasks)}, err
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	err := rounds.Expect(in, c.plan.Sites, s.Phase)
	if err != nil {
		return nil, err
	}
	r := s.Sites[in.Site]
	switch in.Kind {
	case taskScale:
		a := new(scaleAnswer)
		if err = rounds.Decode(in, a); err == nil {
			err = a.check(len(c.numbers()))
		}
		r.Moments = a
	case taskUpdate:
		if !s.waits(in.Site) {
			return nil, fmt.Errorf("site %s was not asked for an update", in.Site)
		}
		if err = c.fold(s, in); err == nil {
			r.Folded++
			r.From = gaussianMessage{}
		}
	case taskAssess:
		r.Report, err = c.quality(in)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// quality reads how well a site's outcomes are predicted.
func (c *coordinator) quality(in method.Contribution) (*assessment, error) {
	if c.protected[in.Site] != nil {
		sum, err := rounds.OnlySum(in, sumQuality)
		if err != nil {
			return nil, err
		}
		return noisedQuality(sum)
	}
	a := new(assessment)
	if err := rounds.Decode(in, a); err != nil {
		return nil, err
	}
	return a, a.check()
}

// waits says whether an update of the site is on its way.
func (s *state) waits(site string) bool { return s.Sites[site].Asked > s.Sites[site].Folded }

// fold replaces the site's factor, which nobody else has touched since the site was
// asked: the change belongs to it whatever q has become meanwhile.
func (c *coordinator) fold(s *state, in method.Contribution) error {
	before, err := c.variant.posterior(s)
	if err != nil {
		return err
	}
	if err = c.variant.fold(s, in, before); err != nil {
		return err
	}
	after, err := c.variant.posterior(s)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	kl, err := after.KL(before)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	if !gvi.Finite(kl) { // precisions so far apart that their quotient has no digits
		kl = math.MaxFloat64
	}
	s.follow(kl)
	return nil
}

// Leave implements [method.Coordinator]: the site's factor stays.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	left, err := rounds.Leave(c.plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	s.Left = left
	r := s.Sites[site]
	r.Asked, r.From = r.Folded, gaussianMessage{}
	return s, nil
}

// poolMoments makes a common scale from the sites' moments, which are then forgotten.
func (c *coordinator) poolMoments(s *state) (*scaleMessage, error) {
	var moments []*scaleAnswer
	for _, site := range c.plan.Sites {
		if r := s.Sites[site]; r.Moments != nil {
			moments = append(moments, r.Moments)
			r.Moments = nil
		}
	}
	return c.pool(moments)
}

// Share gives every site the model: it is the study's result.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	q, err := c.variant.posterior(s)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(assessTask{Scale: s.Scale, Q: packGaussian(q)})
}
