package account

import (
	"math"
	"math/cmplx"
	"testing"

	"pgregory.net/rapid"
)

// TestEnvelopes: no frequency beyond one has more than the envelope there.
func TestEnvelopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pair
		rate := math.Exp(rapid.Float64Range(-8, -0.01).Draw(t, "log rate"))
		if rapid.Bool().Draw(t, "near one") {
			rate = 1 - rate
		}
		noise := math.Exp(rapid.Float64Range(-2.5, 3).Draw(t, "log noise"))
		switch dir := rapid.IntRange(0, 4).Draw(t, "pair"); dir {
		case 3:
			p = laplace{1 / noise}
		case 4:
			p = shifted{1 / noise}
		default:
			p = sampled{q: rate, sigma: noise, dir: direction(dir)}
		}
		s := math.Exp(rapid.Float64Range(-4, 3).Draw(t, "log tilt"))
		_, _, variance := p.cumulant(s)
		omega := math.Exp(rapid.Float64Range(-5, 2).Draw(t, "log frequency")) / math.Sqrt(variance)
		if m, ok := p.(sampled); ok && m.cost(s, 20*omega) > 1e4 {
			return
		}
		bound := p.envelope(s, omega)
		for range 5 {
			w := omega * math.Exp(rapid.Float64Range(0, 3).Draw(t, "log ratio"))
			ray := p.ray(s, w)
			ray()
			if got := cmplx.Abs(ray()); got > bound*(1+1e-9) {
				t.Errorf("%+v at %v: |φ(%v)| = %v, above the envelope %v of %v", p, s, w, got, bound, omega)
			}
		}
	})
}

// TestEnvelopeOfAtoms: an exponent below which most of the outputs of a Gaussian
// sampled with little noise have nearly one loss, and the others another: the
// spectrum comes back, with an octave of next to nothing between after a
// hundred steps.
func TestEnvelopeOfAtoms(t *testing.T) {
	m := sampled{q: 0.5, sigma: 0.08, dir: remove}
	const s, steps = 0.01, 100
	_, _, variance := m.cumulant(s)
	omega := 1 / math.Sqrt(variance)
	ray := m.ray(s, omega/4)
	var between, later float64
	for j := range 40 {
		a := math.Pow(cmplx.Abs(ray()), steps)
		switch {
		case j >= 4 && j <= 8:
			between = math.Max(between, a)
		case j > 8:
			later = math.Max(later, a)
		}
	}
	if !(between < 1e-9*later) {
		t.Fatalf("no gap: %v between, %v later", between, later)
	}
	if bound := math.Pow(m.envelope(s, 2*omega), steps); bound < later || bound > 1e6*later {
		t.Errorf("envelope %v, the spectrum comes back to %v", bound, later)
	}
}
