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
		return linear{glm.Linear{Variance: rapid.Float64Range(0.1, 4).Draw(t, "noise")}},
			rapid.Float64Range(-5, 5).Draw(t, "y")
	}
	return logistic{}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
}

func TestDerivativesAreThoseOfTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, y := drawLikelihood(t)
		z := [2]float64{rapid.Float64Range(-4, 4).Draw(t, "a"), rapid.Float64Range(0.05, 12).Draw(t, "c")}
		expect := func() (value float64, first []float64, second [3]float64) {
			value, da, dc, second := l.Expect(y, z[0], z[1])
			return value, []float64{da, dc}, second
		}
		_, first, second := expect()
		testkit.Do(t, l.Check(y))
		da, dc := l.Slopes(y, z[0], z[1])
		near(t, "slopes", first, []float64{da, dc}, 1e-14)
		const h = 1e-5
		at := 0
		for i := range z {
			old := z[i]
			z[i] = old + h
			vu, up, _ := expect()
			z[i] = old - h
			vd, down, _ := expect()
			z[i] = old
			near(t, "first", []float64{(vu - vd) / (2 * h)}, first[i:i+1], 1e-6)
			for j := range i + 1 {
				near(t, "second", []float64{(up[j] - down[j]) / (2 * h)}, second[at:at+1], 1e-6)
				at++
			}
		}
	})
}

func TestDrawsHaveNoSlopeByAVarianceOfZero(t *testing.T) {
	da, dc := sampled{draws: []float64{-1, 3}}.Slopes(1, 0.7, 0)
	if math.Abs(da-1/(1+math.Exp(0.7))) > 1e-15 || dc != 0 {
		t.Errorf("%v, %v", da, dc)
	}
}
