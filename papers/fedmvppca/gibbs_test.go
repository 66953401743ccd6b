package fedmvppca

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// toDraw is a model and subjects, some without a view, as the sampler takes them.
func toDraw(t testing.TB, q, n int, noise float64, dims ...int) (ppca.Layout, [][]int, [][]float64, *ppca.Params) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, uint64(q)))
	l := factorstest.Shape(t, ppca.NoisePerView, dims...)
	tr := factorstest.NewTruth(r, l, q, noise)
	rows := tr.Subjects(r, n)
	factorstest.Lacking(l, rows[:n/5], l.Views()-1)
	var features [][]int
	var values [][]float64
	for _, row := range rows {
		var f []int
		var x []float64
		for j, v := range row {
			if !math.IsNaN(v) {
				f, x = append(f, j), append(x, v)
			}
		}
		features, values = append(features, f), append(values, x)
	}
	fit := testkit.Get(ppca.Fit(l, factorstest.BlocksOf(t, l, rows), q, nil, ppca.FitOptions{}))(t)
	return l, features, values, &fit.Params
}

// The change of units must leave the posterior as it is: a long chain without
// it, which the sampler would be by the book, has the same moments. Noise is
// large here, so that the plain chain moves.
func TestChangingUnitsKeepsThePosterior(t *testing.T) {
	l, features, rows, start := toDraw(t, 2, 40, 1.5, 4, 3)
	moments := func(plain bool, sweeps int) (mean, sd []float64) {
		g := testkit.Get(newGibbs(l, features, rows, start, rand.New(rand.NewPCG(1, 2))))(t)
		logLik := make([]float64, len(rows))
		var sum, square []float64
		for range sweeps {
			var err error
			if plain {
				for k := range g.patterns {
					if err = g.drawFactors(&g.patterns[k], logLik[:g.patterns[k].n]); err != nil {
						t.Fatal(err)
					}
				}
				g.collect()
				if err = g.drawLoadings(); err == nil {
					err = g.drawNoise()
				}
			} else {
				err = g.sweep(logLik)
			}
			if err != nil {
				t.Fatal(err)
			}
			// What rotations leave alone: logarithms of variances, and means.
			var x []float64
			for j := range g.d {
				w := g.w[j*2:][:2]
				x = append(x, math.Log(w[0]*w[0]+w[1]*w[1]+g.psi[j]), g.mu[j], math.Log(g.psi[j]))
			}
			if sum == nil {
				sum, square = make([]float64, len(x)), make([]float64, len(x))
			}
			for i, v := range x {
				sum[i] += v / float64(sweeps)
				square[i] += v * v / float64(sweeps)
			}
		}
		for i := range square {
			square[i] = math.Sqrt(square[i] - sum[i]*sum[i])
		}
		return sum, square
	}
	meanA, sdA := moments(true, 60000)
	meanB, sdB := moments(false, 15000)
	for i := range meanA {
		// With some 1000 independent draws of each chain, 0.15 sd is beyond 3 standard errors.
		if d := math.Abs(meanA[i]-meanB[i]) / sdA[i]; d > 0.15 {
			t.Errorf("quantity %d: means %v and %v differ by %.2f standard deviations", i, meanA[i], meanB[i], d)
		}
		if r := sdB[i] / sdA[i]; r < 0.88 || r > 1.14 {
			t.Errorf("quantity %d: standard deviations %v and %v", i, sdA[i], sdB[i])
		}
	}
}

// For a regular model with many subjects the effective number of parameters is
// the number of parameters (Watanabe 2010).
func TestEffectiveParameters(t *testing.T) {
	l, features, rows, start := toDraw(t, 2, 1500, 0.01, 6, 5)
	c := testkit.Get(drawn(t.Context(), l, features, rows, start, rand.New(rand.NewPCG(5, 6))))(t)
	// 80 draws: the sum of variances has a relative standard error near √(2/80)/√34 = 0.03.
	if want := float64(11*2 - 1 + 11 + l.Groups()); math.Abs(c.P/want-1) > 0.12 {
		t.Errorf("%.1f effective parameters, the model has %v", c.P, want)
	}
}

func TestPosteriorThatDoesNotExist(t *testing.T) {
	l, features, rows, start := toDraw(t, 2, 12, 0.5, 6, 5)
	if _, err := newGibbs(l, features, rows, start, rand.New(rand.NewPCG(1, 1))); err == nil {
		t.Error("12 subjects, 11 features and 2 factors have no posterior under flat priors")
	}
}

// The criterion is that of an independent implementation, given the log-likelihoods of its draws.
func TestTheCriterionIsThePublishedOne(t *testing.T) {
	for name, file := range testkit.Files(t, "../../methods/published/fedmvppca/testdata/case_*.json", 2) {
		var f struct {
			WAIC struct {
				LogLik [][]float64 `json:"loglik"`
				LPPD   float64     `json:"lppd"`
				P      float64     `json:"p_waic"`
				WAIC   float64     `json:"waic"`
			} `json:"waic"`
		}
		if err := json.Unmarshal(file, &f); err != nil {
			t.Fatal(err)
		}
		c := testkit.Get(criterionOf(f.WAIC.LogLik))(t)
		for i, want := range []float64{f.WAIC.LPPD, f.WAIC.P, f.WAIC.WAIC} {
			if got := []float64{c.LPPD, c.P, c.WAIC}[i]; math.Abs(got-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
}
