package halves

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Assess puts the model into its canonical form and asks every site about it. The study
// goes on without those that do not answer.
func (c Common) Assess(s *State) ([]method.Task, error) {
	model, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	if err := c.Finish(s, model); err != nil {
		return nil, err
	}
	tasks, err := c.Ask(s, options.TaskAssess, func(site string) (any, error) {
		return options.AssessTask{Scale: *s.Scale, Model: *s.Model, Offset: s.SiteMeans.At(site)}, nil
	})
	return method.Optional(tasks), err
}

// Finish turns the final model to the axes on which fits of the same data agree.
func (c Common) Finish(s *State, model *ppca.Params) error {
	turned, strengths, _, err := ppca.Canonical(c.Layout, model)
	if err != nil {
		return err
	}
	packed := options.PackParams(c.Layout, turned)
	s.Model, s.Strengths = &packed, strengths
	return nil
}

// checkAssessment refuses what no site could say of the finished model.
func (c *Coordinator) checkAssessment(s *State) func(*options.Assessment) error {
	return func(a *options.Assessment) error {
		if len(a.ScoreSquares) > 0 || len(a.ScoreFourths) > 0 {
			return fmt.Errorf("sums of squares of scores, which nobody asked for")
		}
		return a.Check(c.Layout, c.Of(s).Rank())
	}
}

// assessed keeps what the sites said; then the study is done.
func (c *Coordinator) assessed(s *State) ([]method.Task, method.Info, error) {
	sites, all, err := Answers(c.Common, s, func(_ string, a *options.Assessment) error { return c.checkAssessment(s)(a) })
	if err != nil {
		return nil, nil, err
	}
	for i, site := range sites {
		s.Reports[site] = all[i]
	}
	s.Phase = method.Done
	if len(all) == 0 {
		return nil, nil, nil
	}
	sum := options.Together(all)
	s.LogLik = sum.LogLik / float64(sum.Subjects())
	return nil, method.Info{"log-likelihood per subject": s.LogLik}, nil
}

// assess says how well the model describes the site.
func (h *Site) assess(ctx context.Context, t *options.AssessTask, sums *options.RowSums, data dataset.Source) (*options.Assessment, error) {
	blocks, scale, err := h.Scaled(&t.Scale)
	if err != nil {
		return nil, err
	}
	a, err := fitted.Assess(ctx, h.Setup, h.name, t, sums.Patterns, blocks, scale, data)
	if err == nil {
		h.countOutliers(a)
		a.ScoreSquares, a.ScoreFourths = nil, nil
	}
	return a, err
}

// countOutliers says how many subjects were left out.
func (h *Site) countOutliers(a *options.Assessment) {
	if h.outliers == nil {
		return
	}
	a.Outlying = float64(len(h.outliers.Found))
	for _, o := range h.outliers.Found {
		for _, k := range o.Views {
			a.Outliers[k]++
		}
	}
}
