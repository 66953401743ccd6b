package hierarchical

import (
	"math"
	"math/rand/v2"
	"testing"
)

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
	if a, b := noiseLaw(spread, df); math.Abs(a-4) > 1 || math.Abs(b/a-1.25) > 0.15 {
		t.Errorf("alpha %v and beta/alpha %v, drawn with 4 and 1.25", a, b/a)
	}
	if a, b := noiseLaw(same, df); a < 100 || math.Abs(b/a-1.5) > 0.05 {
		t.Errorf("alpha %v and beta/alpha %v for one common variance 1.5", a, b/a)
	}
	if a, b := noiseLaw([]float64{2}, []float64{30}); a != maxSharedAlpha || b/a != 2 {
		t.Errorf("one site: %v, %v", a, b)
	}
	// Stationary in both directions.
	a, b := noiseLaw(spread, df)
	at := noiseLawLogLik(a, b, spread, df)
	for _, f := range []float64{0.99, 1.01} {
		if noiseLawLogLik(a*f, b, spread, df) > at || noiseLawLogLik(a, b*f, spread, df) > at {
			t.Error("not a maximum")
		}
	}
}
