package fitted

import (
	"context"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Assess says how well a finished model describes a site, whose subjects are these blocks in the
// units of the scale. It reads the rows once more: absolute errors are no function of the
// sufficient statistics.
func Assess(ctx context.Context, set options.Setup, site string, t *options.AssessTask, patterns []ppca.Pattern, blocks []ppca.Block, scale *ppca.Scale, data dataset.Source) (*options.Assessment, error) {
	predictor, model, err := t.Predictor(set.Layout)
	if err != nil {
		return nil, err
	}
	if err := set.CheckRank(model.Rank); err != nil {
		return nil, err
	}
	plain := predictor // with the site's mean, and no doubt about it
	if t.Offset != nil {
		if plain, err = ppca.NewPredictor(set.Layout, model); err != nil {
			return nil, err
		}
	}
	x, err := ppca.NewExplained(set.Layout, model, blocks)
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
		Patterns: options.PackPatterns(patterns), LogLik: logLik, Cells: x.Cells, Total: x.Total,
		Residual: wire.Matrix{Rows: x.Views, Cols: q + 1, Data: x.Residual},
		AbsError: make(wire.Vector, x.Views), Mean: make(wire.Vector, q), Cov: make(wire.Vector, q*q), ScoreSquares: make(wire.Vector, q), ScoreFourths: make(wire.Vector, q*q),
		FeatureTotal: x.FeatureTotal, FeatureResidual: x.FeatureResidual, FeatureSquares: make(wire.Vector, set.Layout.Features()), FeatureFourths: make(wire.Vector, set.Layout.Features()),
		LeftOut: assess.NewSums(x.Views), Noise: between.NewSums(x.Views), Outliers: make(wire.Vector, x.Views),
	}
	others := assess.Of(predictor)
	rng := options.Draws(set.Plan.Seed, site, 0)
	view, expected := set.Layout.ViewOf(), make([]float64, set.Layout.Features())
	z, own := make([]float64, q), make([]float64, q)
	cells := make(wire.Vector, set.Layout.Features())
	missing := assess.NewPredictions(plain)
	var scores []float64
	err = EachSubject(ctx, predictor, scale, data, func(_ *dataset.Row, post *ppca.Posterior, values []float64) error {
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
		addFourths(a.ScoreSquares, a.ScoreFourths, z, post.Cov)
		for i, u := range z {
			a.Mean[i] += u / subjects
			for j, v := range z {
				a.Cov[i*q+j] += (post.Cov[i*q+j] + u*v) / subjects
			}
		}
		if err := others.Add(a.LeftOut, post.Observed, values, rng); err != nil {
			return err
		}
		if len(patterns) > 1 {
			missing.AddViews(others, own)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for k := range x.Views {
		lo, hi := set.Layout.View(k)
		if slices.Min(cells[lo:hi]) < slices.Max(cells[lo:hi]) {
			a.FeatureCells = cells
		}
	}
	a.Missing, a.Lacking = missing.Sums()
	a.Order, a.Serial = assess.OrderSumsOf(scores, q), stats.SerialSumsOf(scores, q) // which changes them
	for i, u := range a.Mean {
		for j, v := range a.Mean {
			a.Cov[i*q+j] -= u * v
		}
	}
	linalg.Symmetrise(a.Cov, q, q)
	return a, nil
}

// addFourths adds to sums of squares of scores of variance 1, and of products of two of these, a subject's: the
// factors' mean z and covariance, q × q, given what was observed of the subject.
func addFourths(squares, fourths, z, cov []float64) {
	q := len(z)
	of := func(f int) float64 {
		known := 1 - cov[f*q+f]
		if known < 1e-9 { // nothing but rounding is in it
			return 1
		}
		return z[f] * z[f] / known
	}
	for f := range z {
		squares[f] += of(f)
		for b := range z {
			fourths[f*q+b] += of(f) * of(b)
		}
	}
}
