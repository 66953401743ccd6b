package dppvi

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	s := &State{Sites: c.factors(), Reports: map[string]*predict.Assessment{}}
	if c.global() {
		s.Point = pointOf(c.prior)
	}
	return s, nil
}

// staying lists the sites that have not left, in the plan's order.
func (c coordinator) staying(s *State) []string { return method.Staying(c.Plan.Sites, s.Left) }

// posterior is equation 2: the prior times the factors.
func (c coordinator) posterior(s *State) (glm.Gaussian, error) {
	if c.global() {
		return fromPoint(s.Point)
	}
	return c.product(s.Sites)
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*State)
	step := method.Step{State: s}
	was := s.Phase
	var err error
	switch was {
	case "", taskScale:
		step.Tasks, err = c.begin(s)
	case TaskUpdate:
		step, err = c.update(s)
	case taskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress, step.Of = c.progress(s)
	if was == TaskUpdate && s.Trace.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.Trace.LastKL}
	}
	return step, nil
}

// update asks the sites whose turn it is, or goes on to the assessment.
func (c coordinator) update(s *State) (step method.Step, err error) {
	step.State = s
	sites, free := c.turn(s), c.own.Schedule == scheduleAsynchronous
	if free {
		step.Wait = method.Any
	}
	if len(sites) == 0 {
		if slices.ContainsFunc(c.staying(s), func(site string) bool { return s.Sites[site].waits() }) {
			return step, nil // for what is still on its way
		}
		step.Wait = method.All
		step.Tasks, err = c.assess(s)
		return step, err
	}
	q, err := c.posterior(s)
	if err != nil {
		return step, err
	}
	step.Tasks, err = method.Ask(TaskUpdate, sites, func(site string) (any, error) {
		s.Asked++
		return s.Sites[site].ask(s.Scale, q), nil
	})
	for i := range step.Tasks {
		if site := sites[i]; free { // how long a site works is exponential, with a mean by its declared rows
			step.Tasks[i].Takes = float64(c.own.rowsOf(site)) * c.draws("takes", site, s.Sites[site].Asked).ExpFloat64()
		}
	}
	return step, err
}

// assess asks every site how well the model predicts, where that costs nothing.
func (c coordinator) assess(s *State) (tasks []method.Task, err error) {
	if p := c.protected[c.Plan.Sites[0]]; p != nil && p.quality == nil {
		s.Phase = method.Done
		return nil, nil
	}
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	s.Phase = taskAssess
	tasks, err = method.Ask(s.Phase, c.staying(s), func(string) (any, error) {
		return assessTask{Scale: s.Scale, Q: q}, nil
	})
	return method.Optional(tasks), err
}

// begin goes on from the start, and from the sites' moments, with the tasks that this takes.
func (c coordinator) begin(s *State) (tasks []method.Task, err error) {
	if s.Phase == "" && c.own.Scaling == glm.ScaleStandard {
		s.Phase = taskScale
		return method.Ask(s.Phase, c.staying(s), func(string) (any, error) { return scaleTask{}, nil })
	}
	if s.Phase == taskScale {
		s.Scale, err = c.poolFactors(s.Sites)
	}
	s.Phase = TaskUpdate
	return nil, err
}

// Fold implements [method.Coordinator]. An update replaces the site's factor (equation 5), which nobody else has
// touched since the site was asked: the change belongs to it whatever q has become meanwhile.
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*State)
	err := method.Expect(in, c.Plan.Sites, s.Phase)
	if err != nil {
		return nil, err
	}
	r := s.Sites[in.Site]
	switch p := c.protected[in.Site]; {
	case in.Kind == taskScale:
		of := map[string]*glm.Moments{in.Site: r.Moments}
		err = method.Take(of, in, func(m *glm.Moments) error { return m.Check(c.names()) })
		r.Moments = of[in.Site]
		return s, err
	case in.Kind == taskAssess && p == nil:
		return s, method.Take(s.Reports, in, c.checkAlone)
	case in.Kind == taskAssess:
		if err = method.Once(in, s.Reports[in.Site] != nil || p.quality == nil); err != nil {
			return nil, err
		}
		sum, err := method.OnlySum(in, p.quality.Name)
		if err == nil {
			s.Reports[in.Site], err = predict.Noised(sum)
		}
		return s, err
	case !r.waits():
		return nil, fmt.Errorf("site %s was not asked for an update", in.Site)
	}
	before, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	if c.global() {
		err = c.foldStep(s, in)
	} else {
		err = c.foldChange(s, in, before)
	}
	if err != nil {
		return nil, err
	}
	after, err := c.posterior(s)
	if err != nil {
		return nil, fmt.Errorf("after this answer: %w", err)
	}
	r.Folded++
	r.From = glm.Gaussian{}
	return s, s.Trace.follow(before, after)
}

