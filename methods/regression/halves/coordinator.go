package halves

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Coordinator is the coordinator's half: a common scale where the plan has none,
// updates of the sites' factors in the order of a schedule, an assessment of the
// model by every site.
type Coordinator struct{ *Common }

// NewCoordinator is the coordinator's half of a study of this variant.
func NewCoordinator(c *Common) *Coordinator { return &Coordinator{c} }

// Init implements [method.Coordinator].
func (c *Coordinator) Init() (method.State, error) {
	s := &State{Sites: map[string]*siteRecord{}, Own: c.Variant.Record()}
	for _, name := range c.Plan.Sites {
		s.Sites[name] = &siteRecord{Factor: options.Pack(glm.Flat(c.Weights()))}
	}
	c.Variant.Begin(s)
	return s, nil
}

// Restore implements [method.Coordinator].
func (c *Coordinator) Restore(data []byte) (method.State, error) {
	s := &State{Own: c.Variant.Record()}
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(s.Kept, s.Own); err != nil {
		return nil, err
	}
	if err := errors.Join(method.KnownPhase(s.Phase, s.Left, c.Plan.Sites, options.TaskScale, options.TaskUpdate, options.TaskAssess), c.Variant.Check(s)); err != nil {
		return nil, err
	}
	if s.Phase != "" && s.Phase != options.TaskScale {
		if _, err := c.Scaled(s.Scale); err != nil {
			return nil, fmt.Errorf("the state's scale: %w", err)
		}
	}
	if s.Turn < 0 || s.Turn >= len(c.Plan.Sites) || s.Round < 0 || s.Asked < 0 || s.Folded < 0 || s.Projected < 0 || s.Stride < 0 || len(s.Trace) > maxTrace {
		return nil, fmt.Errorf("the state's place in the schedule is none of the plan's")
	}
	if err := method.Kept(s.Sites, c.Plan.Sites, "record", func(r *siteRecord) error { return c.check(r) }); err != nil {
		return nil, err
	}
	for _, name := range c.Plan.Sites {
		r := s.Sites[name]
		if r == nil {
			return nil, fmt.Errorf("the state has no site %s", name)
		}
		if _, err := r.Factor.Factor(c.Weights()); err != nil {
			return nil, fmt.Errorf("the state's factor of site %s: %w", name, err)
		}
		if s.waits(name) {
			if _, err := r.From.Density(c.Weights()); err != nil {
				return nil, fmt.Errorf("the state's q for site %s: %w", name, err)
			}
		}
	}
	return s, nil
}

// check refuses a record that no site's answers can have left.
func (c *Coordinator) check(r *siteRecord) error {
	if r.Asked < 0 || r.Folded < 0 || r.Folded > r.Asked || !(r.Moved >= 0) || !(r.Before >= 0) {
		return fmt.Errorf("%d updates asked for, %d folded, that moved it by %v and %v", r.Asked, r.Folded, r.Before, r.Moved)
	}
	if r.Moments != nil {
		if err := r.Moments.Check(c.Counted()); err != nil {
			return err
		}
	}
	switch {
	case r.Report == nil:
		return nil
	case c.Protected[c.Plan.Sites[0]] != nil:
		return r.Report.CheckNoised()
	}
	return checkExact(r.Report)
}

// staying lists the sites that have not left, in the plan's order.
func (c *Coordinator) staying(s *State) []string {
	return method.Staying(c.Plan.Sites, s.Left)
}

// Next implements [method.Coordinator].
func (c *Coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*State)
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
		s.Scale, err = c.poolMoments(s)
	case options.TaskUpdate:
		step, err = c.update(s)
	case options.TaskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress, step.Of = c.progress(s)
	if was == options.TaskUpdate && s.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.LastKL}
	}
	return step, nil
}

// update asks the sites whose turn it is, or goes on to the assessment.
func (c *Coordinator) update(s *State) (method.Step, error) {
	step := method.Step{State: s}
	sites := c.turn(s)
	if c.Options.Schedule == options.ScheduleAsynchronous {
		step.Wait = method.Any
	}
	if len(sites) == 0 {
		if slices.ContainsFunc(c.staying(s), s.waits) {
			return step, nil // for what is still on its way
		}
		return c.assess(s)
	}
	q, err := c.Variant.Posterior(s)
	if err != nil {
		return step, err
	}
	step.Tasks, err = method.Ask(options.TaskUpdate, sites, func(site string) (any, error) {
		r := s.Sites[site]
		r.Asked++
		s.Asked++
		r.From = options.Pack(q)
		return options.UpdateTask{Scale: s.Scale, Q: options.Pack(q), Factor: r.Factor, Update: r.Asked}, nil
	})
	if c.Options.Schedule == options.ScheduleAsynchronous {
		for i, site := range sites {
			step.Tasks[i].Takes = c.takes(site, s.Sites[site].Asked)
		}
	}
	return step, err
}

