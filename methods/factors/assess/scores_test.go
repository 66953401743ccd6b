package assess_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/assess"
	"parley/methods/factors/ppca"
)

// subject draws one who did not take part in a fit, perhaps without the second view.
func (w world) subject(rng *rand.Rand, lacks bool) (views [][]float64, x []float64) {
	q, group, j := w.truth.Rank, w.layout.GroupOf(), 0
	for range q {
		x = append(x, rng.NormFloat64())
	}
	for _, n := range w.layout.Dims {
		view := make([]float64, n)
		for a := range view {
			view[a] = w.truth.Mu[j] + math.Sqrt(w.truth.Noise[group[j]])*rng.NormFloat64()
			for f, z := range x {
				view[a] += z * w.truth.W[j*q+f]
			}
			j++
		}
		views = append(views, view)
	}
	if lacks {
		views[1] = nil
	}
	return views, x
}

// Intervals of 90 % hold the factors of new subjects in 87 to 93 %, over 200 draws, on the axes of the
// fit. Those of the posterior alone hold fewer where subjects are few, so that the test can fail.
func TestIntervalsOfScoresHoldTheTruth(t *testing.T) {
	for name, c := range map[string]struct {
		world
		subjects int
		less     float64 // than which those of the posterior alone hold
	}{
		"four factors":            {newWorld(t, ppca.NoisePerView, 0, 1.5, 1.1, 0.8, 0.5), 100, 0.82},
		"two of five lack a view": {newWorld(t, ppca.NoisePerView, 0.4, 1.5, 1.1, 0.8, 0.5), 100, 0.82},
		"feature noise":           {newWorld(t, ppca.NoisePerFeature, 0, 1.5, 1.1, 0.8, 0.5), 100, 0.82},
		"few features":            {ofDims(t, []int{6, 6, 6}, ppca.NoisePerView, 0.2, 2, 1, 0.5), 60, 0.85},
		"weak factors":            {newWorld(t, ppca.NoisePerFeature, 0.2, 0.8, 0.4), 200, 0.9},
		"few subjects":            {newWorld(t, ppca.NoisePerView, 0, 1.5, 0.8), 25, 0.82},
		"many subjects":           {newWorld(t, ppca.NoisePerView, 0, 1.5, 0.8), 2000, 1},
	} {
		w, rng := c.world, rand.New(rand.NewPCG(6, 7))
		q, group := w.truth.Rank, w.layout.GroupOf()
		lacking := math.Round(w.lacks * float64(c.subjects))
		first, end := w.layout.View(1)
		patterns := []assess.Pattern{{Features: w.truth.Features, Subjects: float64(c.subjects) - lacking},
			{Features: append(w.layout.AllFeatures()[:first], w.layout.AllFeatures()[end:]...), Subjects: lacking}}
		held, alone, n := 0.0, 0.0, 0.0
		for range 200 {
			p, _ := w.fit(t, rng, c.subjects)
			strengths := make([]float64, q)
			for i, x := range p.W {
				strengths[i%q] += x * x / p.Noise[group[i/q]]
			}
			s := assess.NewScores(w.layout, p, strengths, nil, patterns, true, nil)
			predictor, err := ppca.NewPredictor(w.layout, p)
			check(t, err)
			z := make([]float64, q)
			for range 20 {
				views, x := w.subject(rng, rng.Float64() < w.lacks)
				post, values, err := predictor.Subject(views, nil)
				check(t, err)
				post.Latent(z, values)
				cov := s.Widen(post.Cov, z, len(values))
				for f := range q {
					off := math.Abs(z[f]-x[f]) / 1.645
					if off < math.Sqrt(cov[f*q+f]) {
						held++
					}
					if off < math.Sqrt(post.Cov[f*q+f]) {
						alone++
					}
					n++
				}
			}
		}
		t.Logf("%s, %d subjects (λ %.1f): %.3f, by the posterior alone %.3f", name, c.subjects, w.strength, held/n, alone/n)
		if held/n < 0.87 || held/n > 0.93 || alone/n > c.less {
			t.Errorf("%s: %.3f of the intervals hold the truth, and %.3f by the posterior alone", name, held/n, alone/n)
		}
	}
}
