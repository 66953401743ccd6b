package account

import (
	"math"
	"testing"
)

// TestGaussianLogDelta compares with mpmath at some thousand digits.
func TestGaussianLogDelta(t *testing.T) {
	for _, c := range []struct{ mu, epsilon, want float64 }{
		{1e-6, 1e-7, -14.862663822037167},
		{1e-3, 0.05, -1265.6269382723434},
		{0.3, 5, -144.16045966594876},
		{0.49999, 1, -4.9866162384557421},
		{0.5, 1, -4.9864899068481334},
		{2, 0, -0.38171514630212607},
		{60, 5000, -1427.7543054006595},
		{90, 3000, -1.0848535562589503e-31},
		{0.01, 1, -5014.2347614837394},
	} {
		got := gaussianLogDelta(c.mu, c.epsilon)
		if math.Abs(got-c.want) > 1e-13*(1+math.Abs(c.want)+c.epsilon) {
			t.Errorf("μ %v: log δ(%v) = %v, want %v", c.mu, c.epsilon, got, c.want)
		}
	}
}

// TestGaussianInverses: ε and μ come back from each other, on the safe side.
func TestGaussianInverses(t *testing.T) {
	for _, mu := range []float64{1e-4, 0.1, 0.7, 5, 100} {
		for _, delta := range []float64{1e-300, 1e-30, 1e-10, 1e-5} {
			e := gaussianEpsilon(mu, delta)
			if l := gaussianLogDelta(mu, e); l > math.Log(delta) {
				t.Errorf("μ %v: ε %v for δ %v has log δ %v", mu, e, delta, l)
			}
			back := gaussianMu(Budget{e, delta})
			if math.Abs(back-mu) > 1e-10*mu {
				t.Errorf("μ %v: comes back as %v from ε %v, δ %v", mu, back, e, delta)
			}
		}
	}
}
