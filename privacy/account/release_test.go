package account

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

func TestAnalyticGaussianIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epsilon := math.Exp(rapid.Float64Range(-8, 8.5).Draw(t, "ln ε"))
		delta := math.Exp(rapid.Float64Range(-80, -0.75).Draw(t, "ln δ"))
		factor := testkit.Get(AnalyticGaussian(epsilon, delta))(t)
		at, err1 := GaussianDelta(factor, epsilon)
		below, err2 := GaussianDelta(factor*(1-1e-7), epsilon)
		if err1 != nil || err2 != nil || at > delta*(1+1e-9) || below <= delta {
			t.Errorf("factor %v has δ %v, a little less has %v; want %v (%v, %v)", factor, at, below, delta, err1, err2)
		}
		zhao, _, err := ZhaoGaussian(epsilon, delta)
		if err != nil || zhao < factor {
			t.Errorf("Theorem 5 allows %v (%v), less than %v", zhao, err, factor)
		}
		classic, proven, err := ClassicGaussian(epsilon, delta)
		if err != nil || proven != (epsilon <= 1) || proven && classic < factor {
			t.Errorf("the classic noise is %v, proven %v (%v); the least is %v", classic, proven, err, factor)
		}
	})
}

func TestWhatSingleReleasesRefuse(t *testing.T) {
	for _, b := range []Budget{{0, 0.1}, {-1, 0.1}, {math.NaN(), 0.1}, {math.Inf(1), 0.1}, {1, 0}, {1, 1},
		{1, math.NaN()}} {
		if _, err := AnalyticGaussian(b.Epsilon, b.Delta); err == nil {
			t.Errorf("analytic noise at %+v", b)
		}
		if _, _, err := ZhaoGaussian(b.Epsilon, b.Delta); err == nil {
			t.Errorf("noise by Theorem 5 at %+v", b)
		}
		if _, _, err := ClassicGaussian(b.Epsilon, b.Delta); err == nil {
			t.Errorf("classic noise at %+v", b)
		}
	}
	if _, _, err := ZhaoGaussian(1, 0.5); err == nil {
		t.Error("Theorem 5 at a delta of 1/2")
	}
	for _, x := range [][2]float64{{0, 1}, {math.NaN(), 1}, {1, -1}, {1, math.NaN()}} {
		if d, err := GaussianDelta(x[0], x[1]); err == nil {
			t.Errorf("factor %v has δ %v at ε %v", x[0], d, x[1])
		}
	}
}
