package graffl

import (
	"math"
	"slices"
	"testing"

	"parley/study"
)

// The minimum of Rosenbrock's function is 0 at (1, 1).
func TestLeastSquaresFindsTheMinimum(t *testing.T) {
	x := []float64{-1.2, 1}
	loss := leastSquares(x, 2, func(r, jac, x []float64) {
		r[0], r[1] = 10*(x[1]-x[0]*x[0]), 1-x[0]
		if jac != nil {
			copy(jac, []float64{-20 * x[0], 10, -1, 0})
		}
	})
	if loss > 1e-20 || math.Abs(x[0]-1) > 1e-9 || math.Abs(x[1]-1) > 1e-9 {
		t.Errorf("got %v with %v", x, loss)
	}
}

// Scores are in standard deviations within sites: guesses of a site's mean have an
// error of 1, rows themselves none.
func TestScoresAreInStandardDeviations(t *testing.T) {
	view := study.View{Features: []study.Feature{{Range: &[2]float64{-12, 12}}, {Range: &[2]float64{-12, 12}}}}
	v := &victims{Plan: &study.Plan{Views: []study.View{view}}, Dim: 2, Seed: 3}
	v.example()
	v.measure()
	var means []float64
	for j, rows := range v.Sites {
		for range len(rows) / 2 {
			means = append(means, v.Means[j]...)
		}
	}
	all := slices.Concat(v.Sites...)
	if r := v.score(all, means, 0.1); math.Abs(r.RMSE-1) > 1e-12 || r.Rows != 300 || r.Found > 30 ||
		math.Abs(r.SD-1) > 0.1 {
		t.Errorf("guessing means: %+v", r)
	}
	if r := v.score(all, all, 0.1); r.RMSE != 0 || r.Found != 300 {
		t.Errorf("the rows themselves: %+v", r)
	}
}
