package mixture

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The minimum of Rosenbrock's function is 0 at (1, 1).
func TestLeastSquaresFindsTheMinimum(t *testing.T) {
	x := []float64{-1.2, 1}
	loss := LeastSquares(x, 2, func(r, jac, x []float64) {
		r[0], r[1] = 10*(x[1]-x[0]*x[0]), 1-x[0]
		if jac != nil {
			copy(jac, []float64{-20 * x[0], 10, -1, 0})
		}
	})
	if loss > 1e-20 || math.Abs(x[0]-1) > 1e-9 || math.Abs(x[1]-1) > 1e-9 {
		t.Errorf("got %v with %v", x, loss)
	}
}

func TestMostAdvantage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Float64Range(0, 50).Draw(t, "ε")
		if a := mostAdvantage(e, 1e-5); a < 0.5 || a > 1 || a > mostAdvantage(e+0.1, 1e-5) {
			t.Fatalf("at ε = %v: %v", e, a)
		}
	})
	if got := mostAdvantage(0, 0); got != 0.5 {
		t.Errorf("ε = 0 allows %v, want a coin", got)
	}
}
