package dppvi

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// drawLikelihood draws one of each kind, and an outcome that it knows.
func drawLikelihood(t *rapid.T) (likelihood, float64) {
	if rapid.Bool().Draw(t, "linear") {
		return linear{glm.Linear{Variance: rapid.Float64Range(0.1, 4).Draw(t, "noise")}}, rapid.Float64Range(-5, 5).Draw(t, "y")
	}
	return logistic{}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
}

func TestDerivativesAreThoseOfTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, y := drawLikelihood(t)
		k := l.Activations()
		z := append(rapid.SliceOfN(rapid.Float64Range(-4, 4), k, k).Draw(t, "a"),
			rapid.SliceOfN(rapid.Float64Range(0.05, 12), k, k).Draw(t, "c")...)
		first, second := make([]float64, 2*k), make([]float64, k*(2*k+1))
		value := l.Expect(y, z[:k], z[k:], first, second)
		testkit.Do(t, l.Check(y))
		slopes := make([]float64, 2*k)
		l.Slopes(y, z[:k], z[k:], slopes)
		near(t, "slopes", first, slopes, 1e-14)
		const h = 1e-5
		at := 0
		up, down := make([]float64, 2*k), make([]float64, 2*k)
		for i := range z {
			old := z[i]
			z[i] = old + h
			vu := l.Expect(y, z[:k], z[k:], up, nil)
			z[i] = old - h
			vd := l.Expect(y, z[:k], z[k:], down, nil)
			z[i] = old
			near(t, "first", []float64{(vu - vd) / (2 * h)}, first[i:i+1], 1e-6)
			for j := range i + 1 {
				near(t, "second", []float64{(up[j] - down[j]) / (2 * h)}, second[at:at+1], 1e-6)
				at++
			}
		}
		if again := l.Expect(y, z[:k], z[k:], first, nil); again != value {
			t.Fatalf("%v without second derivatives, %v with them", again, value)
		}
	})
}

func TestDrawsHaveNoSlopeByAVarianceOfZero(t *testing.T) {
	first := make([]float64, 2)
	sampled{draws: []float64{-1, 3}}.Slopes(1, []float64{0.7}, []float64{0}, first)
	if math.Abs(first[0]-1/(1+math.Exp(0.7))) > 1e-15 || first[1] != 0 {
		t.Errorf("%v", first)
	}
}
