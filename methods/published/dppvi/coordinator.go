package dppvi

import (
	"errors"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
)

// coordinator is the coordinator's half: a common scale where the plan has none,
// updates of the sites' factors in the order of a schedule (Algorithm 1), an assessment of the
// model by every site.
type coordinator struct{ *common }

// state is what the coordinator carries. The posterior is the prior times the factors, or, of
// Global VI, the point.
type state struct {
	Phase   string                         `cbor:"phase"`
	Turn    int                            `cbor:"turn"`  // sequential: place in the plan's sites of the next to be asked
	Round   int                            `cbor:"round"` // sequential, synchronous: complete rounds
	Asked   int                            `cbor:"asked"` // updates asked for, of all sites
	Left    []string                       `cbor:"left"`
	Scale   *options.Scale                 `cbor:"scale"`
	Sites   map[string]*options.SiteFactor `cbor:"sites"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
	Trace   options.Trace                  `cbor:"trace"`
	Point   wire.Vector                    `cbor:"point"` // Global VI: means, then logarithms of variances
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	s := &state{Sites: c.Factors(), Reports: map[string]*predict.Assessment{}}
	if c.global() {
		s.Point = glm.Point(c.Prior)
	}
	return s, nil
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
	if c.protected != nil {
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
	coordinates := 0
	if c.global() {
		coordinates = 2 * c.Weights()
	}
	if len(s.Point) != coordinates {
		return nil, fmt.Errorf("the state's point has %d coordinates, and there are %d", len(s.Point), coordinates)
	}
	if _, err := c.posterior(s); err != nil {
		return nil, fmt.Errorf("the state's posterior: %w", err)
	}
	return s, nil
}

// staying lists the sites that have not left, in the plan's order.
func (c coordinator) staying(s *state) []string { return method.Staying(c.Plan.Sites, s.Left) }

// posterior is equation 2: the prior times the factors.
func (c coordinator) posterior(s *state) (glm.Gaussian, error) {
	if c.global() {
		return glm.FromPoint(s.Point)
	}
	return c.Product(s.Sites)
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
		if c.own.Scaling == options.ScaleStandard {
			s.Phase = options.TaskScale
			step.Tasks, err = method.Ask(options.TaskScale, c.staying(s), func(string) (any, error) { return options.ScaleTask{}, nil })
		}
	case options.TaskScale:
		s.Phase = options.TaskUpdate
		s.Scale, err = c.PoolFactors(s.Sites)
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
	if was == options.TaskUpdate && s.Trace.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.Trace.LastKL}
	}
	return step, nil
}

// update asks the sites whose turn it is, or goes on to the assessment.
func (c coordinator) update(s *state) (method.Step, error) {
	step := method.Step{State: s}
	sites := c.turn(s)
	if c.own.Schedule == scheduleAsynchronous {
		step.Wait = method.Any
	}
	if len(sites) == 0 {
		if slices.ContainsFunc(c.staying(s), func(site string) bool { return s.Sites[site].Waits() }) {
			return step, nil // for what is still on its way
		}
		return c.assess(s)
	}
	q, err := c.posterior(s)
	if err != nil {
		return step, err
	}
	step.Tasks, err = method.Ask(options.TaskUpdate, sites, func(site string) (any, error) {
		s.Asked++
		return s.Sites[site].Ask(s.Scale, q), nil
	})
	if c.own.Schedule == scheduleAsynchronous {
		for i, site := range sites {
			step.Tasks[i].Takes = c.takes(site, s.Sites[site].Asked)
		}
	}
	return step, err
}

// assess asks every site how well the model predicts, where that costs nothing.
func (c coordinator) assess(s *state) (method.Step, error) {
	if p := c.protected[c.Plan.Sites[0]]; p != nil && p.quality == nil {
		s.Phase = method.Done
		return method.Step{State: s}, nil
	}
	s.Phase = options.TaskAssess
	q, err := c.posterior(s)
	if err != nil {
		return method.Step{}, err
	}
	tasks, err := method.Ask(options.TaskAssess, c.staying(s), func(string) (any, error) {
		return options.AssessTask{Scale: s.Scale, Q: options.Pack(q)}, nil
	})
	return method.Step{State: s, Tasks: method.Optional(tasks)}, err
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
		s.Reports[in.Site], err = predict.Answer(in, c.protected != nil)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// fold replaces the site's factor (equation 5), which nobody else has touched since the site was
// asked: the change belongs to it whatever q has become meanwhile.
func (c coordinator) fold(s *state, r *options.SiteFactor, in method.Contribution) error {
	if !r.Waits() {
		return fmt.Errorf("site %s was not asked for an update", in.Site)
	}
	before, err := c.posterior(s)
	if err != nil {
		return err
	}
	if c.global() {
		err = c.foldStep(s, in)
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
	p := report.Product{Setup: c.Setup, Q: q, Scale: s.Scale, Sites: s.Sites, Left: s.Left, Reports: s.Reports, Trace: &s.Trace,
		Instead: ", or use method pvi, which has the weights' correlations"}
	return p.Result()
}