// assess asks every site how well the model predicts, where that costs nothing.
func (c *Coordinator) assess(s *State) (method.Step, error) {
	if p := c.Protected[c.Plan.Sites[0]]; p != nil && p.Quality == nil {
		s.Phase = method.Done
		return method.Step{State: s}, nil
	}
	s.Phase = options.TaskAssess
	q, err := c.Variant.Posterior(s)
	if err != nil {
		return method.Step{}, err
	}
	tasks, err := method.Ask(options.TaskAssess, c.staying(s), func(string) (any, error) {
		return options.AssessTask{Scale: s.Scale, Q: options.Pack(q)}, nil
	})
	return method.Step{State: s, Tasks: method.Optional(tasks)}, err
}

// Fold implements [method.Coordinator].
func (c *Coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*State)
	err := method.Expect(in, c.Plan.Sites, s.Phase)
	if err != nil {
		return nil, err
	}
	r := s.Sites[in.Site]
	switch in.Kind {
	case options.TaskScale:
		a := new(options.ScaleAnswer)
		if err = method.DecodeAnswer(in, a); err == nil {
			err = a.Check(c.Counted())
		}
		r.Moments = a
	case options.TaskUpdate:
		if !s.waits(in.Site) {
			return nil, fmt.Errorf("site %s was not asked for an update", in.Site)
		}
		if err = c.fold(s, in); err == nil {
			r.Folded++
			r.From = options.Gaussian{}
		}
	case options.TaskAssess:
		r.Report, err = c.quality(in)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// quality reads how well a site's outcomes are predicted.
func (c *Coordinator) quality(in method.Contribution) (*predict.Assessment, error) {
	if c.Protected[in.Site] != nil {
		sum, err := method.OnlySum(in, predict.SumName)
		if err != nil {
			return nil, err
		}
		return predict.Noised(sum)
	}
	a := new(predict.Assessment)
	if err := method.DecodeAnswer(in, a); err != nil {
		return nil, err
	}
	return a, checkExact(a)
}

// checkExact refuses an assessment that was not asked for without noise.
func checkExact(a *predict.Assessment) error {
	if a.Residuals != nil || len(a.Classes) > 0 || a.Periods != nil { // which nobody checks here
		return fmt.Errorf("sums of residuals, which were not asked for")
	}
	return a.Check()
}

// fold replaces the site's factor, which nobody else has touched since the site was
// asked: the change belongs to it whatever q has become meanwhile.
func (c *Coordinator) fold(s *State, in method.Contribution) error {
	before, err := c.Variant.Posterior(s)
	if err != nil {
		return err
	}
	r := s.Sites[in.Site]
	last := r.Moved
	if err = c.Variant.Fold(s, in, before); err != nil {
		return err
	}
	r.Before = last
	after, err := c.Variant.Posterior(s)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	kl, err := after.KL(before)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	if !glm.Finite(kl) { // precisions so far apart that their quotient has no digits
		kl = math.MaxFloat64
	}
	s.follow(kl)
	return nil
}

// Leave implements [method.Coordinator]: the site's factor stays.
func (c *Coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*State)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	s.Left = left
	r := s.Sites[site]
	r.Asked, r.From = r.Folded, options.Gaussian{}
	return s, nil
}

// poolMoments makes a common scale from the sites' moments, which are then forgotten.
func (c *Coordinator) poolMoments(s *State) (*options.Scale, error) {
	var moments []*options.ScaleAnswer
	for _, site := range c.Plan.Sites {
		if r := s.Sites[site]; r.Moments != nil {
			moments = append(moments, r.Moments)
			r.Moments = nil
		}
	}
	return c.Pool(moments)
}

// Share gives every site the model: it is the study's result.
func (c *Coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*State)
	q, err := c.Variant.Posterior(s)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(options.AssessTask{Scale: s.Scale, Q: options.Pack(q)})
}
