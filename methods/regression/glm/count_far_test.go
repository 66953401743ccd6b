package glm

import (
	"math"
	"testing"
)

// However far a rate is from where it can be calculated, a count's expectation, spread and
// interval are finite, and of a rate that is known the interval holds the expectation.
func TestCountsFarOut(t *testing.T) {
	for _, a := range []float64{-1e6, -200, -30, 0, 12, 29.99, 30.01, 40, 200, 1e6} {
		for _, c := range []float64{0, 1e-4, 0.04} {
			var mean [1]float64
			Poisson{}.Predict([]float64{a}, []float64{c}, mean[:])
			low, high := CountQuantile(0.05, a, c), CountQuantile(0.95, a, c)
			sd := CountSpread(a, c)
			if !(low <= mean[0]+1 && mean[0] <= high+1 && high < math.MaxFloat64 && Finite(sd)) {
				t.Errorf("activation %v ± %v: %v ± %v in %v to %v", a, math.Sqrt(c), mean[0], sd, low, high)
			}
		}
	}
}
