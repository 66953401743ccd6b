package ppca_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/special"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
)

func TestInverseGammaIsStationary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(1e-6, 1e3), 2, 20).Draw(rt, "x")
		alpha, beta, err := ppca.InverseGamma(x)
		if err != nil {
			rt.Fatal(err)
		}
		inverse, meanLog := 0.0, 0.0
		for _, v := range x {
			inverse += 1 / v / float64(len(x))
			meanLog += math.Log(v) / float64(len(x))
		}
		// Derivatives of the log-likelihood per value.
		dAlpha := math.Log(beta) - special.Digamma(alpha) - meanLog
		dBeta := alpha/beta - inverse
		if alpha < ppca.MaxAlpha && (math.Abs(dAlpha) > 1e-12*(1+math.Abs(meanLog)) || math.Abs(dBeta) > 1e-12*inverse) {
			rt.Fatalf("derivatives %v and %v at %v, %v", dAlpha, dBeta, alpha, beta)
		}
	})
}

func TestInverseGammaWithoutSpread(t *testing.T) {
	for _, x := range [][]float64{{2}, {2, 2, 2}} {
		alpha, beta, err := ppca.InverseGamma(x)
		if err != nil || alpha != 1e12 || math.Abs(beta/alpha-2) > 1e-15 {
			t.Errorf("%v: %v, %v, %v", x, alpha, beta, err)
		}
	}
	for _, x := range [][]float64{nil, {1, 0}, {-1}, {math.NaN()}, {math.Inf(1)}} {
		if _, _, err := ppca.InverseGamma(x); err == nil {
			t.Errorf("%v was accepted", x)
		}
	}
	if !math.IsInf(ppca.InverseGammaVariance(2, 1), 1) {
		t.Error("a finite variance at alpha 2")
	}
}

// TestNoiseLawRecoversASpread draws true variances and their estimates.
func TestNoiseLawRecoversASpread(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 1))
	chi2 := func(df int) float64 {
		s := 0.0
		for range df {
			z := r.NormFloat64()
			s += z * z
		}
		return s
	}
	var spread, same, df []float64
	for range 400 {
		tau := 5 / (chi2(8) / 2) // inverse-gamma with alpha 4, beta 5
		spread = append(spread, tau*chi2(40)/40)
		same = append(same, 1.5*chi2(40)/40)
		df = append(df, 40)
	}
	if a, b := ppca.NoiseLaw(spread, df); math.Abs(a-4) > 1 || math.Abs(b/a-1.25) > 0.15 {
		t.Errorf("alpha %v and beta/alpha %v, drawn with 4 and 1.25", a, b/a)
	}
	if a, b := ppca.NoiseLaw(same, df); a < 100 || math.Abs(b/a-1.5) > 0.05 {
		t.Errorf("alpha %v and beta/alpha %v for one common variance 1.5", a, b/a)
	}
	if a, b := ppca.NoiseLaw([]float64{2}, []float64{30}); a != ppca.MaxSharedAlpha || b/a != 2 {
		t.Errorf("one site: %v, %v", a, b)
	}
	// Stationary in both directions.
	a, b := ppca.NoiseLaw(spread, df)
	at := ppca.NoiseLawLogLik(a, b, spread, df)
	for _, f := range []float64{0.99, 1.01} {
		if ppca.NoiseLawLogLik(a*f, b, spread, df) > at || ppca.NoiseLawLogLik(a, b*f, spread, df) > at {
			t.Error("not a maximum")
		}
	}
}

func TestClippingNeedsABound(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(52, 1))
	tr := synthetic.NewTruth(r, l, 1, 0.5)
	prior := synthetic.Must(ppca.Weak(l, &tr.P))(t)
	if _, err := ppca.ClipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err != nil {
		t.Fatal(err)
	}
	prior.Alpha[0] = 2
	if _, err := ppca.ClipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err == nil {
		t.Error("a prior without finite variance was accepted")
	}
	for _, c := range [][3]float64{{0, 1e-5, 1}, {1, 0, 1}, {1, 0.5, 1}, {math.NaN(), 1e-5, 1}, {1, 1e-5, 0}} {
		if _, err := ppca.ClipDifference(l, &tr.P, prior, 1, c[0], c[1], c[2]); err == nil {
			t.Errorf("epsilon, delta, constant %v were accepted", c)
		}
	}
}
