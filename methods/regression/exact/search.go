package exact

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// askPoints asks all sites for derivatives.
func (c coordinator) askPoints(s *state) ([]method.Task, error) {
	if s.Search == nil {
		s.Search = glm.NewSearch(c.random(s.Scale))
	}
	s.Round++
	clear(s.Points)
	s.Phase = taskMarginal
	if len(s.Search.Grid) > 0 {
		s.Phase = taskGrid
	}
	return method.Ask(s.Phase, c.staying(s), func(string) (any, error) { return pointsTask{s.Scale, s.Search.Ask()}, nil })
}

// search makes a step of the sites' derivatives, and asks again or goes on to the
// assessment.
func (c coordinator) search(s *state) (tasks []method.Task, info method.Info, err error) {
	points := s.Search.Ask()
	sums := make([]*glm.Derivatives, len(points))
	for i := range sums {
		sums[i] = glm.NewDerivatives(c.Weights())
	}
	for _, site := range c.Plan.Sites {
		if a := s.Points[site]; a != nil {
			s.Rows[site] = a.Rows
			for i := range a.At {
				sums[i].Add(&a.At[i])
			}
		}
	}
	q, err := s.Search.Tell(c.random(s.Scale), sums, c.Options.Rounds)
	if err != nil {
		return nil, nil, fmt.Errorf("after %d exchanges: how much sites differ cannot be found: %w\n  hint: site_effects: none, or fewer features", s.Round, err)
	}
	if q == nil {
		if x := s.Search.Size; x > 0 && len(s.Search.Grid) == 0 {
			s.Fit.Trace = append(s.Fit.Trace, x)
			info = method.Info{"step in standard deviations": x}
		}
		tasks, err = c.askPoints(s)
		return tasks, info, err
	}
	s.Fit.At, s.Fit.Settled = density{Mean: q.Mean, Covariance: q.Covariance}, q.Settled
	s.Tau = &q.Tau
	tasks, err = c.askQuality(s)
	return tasks, nil, err
}

// restoreRandom checks what a state of random intercepts has in addition.
func (c coordinator) restoreRandom(s *state) error {
	if s.Search == nil {
		if s.Phase == taskMarginal || s.Phase == taskGrid || s.Tau != nil {
			return fmt.Errorf("the state is not one of random intercepts")
		}
		return nil
	}
	if err := s.Search.Check(c.Weights()); err != nil {
		return fmt.Errorf("the state's search: %w", err)
	}
	if s.Tau != nil {
		if err := s.Tau.Check(); err != nil {
			return fmt.Errorf("the state's spread of sites: %w", err)
		}
	}
	points := s.Search.Ask()
	return method.Kept(s.Points, c.Plan.Sites, "derivatives", func(a *pointsAnswer) error { return a.check(len(points), c.Weights()) })
}

// derive answers with derivatives of the site's marginal likelihood.
func (h *site) derive(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task := new(pointsTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	if err := h.checkPoints(task, t.Kind); err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	m, err := glm.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	a := &pointsAnswer{Rows: d.Rows()}
	for _, x := range task.Points {
		at, err := m.At(x)
		if err != nil {
			return nil, err
		}
		a.At = append(a.At, *at)
	}
	return a, nil
}

// own is what the site knows of its own intercept under the shared model; nil without random
// intercepts. It stays at the site.
func (h *site) own(t *Task, d *glm.Design) (*predict.SiteEffect, error) {
	if t.Tau == nil {
		return nil, nil
	}
	m, err := glm.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	b := m.InterceptOver(t.At.Mean, *t.Tau)
	return &predict.SiteEffect{Mean: b.Mean, Variance: b.Variance, Slope: b.Slope}, nil
}
