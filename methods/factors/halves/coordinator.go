// Package halves is what the ways to fit have in common: a coordinator's half, made by
// [NewCoordinator], and a site's, made by [NewSite]. Both bring features to common units,
// leave the rounds to a way to fit ([Way], [SiteWay]), have the sites assess the model,
// and hand it out.
//
// A way to fit is a room of its own, which imports this one: nothing here knows which
// there are. It embeds [Common], asks by [Common.Ask], reads what was answered in
// [State.Inbox], and ends with [Common.Assess] or at [method.Done].
package halves

import (
	"errors"
	"fmt"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Way is one way to fit a model, between the scale and the assessment.
type Way interface {
	// Record is a pointer to what the way carries between steps beside the rest of
	// [State], empty. It is kept as [State.Own].
	Record() any
	// Advance works through the answers of one of the way's phases, or gives out its first tasks, once the scale is
	// known.
	Advance(s *State) ([]method.Task, method.Info, error)
	// Receive checks an answer in such a phase, and returns a pointer to what is kept of it.
	Receive(s *State, a method.Contribution) (any, error)
	// Describe adds to the model's file what only this way knows.
	Describe(s *State, m *fitted.Model) error
	// Result draws the model that is in these files.
	Result(s *State, m *fitted.Model, files []method.File) (*method.Result, error)
}

// concluder is a [Way] that has more to say against a model than its assessment has shown.
type concluder interface {
	Conclude(s *State, m *fitted.Model)
}

// Coordinator is the coordinator's half, as far as all ways to fit have it in common: a
// scale, the way's own rounds, an assessment of the model by every site.
type Coordinator struct {
	Common
	way Way
}

// NewCoordinator is the coordinator's half of a study that is fitted in this way.
func NewCoordinator(set options.Setup, way Way) *Coordinator { return &Coordinator{Common{set}, way} }

// Init implements [method.Coordinator].
func (c *Coordinator) Init() (method.State, error) { return c.state(), nil }

func (c *Coordinator) state() *State {
	return &State{Inbox: method.Inbox{}, Reports: map[string]*fitted.Assessment{}, Own: c.way.Record()}
}

// Restore implements [method.Coordinator].
func (c *Coordinator) Restore(data []byte) (method.State, error) {
	s := c.state()
	if err := method.OpenState(data, s); err != nil {
		return nil, err
	}
	return s, wire.Unmarshal(s.Kept, s.Own)
}

// Next implements [method.Coordinator].
func (c *Coordinator) Next(ms method.State) (method.Step, error) {
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
func (c *Coordinator) advance(s *State) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case "":
		if c.Options.Asks(c.Plan, options.TaskAdjust) {
			tasks, err := c.Ask(s, options.TaskAdjust, func(string) (any, error) { return AdjustTask{}, nil })
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
	case options.TaskAssess:
		return c.assessed(s)
	case method.Done:
		return nil, nil, nil
	}
	return c.way.Advance(s)
}

// scale brings features to common units: it asks for sums if the plan does.
func (c *Coordinator) scale(s *State) ([]method.Task, method.Info, error) {
	if c.Pools() {
		tasks, err := c.Ask(s, options.TaskScale, func(string) (any, error) {
			return options.ScaleTask{Effects: s.effects()}, nil
		})
		return tasks, nil, err
	}
	s.Scale = &options.Scale{Scale: *ppca.StartScale(c.Frame), Effects: s.effects()}
	return c.way.Advance(s)
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
func (c *Coordinator) Fold(ms method.State, a method.Contribution) (method.State, error) {
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
func (c *Coordinator) receive(s *State, a method.Contribution) (any, error) {
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
	}
	return c.way.Receive(s, a)
}

// Leave goes on without a site. What it said before stays in the model.
func (c *Coordinator) Leave(ms method.State, site string) (method.State, error) {
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

func (c *Coordinator) poolScale(s *State) error {
	sites := c.Staying(s)
	all, err := method.Answers[ppca.FeatureSums](s.Inbox, sites)
	if err != nil {
		return err
	}
	scale, units, apart, err := ppca.PoolScale(c.Frame, sites, all)
	if err != nil {
		return err
	}
	s.Apart, s.Scale = apart, &options.Scale{Scale: *scale, Effects: s.effects()}
	if c.Totals {
		s.Scale.Units = units
	}
	return nil
}
