package exact

import (
	"fmt"

	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// search makes a step of the sites' derivatives, and asks again or goes on to the assessment.
func (c coordinator) search(s *state) (tasks []method.Task, info method.Info, err error) {
	total := c.total(s, s.Phase)
	var sums []*glm.Derivatives
	for _, at := range total.At {
		sums = append(sums, &glm.Derivatives{Value: at.Value, Gradient: at.Gradient, Curvature: at.Information})
	}
	q, err := s.Search.Tell(c.random(s.Scale), sums, c.Options.Rounds)
	if err != nil {
		return nil, nil, fmt.Errorf("after %d exchanges: how much sites differ cannot be found: %w\n  hint: "+
			"site_effects: none, or fewer features", s.Round, err)
	}
	if q == nil {
		if x := s.Search.Size; x > 0 && len(s.Search.Grid) == 0 {
			s.Fit.Trace = append(s.Fit.Trace, x)
			info = method.Info{"step in standard deviations": x}
		}
		tasks, err = c.ask(s)
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
	return nil
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
