package glm

import "math"

// Cloglog is p(+1 | f) = 1 − exp(−eᶠ), the complementary log-log link. Of an event in a period f is the logarithm
// of the hazard summed over the period, so that effects are those of a model of proportional hazards
// (Prentice and Gloeckler, Biometrics 1978).
type Cloglog struct{}

// Activations returns 1.
func (Cloglog) Activations() int { return 1 }

// Check wants −1 or +1.
func (Cloglog) Check(y float64) error { return checkBinary(y) }

// LogLik returns −u or ln(1 − e⁻ᵘ), for u = eᶠ.
func (Cloglog) LogLik(y float64, f, first []float64) (value, curve float64) {
	u, d1, d2 := rate(f[0])
	if y < 0 {
		first[0] = -d1
		return -u, d2
	}
	if f[0] < -logRateEnd { // ln u but for rounding
		first[0] = 1
		return f[0], u / 2
	}
	g := d1 / math.Expm1(u)
	first[0] = g
	return math.Log(-math.Expm1(-u)), g * (u/-math.Expm1(-u) - 1)
}

// Predict sets the probability of +1.
func (l Cloglog) Predict(a, c, dst []float64) {
	dst[0] = math.Exp(l.LogExpect(1, a[0], c[0]))
	switch {
	case dst[0] <= 1:
	case math.IsNaN(dst[0]) && a[0] <= 0:
		dst[0] = 0
	default:
		dst[0] = 1
	}
}

// LogExpect implements [Binary].
func (l Cloglog) LogExpect(y, a, c float64) float64 {
	return min(logExpect(func(f float64) (value, d1, d2 float64) {
		at, first := [1]float64{f}, [1]float64{}
		value, curve := l.LogLik(y, at[:], first[:])
		return value, first[0], -curve
	}, a, math.Sqrt(c)), 0)
}

// ExpectNone implements [Binary]: −E eᶠ.
func (Cloglog) ExpectNone(a, c float64) (value, slope float64) {
	value, slope, _ = rate(a + c/2)
	return -value, -slope
}
