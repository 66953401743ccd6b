// Package halves is what the ways to fit have in common: a coordinator's half, made by
// [NewCoordinator], and a site's, made by [NewSite]. Both bring features to common units,
// leave the rounds to a way to fit ([Way], [SiteWay]), have the sites assess the model,
// and hand it out.
//
// A way to fit is a room of its own, which imports this one: nothing here knows which
// there are. It embeds [Common], asks by [Common.Ask], reads what was answered by
// [Answers], and ends with [Common.Assess] or at [method.Done].
package halves

import (
	"errors"
	"fmt"
	"slices"

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
	// Check refuses a state that was restored and that the way cannot go on from. What
	// all ways have in common has been checked.
	Check(s *State) error
	// Begin gives out the first tasks, once the scale is known.
	Begin(s *State) ([]method.Task, method.Info, error)
	// Advance works through the answers of one of the way's phases.
	Advance(s *State) ([]method.Task, method.Info, error)
	// Receive checks an answer in such a phase, and returns what is kept of it.
	Receive(s *State, a method.Contribution) (Answer, error)
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
	return &State{Inbox: map[string][]byte{}, decoded: map[string]any{}, Reports: map[string]*fitted.Assessment{},
		Own: c.way.Record()}
}

// Restore implements [method.Coordinator].
func (c *Coordinator) Restore(data []byte) (method.State, error) {
	s := c.state()
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(s.Kept, s.Own); err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, fmt.Errorf("the state: %w", err)
	}
	return s, nil
}

// check refuses a state from which no study goes on, but for answers that wait in the inbox: these
// are checked when they are worked through.
func (c *Coordinator) check(s *State) error {
	d := c.Layout.Features()
	if s.Inbox == nil || s.Reports == nil {
		return errors.New("it lacks what sites have answered")
	}
	if s.Round < 0 || s.Steps < 0 {
		return fmt.Errorf("round %d, step %d", s.Round, s.Steps)
	}
	for _, site := range s.Left {
		if err := method.Member(c.Plan.Sites, site); err != nil {
			return err
		}
	}
	if err := method.Kept(s.Reports, c.Plan.Sites, "assessments", c.checkAssessment(s)); err != nil {
		return err
	}
	scaled := !slices.Contains([]string{"", options.TaskAdjust, options.TaskScale}, s.Phase)
	if s.Scale == nil && scaled {
		return errors.New("it lacks a scale")
	}
	if s.Scale != nil {
		if _, err := s.Scale.Unpack(c.Layout); err != nil {
			return err
		}
	}
	if s.Adjusted == nil && c.Options.Asks(c.Plan, options.TaskAdjust) && (scaled || s.Phase == options.TaskScale) {
		return errors.New("it lacks what covariates add to features")
	}
	if s.Adjusted != nil {
		if err := s.Adjusted.Check(d, len(options.Terms(c.Options.Adjust))); err != nil {
			return err
		}
	}
	if fitted := slices.Contains([]string{options.TaskAssess, method.Done}, s.Phase); fitted &&
		(s.Model == nil || c.CheckRank(len(s.Strengths)) != nil) {
		return fmt.Errorf("it has no model, or the strengths of %d factors", len(s.Strengths))
	}
	if s.Model != nil {
		if p, err := s.Model.Unpack(c.Layout); err != nil {
			return err
		} else if len(s.Strengths) > 0 && p.Rank != len(s.Strengths) {
			return fmt.Errorf("a model of %d factors with the strengths of %d", p.Rank, len(s.Strengths))
		} else if err := c.CheckRank(p.Rank); err != nil {
			return err
		}
	}
	if s.SiteMeans != nil {
		if err := s.SiteMeans.Check(c.Layout, c.Plan.Sites); err != nil {
			return err
		}
	}
	for _, a := range s.Apart {
		if !c.place(a.Site, a.View) {
			return fmt.Errorf("values far apart of site %d and view %d", a.Site, a.View)
		}
	}
	if len(s.Doubt) != 0 && len(s.Doubt) != d || slices.ContainsFunc(s.Doubt, func(x float64) bool { return x < 0 }) {
		return fmt.Errorf("the doubt about %d features, where there are %d", len(s.Doubt), d)
	}
	if s.OfTotals != nil {
		if err := s.OfTotals.Explained.Check(c.Layout); err != nil {
			return err
		}
	}
	if s.HeldOut != nil {
		if err := s.HeldOut.Check(c.Layout, len(s.Strengths)); err != nil {
			return err
		}
	}
	return c.way.Check(s)
}

// place says whether there is such a site and view.
func (c Common) place(site, view int) bool {
	return site >= 0 && site < len(c.Plan.Sites) && view >= 0 && view < c.Layout.Views()
}

// HasFeatures reports features that are none of the plan's.
func (c Common) HasFeatures(list ...int) error {
	for _, j := range list {
		if j < 0 || j >= c.Layout.Features() {
			return fmt.Errorf("there is no feature %d", j)
		}
	}
	return nil
}

// Next implements [method.Coordinator].
func (c *Coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*State)
	tasks, info, err := c.advance(s)
	if err != nil {
		return method.Step{}, err
	}
	clear(s.Inbox)
	clear(s.decoded)
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
		_, sums, err := Answers(c.Common, s, func(_ string, a *options.Sums) error { return c.checkRegression(a) })
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
		return c.way.Begin(s)
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
	s.scaled(ppca.StartScale(c.Frame))
	return c.way.Begin(s)
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
	if err := errors.Join(method.Expect(a, method.Staying(c.Plan.Sites, s.Left), s.Phase),
		method.Once(a, s.Inbox[a.Site] != nil)); err != nil {
		return nil, err
	}
	kept, err := c.receive(s, a)
	if err != nil {
		return nil, fmt.Errorf("site %s: its answer to %q: %w", a.Site, a.Kind, err)
	}
	s.Inbox[a.Site] = kept.Encoded
	if kept.decoded != nil {
		s.decoded[a.Site] = kept.decoded
	}
	return s, nil
}

// receive checks an answer, and returns what is kept of it.
func (c *Coordinator) receive(s *State, a method.Contribution) (Answer, error) {
	switch a.Kind {
	case options.TaskAdjust:
		return Received(a, c.checkRegression)
	case options.TaskScale:
		return Received(a, c.checkSums)
	case options.TaskAssess:
		return Received(a, c.checkAssessment(s))
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

func (c *Coordinator) checkRegression(x *options.Sums) error {
	return x.Check(c.Layout.Features(), len(options.Terms(c.Options.Adjust)))
}

func (c *Coordinator) checkSums(x *ppca.FeatureSums) error {
	return x.Check(c.Layout.Features(), c.Options.Scaling == ppca.ScaleMinMax)
}

func (c *Coordinator) poolScale(s *State) error {
	sites, all, err := Answers(c.Common, s, func(_ string, a *ppca.FeatureSums) error { return c.checkSums(a) })
	if err != nil {
		return err
	}
	scale, apart, err := ppca.PoolScale(c.Frame, sites, all)
	if err != nil {
		return err
	}
	s.Apart = apart
	s.scaled(scale)
	return nil
}

func (s *State) scaled(scale *ppca.Scale) {
	s.Scale = &options.Scale{Scale: *scale, Effects: s.effects()}
}
