package fedmvppca

import (
	"math"
	"testing"

	"parley/internal/stats"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

func TestInverseGammaIsStationary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(1e-6, 1e3), 2, 20).Draw(rt, "x")
		alpha, beta, err := inverseGamma(x)
		if err != nil {
			rt.Fatal(err)
		}
		inverse, meanLog := 0.0, 0.0
		for _, v := range x {
			inverse += 1 / v / float64(len(x))
			meanLog += math.Log(v) / float64(len(x))
		}
		// Derivatives of the log-likelihood per value.
		dAlpha := math.Log(beta/alpha) + stats.LogMinusDigamma(alpha) - meanLog
		dBeta := alpha/beta - inverse
		if alpha < maxAlpha && (math.Abs(dAlpha) > 1e-12*(1+math.Abs(meanLog)) || math.Abs(dBeta) > 1e-12*inverse) {
			rt.Fatalf("derivatives %v and %v at %v, %v", dAlpha, dBeta, alpha, beta)
		}
	})
}

func TestInverseGammaWithoutSpread(t *testing.T) {
	for _, x := range [][]float64{{2}, {2, 2, 2}} {
		alpha, beta, err := inverseGamma(x)
		if err != nil || alpha != 1e12 || math.Abs(beta/alpha-2) > 1e-15 {
			t.Errorf("%v: %v, %v, %v", x, alpha, beta, err)
		}
	}
	for _, x := range [][]float64{nil, {1, 0}, {-1}, {math.NaN()}, {math.Inf(1)}} {
		if _, _, err := inverseGamma(x); err == nil {
			t.Errorf("%v was accepted", x)
		}
	}
	if !math.IsInf(ppca.InverseGammaVariance(2, 1), 1) {
		t.Error("a finite variance at alpha 2")
	}
}
