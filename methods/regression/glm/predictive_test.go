package glm

import (
	"math"
	"testing"
)

// Logarithms of probabilities hold far in the tail, and with activations that are wide there.
func TestLogarithmsOfSmallProbabilities(t *testing.T) {
	for _, s := range []float64{0.1, 0.64, 0.66, 1, 2, 4, 8} {
		for _, a := range []float64{3, -1, -10, -25, -40} {
			want := math.Log(trapezoid(a, s, func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }))
			if got := LogExpectSigmoid(a, s*s); math.Abs(got-want) > 1e-8 {
				t.Errorf("at %v, %v: %v, want %v", a, s, got, want)
			}
		}
	}
}
