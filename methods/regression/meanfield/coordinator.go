// Package meanfield is a posterior of independent weights: the prior times a factor of each site,
// which it refines against those of all others. A plan gets it where a posterior of all weights
// together is out of reach. Without privacy, one site after the other sends the exact local
// optimum; with it, sites send noised sums of natural gradients, by default all at once.
//
// What comes from the other end is checked, and gives errors, never panics.
package meanfield

import (
	"errors"
	"fmt"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
)

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	noised *sums // what sites release under differential privacy; nil without it
}

// coordinator asks for a common scale where the plan has none, for updates of the sites' factors,
// and how well the model predicts.
type coordinator struct{ *common }

func newCommon(s *options.Setup) (*common, error) {
	c := &common{Setup: s}
	if !s.Plan.Privacy.Differential() {
		return c, nil
	}
	var err error
	c.noised, err = c.protect()
	return c, err
}

// New is the coordinator's half of a study.
func New(s *options.Setup) (method.Coordinator, error) {
	c, err := newCommon(s)
	return coordinator{c}, err
}

// state is what the coordinator carries.
type state struct {
	Phase   string                         `cbor:"phase"`
	Turn    int                            `cbor:"turn"`  // place in the plan's sites of the next to be asked, where all are asked in turn
	Round   int                            `cbor:"round"` // complete rounds
	Asked   int                            `cbor:"asked"` // updates asked for, of all sites
	Left    []string                       `cbor:"left"`
	Scale   *options.Scale                 `cbor:"scale"`
	Sites   map[string]*options.SiteFactor `cbor:"sites"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
	Trace   options.Trace                  `cbor:"trace"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	return &state{Sites: c.Factors(), Reports: map[string]*predict.Assessment{}}, nil
}

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Reports == nil {
		s.Reports = map[string]*predict.Assessment{}
	}
	check := (*predict.Assessment).CheckAlone
	if c.noised != nil {
		check = (*predict.Assessment).CheckNoised
	}
	if err := errors.Join(method.KnownPhase(s.Phase, s.Left, c.Plan.Sites, options.TaskScale, options.TaskUpdate, options.TaskAssess),
		c.CheckFactors(s.Sites), s.Trace.Check(), method.Kept(s.Reports, c.Plan.Sites, "assessment", check)); err != nil {
		return nil, err
	}
	if s.Phase != "" && s.Phase != options.TaskScale {
		if _, err := c.Scaled(s.Scale); err != nil {
			return nil, fmt.Errorf("the state's scale: %w", err)
		}
	}
	if s.Turn < 0 || s.Turn >= len(c.Plan.Sites) || s.Round < 0 || s.Asked < 0 {
		return nil, fmt.Errorf("the state's place in the schedule is none of the plan's")
	}
	if _, err := c.posterior(s); err != nil {
		return nil, fmt.Errorf("the state's posterior: %w", err)
	}
	return s, nil
}

func (c coordinator) staying(s *state) []string { return method.Staying(c.Plan.Sites, s.Left) }

// posterior is the prior times the factors; noised ones are tempered by what noise they hold.
func (c coordinator) posterior(s *state) (glm.Gaussian, error) {
	if c.noised == nil {
		return c.Product(s.Sites)
	}
	q := c.tempered(s)
	return q, q.CheckProper(c.Weights())
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s}
	was := s.Phase
	var err error
	switch was {
	case "":
		s.Phase = options.TaskUpdate
		if c.Options.Scaling == options.ScaleStandard {
			s.Phase = options.TaskScale
			step.Tasks, err = method.Ask(options.TaskScale, c.staying(s), func(string) (any, error) { return options.ScaleTask{}, nil })
		}
	case options.TaskScale:
		s.Phase = options.TaskUpdate
		s.Scale, err = c.PoolFactors(s.Sites)
	case options.TaskUpdate:
		step.Tasks, err = c.ask(s)
	case options.TaskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress, step.Of = s.Asked, c.Options.Rounds*len(c.Plan.Sites)
	if c.together() {
		step.Progress, step.Of = s.Round, c.Options.Rounds
	}
	step.Of++ // the assessment
	if step.Done || s.Phase == options.TaskAssess {
		step.Progress = step.Of
	}
	step.Progress = min(step.Progress, step.Of)
	if was == options.TaskUpdate && s.Trace.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.Trace.LastKL}
	}
	return step, nil
}

