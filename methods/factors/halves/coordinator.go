// Package halves has both halves of a study: a coordinator's, made by [NewCoordinator], and a site's, made by
// [NewSite]. Sites answer with sums of their subjects, to which the coordinator fits one model.
//
// Without privacy the sums are exact. Features are brought to common units, and where subjects lack cells, sites fill
// them by the model and answer again, until it no longer changes; at last they assess it. Under differential privacy
// each site releases three clipped and noised sums, and the coordinator makes the model of them; [ReadReleased] is for
// another model of the same releases. All sites are asked the same, by what the sums of all of them told before; these
// sums, and what is made of them, are package moments.
package halves

import (
	"errors"
	"fmt"
	"slices"

	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// NewCoordinator is the coordinator's half of a study.
func NewCoordinator(set options.Setup) (c Coordinator, err error) {
	c.Setup = set
	if set.Private() {
		c.noised, err = declaredBy(set)
	}
	return c, err
}

// Init implements [method.Coordinator].
func (c Coordinator) Init() (method.State, error) {
	return &State{Inbox: method.Inbox{}, Reports: map[string]*fitted.Assessment{}}, nil
}

// Restore implements [method.Coordinator].
func (c Coordinator) Restore(data []byte) (method.State, error) {
	s := &State{Inbox: method.Inbox{}, Reports: map[string]*fitted.Assessment{}}
	return s, method.OpenState(data, s)
}

// Next implements [method.Coordinator].
func (c Coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*State)
	tasks, info, err := c.advance(s)
	if err != nil {
		return method.Step{}, err
	}
	clear(s.Inbox)
	if len(tasks) > 0 {
		s.Steps++
	}
	of := 0
	for _, times := range c.Options.Schedule(c.Plan) {
		of += times
	}
	if s.Phase == method.Done {
		s.Steps, of = max(s.Steps, 1), max(s.Steps, 1) // rounds may have ended early
	}
	return method.Step{State: s, Tasks: tasks, Done: s.Phase == method.Done, Progress: min(s.Steps, of), Of: of,
		Info: info}, nil
}

// advance works through the answers of the phase and says what comes next.
func (c Coordinator) advance(s *State) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case "":
		if c.Options.Asks(c.Plan, options.TaskAdjust) {
			tasks, err := c.Ask(s, options.TaskAdjust, func(string) (any, error) { return adjustTask{}, nil })
			return tasks, nil, err
		}
		return c.scale(s)
	case options.TaskAdjust:
		sums, err := method.Answers[options.Sums](s.Inbox, c.Staying(s))
		if err != nil {
			return nil, nil, err
		}
		if s.Adjusted, err = options.Solve(c.Setup, sums); err != nil {
			return nil, nil, err
		}
		return c.scale(s)
	case options.TaskScale:
		if err := c.poolScale(s); err != nil {
			return nil, nil, err
		}
	case options.TaskFit:
		return c.fitted(s)
	case options.TaskAssess:
		return c.assessed(s)
	case method.Done:
		return nil, nil, nil
	default:
		return c.summed(s)
	}
	return c.begin(s)
}

// begin asks for the first sums to which a model is fitted.
func (c Coordinator) begin(s *State) ([]method.Task, method.Info, error) {
	kind, task := options.TaskFit, any(FitTask{Scale: *s.Scale})
	if c.Private() {
		kind, task = options.TaskOverview, sumTask{}
	}
	tasks, err := c.Ask(s, kind, func(string) (any, error) { return task, nil })
	return tasks, nil, err
}

// scale brings features to common units: it asks for sums if the plan does.
func (c Coordinator) scale(s *State) ([]method.Task, method.Info, error) {
	if c.Pools() {
		tasks, err := c.Ask(s, options.TaskScale, func(string) (any, error) {
			return options.ScaleTask{Effects: s.effects()}, nil
		})
		return tasks, nil, err
	}
	s.Scale = &options.Scale{Scale: *ppca.StartScale(c.Frame), Effects: s.effects()}
	return c.begin(s)
}

// effects are what covariates add to features; nil where the plan has none.
func (s *State) effects() *options.Effects {
	if s.Adjusted == nil {
		return nil
	}
	return &s.Adjusted.Effects
}

// Fold keeps an answer until the round is complete, so that it is worked
// through in the plan's order of sites. What is wrong with it shows now.
func (c Coordinator) Fold(ms method.State, a method.Contribution) (method.State, error) {
	s := ms.(*State)
	_, answered := s.Inbox[a.Site]
	if err := errors.Join(method.Expect(a, c.Staying(s), s.Phase), method.Once(a, answered)); err != nil {
		return nil, err
	}
	kept, err := c.receive(s, a)
	if err != nil {
		return nil, fmt.Errorf("site %s: its answer to %q: %w", a.Site, a.Kind, err)
	}
	s.Inbox.Keep(a.Site, kept)
	return s, nil
}

// receive checks an answer, and returns what is kept of it.
func (c Coordinator) receive(s *State, a method.Contribution) (any, error) {
	switch a.Kind {
	case options.TaskAdjust:
		return method.Received(a, func(x *options.Sums) error {
			return x.Check(c.Layout.Features(), len(options.Terms(c.Options.Adjust)))
		})
	case options.TaskScale:
		return method.Received(a, func(x *ppca.FeatureSums) error {
			return x.Check(c.Layout.Features(), c.Options.Scaling == ppca.ScaleMinMax)
		})
	case options.TaskAssess:
		return method.Received(a, func(x *fitted.Assessment) error { return x.Check(c.Layout, c.Of(s).Factors) })
	case options.TaskFit: // what is kept of products with directions needs no directions later
		return method.Received(a, func(x *ppca.Description) error {
			return take(c.Setup, x, c.Bound(s.Exact.Sent).Along)
		})
	}
	want := c.noised[a.Site].sums[slices.Index(kinds, a.Kind)]
	sum, err := method.OnlySum(a, want.Name)
	if err != nil {
		return nil, err
	}
	return sum, sum.Check(want)
}

// Leave goes on without a site. What it said before stays in the model.
func (c Coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*State)
	var err error
	if s.Left, err = method.Leave(c.Plan.Sites, s.Left, site); err != nil {
		return nil, err
	}
	if len(c.Staying(s)) == 0 && len(s.Strengths) == 0 { // a final model stands without being assessed
		return nil, fmt.Errorf("no site is left")
	}
	return s, nil
}

func (c Coordinator) poolScale(s *State) error {
	sites := c.Staying(s)
	all, err := method.Answers[ppca.FeatureSums](s.Inbox, sites)
	if err != nil {
		return err
	}
	scale, apart, err := ppca.PoolScale(c.Frame, sites, all)
	if err == nil {
		s.Apart, s.Scale = apart, &options.Scale{Scale: *scale, Effects: s.effects()}
	}
	return err
}