// Leave implements [method.Coordinator]: the site's factor stays.
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*State)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	r := s.Sites[site]
	s.Left, r.Asked, r.From = left, r.Folded, glm.Gaussian{}
	return s, nil
}

// Share gives every site the model: it is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*State)
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(assessTask{Scale: s.Scale, Q: q})
}

// The means of a point are bounded by pointLargest, the logarithms of variances by
// pointWidest: within them sites can still work.
const pointLargest, pointWidest = 1e15, 100

// foldStep moves the point by a step.
func (c coordinator) foldStep(s *State, in method.Contribution) error {
	point := s.Point
	a := new(stepAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	if len(a.Step) != len(point) {
		return fmt.Errorf("a step of %d coordinates where there are %d", len(a.Step), len(point))
	}
	// Adagrad moves no coordinate by more than its rate, but for the rounding of a difference.
	rate := c.own.Global.LearningRate * 1.001
	for i, x := range a.Step {
		if far := rate + 1e-9*math.Abs(point[i]); !glm.Inside(x, -far, far) {
			return fmt.Errorf("a step of %v in coordinate %d, where the rate allows ±%v", x, i+1, rate)
		}
		most := pointLargest
		if i >= c.Weights() {
			most = pointWidest
		}
		point[i] = glm.Clamp(point[i]+x, most)
	}
	return nil
}

// foldChange moves the site's factor by the change that its answer asks for, where the posterior is q.
func (c coordinator) foldChange(s *State, in method.Contribution, q glm.Gaussian) error {
	a, r := new(updateAnswer), s.Sites[in.Site]
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	if err := a.Change.Check(c.Weights()); err != nil {
		return err
	}
	// Damping and projection need the quotient of the optimum and q alone.
	factor, applied, projected := refine(r.Factor, flat(c.Weights()), a.Change, c.own.Damping)
	if err := workable(factor, c.prior); err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	s.Trace.Projected += projected
	r.Factor = factor
	r.Before, r.Moved = r.Moved, moved(q, applied)/c.own.Damping
	return nil
}

// turn says which sites are asked next; none when the updates are done, or as long
// as everybody who could be asked still has an answer to give.
func (c coordinator) turn(s *State) []string {
	if c.settled(s.Sites, c.staying(s)) {
		return nil
	}
	switch c.own.Schedule {
	case scheduleSequential:
		return c.inOrder(s)
	case scheduleSynchronous:
		if s.Round == c.own.Rounds {
			return nil
		}
		s.Round++
		return c.able(s)
	case scheduleRandom:
		return c.drawn(s)
	}
	var free []string
	for _, site := range c.able(s) {
		if !s.Sites[site].waits() && s.Asked+len(free) < c.updates() {
			free = append(free, site)
		}
	}
	return free
}

// able lists the sites that may be asked for one more update: a private site makes as many as its noise was chosen for.
func (c coordinator) able(s *State) []string {
	return slices.DeleteFunc(c.staying(s), func(site string) bool {
		p := c.protected[site]
		return p != nil && s.Sites[site].Asked >= p.updates
	})
}

// updates returns how many updates there are in all, where a schedule counts so.
func (c coordinator) updates() int { return c.own.Rounds * len(c.Plan.Sites) }

// inOrder returns the next site of the plan's order.
func (c coordinator) inOrder(s *State) []string {
	able := c.able(s)
	for len(able) > 0 && s.Round < c.own.Rounds {
		site := c.Plan.Sites[s.Turn]
		if s.Turn++; s.Turn == len(c.Plan.Sites) {
			s.Turn, s.Round = 0, s.Round+1
		}
		if slices.Contains(able, site) {
			return []string{site}
		}
	}
	return nil
}

// drawn returns one site, drawn with a probability in proportion to 1/rows.
func (c coordinator) drawn(s *State) []string {
	able := c.able(s)
	if s.Asked >= c.updates() || len(able) == 0 {
		return nil
	}
	total := 0.0
	for _, site := range able {
		total += 1 / float64(c.own.rowsOf(site))
	}
	u := total * c.draws("turn", "", s.Asked).Float64()
	for _, site := range able {
		if u -= 1 / float64(c.own.rowsOf(site)); u < 0 {
			return []string{site}
		}
	}
	return able[len(able)-1:]
}

// progress counts the times that sites are asked, and an estimate of how many there will be.
func (c coordinator) progress(s *State) (done, of int) {
	of = c.own.Rounds * len(c.Plan.Sites)
	done = s.Asked
	if c.own.Schedule == scheduleSynchronous {
		of, done = c.own.Rounds, s.Round
	}
	if c.protected != nil { // what the sites' totals allow
		of = 0
		for _, p := range c.protected {
			of += p.updates
		}
	}
	of++ // the assessment
	if s.Phase == taskAssess || s.Phase == method.Done {
		done = of
	}
	return min(done, of), of
}