// ask asks the sites whose turn it is, or all of them how well the model predicts, where that
// costs nothing.
func (c coordinator) ask(s *state) ([]method.Task, error) {
	sites := c.turn(s)
	if len(sites) == 0 && c.noised != nil && c.noised.quality == nil {
		s.Phase = method.Done
		return nil, nil
	}
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	if len(sites) > 0 {
		return method.Ask(options.TaskUpdate, sites, func(site string) (any, error) {
			s.Asked++
			return s.Sites[site].Ask(s.Scale, q), nil
		})
	}
	s.Phase = options.TaskAssess
	tasks, err := method.Ask(options.TaskAssess, c.staying(s), func(string) (any, error) {
		return options.AssessTask{Scale: s.Scale, Q: options.Pack(q)}, nil
	})
	return method.Optional(tasks), err
}

// together says whether all sites are asked at once.
func (c coordinator) together() bool { return c.Options.Schedule == options.ScheduleSynchronous }

// turn says which sites are asked next: all of them, or the next of the plan's order; none when
// the updates are done.
func (c coordinator) turn(s *state) []string {
	staying := c.staying(s)
	if len(staying) == 0 || s.Round >= c.Options.Rounds || c.Settled(s.Sites, staying) {
		return nil
	}
	if c.together() {
		s.Round++
		return staying
	}
	for s.Round < c.Options.Rounds {
		site := c.Plan.Sites[s.Turn]
		if s.Turn++; s.Turn == len(c.Plan.Sites) {
			s.Turn, s.Round = 0, s.Round+1
		}
		for _, name := range staying {
			if name == site {
				return []string{site}
			}
		}
	}
	return nil
}

// Fold implements [method.Coordinator].
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	err := method.Expect(in, c.Plan.Sites, s.Phase)
	if err != nil {
		return nil, err
	}
	switch r := s.Sites[in.Site]; in.Kind {
	case options.TaskScale:
		a := new(options.ScaleAnswer)
		if err = method.DecodeAnswer(in, a); err == nil {
			err = a.Check(c.Counted())
		}
		r.Moments = a
	case options.TaskUpdate:
		err = c.fold(s, r, in)
	case options.TaskAssess:
		s.Reports[in.Site], err = predict.Answer(in, c.noised != nil)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// fold replaces the site's factor, which nobody else has touched since the site was asked.
func (c coordinator) fold(s *state, r *options.SiteFactor, in method.Contribution) error {
	if !r.Waits() {
		return fmt.Errorf("site %s was not asked for an update", in.Site)
	}
	before, err := c.posterior(s)
	if err != nil {
		return err
	}
	if c.noised != nil {
		err = c.foldNoised(r, in)
	} else {
		var projected int
		projected, err = c.FoldChange(r, in, before)
		s.Trace.Projected += projected
	}
	if err != nil {
		return err
	}
	after, err := c.posterior(s)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	r.Folded++
	r.From = options.Gaussian{}
	return s.Trace.Follow(before, after)
}

// Leave implements [method.Coordinator]: the site's factor stays.
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	s.Left = left
	r := s.Sites[site]
	r.Asked, r.From = r.Folded, options.Gaussian{}
	return s, nil
}

// Share gives every site the model: it is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	return c.Shared(s.Scale, q)
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	p := report.Product{Setup: c.Setup, Q: q, Scale: s.Scale, Sites: s.Sites, Left: s.Left, Reports: s.Reports, Trace: &s.Trace}
	return p.Result()
}
