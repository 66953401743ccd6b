package halves

import (
	"context"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/internal/stats"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
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
		return options.AssessTask{Scale: *s.Scale, Model: s.Model.Params, Offset: s.SiteMeans.At(site)}, nil
	})
	return method.Optional(tasks), err
}

// Finish turns the final model to the axes on which fits of the same data agree.
func (c Common) Finish(s *State, model *ppca.Prior) error {
	turned, strengths, _, err := ppca.Canonical(c.Layout, &model.Params)
	if err != nil {
		return err
	}
	model.Params = *turned
	s.Model, s.Strengths = options.PackPrior(c.Layout, model), strengths
	return nil
}

func (c *Coordinator) checkAssessment(a *options.Assessment) error {
	return a.Check(c.Layout, c.Options.Latent)
}

// assessed keeps what the sites said; then the study is done.
func (c *Coordinator) assessed(s *State) ([]method.Task, method.Info, error) {
	sites, all, err := Answers(c.Common, s, func(_ string, a *options.Assessment) error { return c.checkAssessment(a) })
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

// assess reads the rows once more: absolute errors are no function of the
// sufficient statistics.
func (h *Site) assess(ctx context.Context, t *options.AssessTask, sums *options.RowSums, data dataset.Source) (*options.Assessment, error) {
	blocks, scale, err := h.Scaled(&t.Scale)
	if err != nil {
		return nil, err
	}
	predictor, model, err := t.Predictor(h.Layout)
	if err != nil {
		return nil, err
	}
	if err := h.CheckRank(model.Rank); err != nil {
		return nil, err
	}
	plain := predictor // with the site's mean, and no doubt about it
	if t.Offset != nil {
		if plain, err = ppca.NewPredictor(h.Layout, model); err != nil {
			return nil, err
		}
	}
	x, err := ppca.NewExplained(h.Layout, model, blocks)
	if err != nil {
		return nil, err
	}
	logLik, subjects := x.LogLik, x.Subjects
	if predictor != plain {
		if logLik, subjects, err = predictor.LogLik(blocks); err != nil {
			return nil, err
		}
	}
	q := model.Rank
	a := &options.Assessment{
		Patterns: options.PackPatterns(sums.Patterns), LogLik: logLik, Cells: x.Cells, Total: x.Total,
		Residual: wire.Matrix{Rows: x.Views, Cols: q + 1, Data: x.Residual},
		AbsError: make(wire.Vector, x.Views), Mean: make(wire.Vector, q), Cov: make(wire.Vector, q*q), ScoreSquares: make(wire.Vector, q), ScoreFourths: make(wire.Vector, q*q),
		FeatureTotal: x.FeatureTotal, FeatureResidual: x.FeatureResidual, FeatureSquares: make(wire.Vector, h.Layout.Features()), FeatureFourths: make(wire.Vector, h.Layout.Features()),
		LeftOut: assess.NewSums(x.Views), Noise: between.NewSums(x.Views), Outliers: make(wire.Vector, x.Views),
	}
	others := assess.Of(predictor)
	rng := Draws(h.Plan.Seed, h.name, 0)
	view, expected := h.Layout.ViewOf(), make([]float64, h.Layout.Features())
	z, own := make([]float64, q), make([]float64, q)
	cells := make(wire.Vector, h.Layout.Features())
	missing := assess.NewPredictions(plain)
	var scores []float64
	err = fitted.EachSubject(ctx, predictor, scale, data, func(_ *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			return nil
		}
		a.Expected -= post.Entropy()
		post.Describe(expected, values)
		for i, j := range post.Observed {
			off := values[i] - expected[i]
			a.AbsError[view[j]] += math.Abs(off)
			a.FeatureSquares[j] += off * off
			a.FeatureFourths[j] += off * off * off * off
			cells[j]++
		}
		post.Latent(z, values)
		given := post
		if copy(own, z); plain != predictor {
			if given, err = plain.Given(post.Observed); err != nil {
				return err
			}
			given.Latent(own, values)
		}
		a.Noise.Add(plain, given, values, own)
		missing.Add(given, values, own)
		scores = append(scores, own...)
		assess.AddFourths(a.ScoreSquares, a.ScoreFourths, z, post.Cov)
		for i, u := range z {
			a.Mean[i] += u / subjects
			for j, v := range z {
				a.Cov[i*q+j] += (post.Cov[i*q+j] + u*v) / subjects
			}
		}
		return others.Add(a.LeftOut, post.Observed, values, rng)
	})
	if err != nil {
		return nil, err
	}
	for k := range x.Views {
		lo, hi := h.Layout.View(k)
		if slices.Min(cells[lo:hi]) < slices.Max(cells[lo:hi]) {
			a.FeatureCells = cells
		}
	}
	a.Missing, a.Serial = missing.Sums(), stats.SerialSumsOf(scores, q)
	h.countOutliers(a)
	for i, u := range a.Mean {
		for j, v := range a.Mean {
			a.Cov[i*q+j] -= u * v
		}
	}
	linalg.Symmetrise(a.Cov, q, q)
	return a, nil
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
