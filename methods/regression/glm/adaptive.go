package glm

import "math"

// Adaptive places Gauss–Hermite nodes where exp(g(z)) φ(z) has its mass, for a concave g
// and the standard normal density φ (Liu and Pierce, Biometrika 1994): about the mode,
// scaled by the curvature there. It returns nodes z with logarithms ln u of weights,
// so that ∫ exp(g) φ ≈ Σ exp(ln u + g(z)). The derivatives of g by z are what slopes
// returns. Both slices are as long as the rule.
func (r Rule) Adaptive(slopes func(z float64) (d1, d2 float64), nodes, logWeights []float64) {
	mode, curvature := modeOf(slopes)
	scale := 1 / math.Sqrt(curvature)
	for k, x := range r.Nodes {
		z := mode + scale*x
		nodes[k] = z
		// The rule's own density is N(mode, scale²).
		logWeights[k] = math.Log(r.Weights[k]*scale) + (x*x-z*z)/2
	}
}

// modeOf finds where d1(z) − z = 0, and returns the negative second derivative 1 − d2
// there. As the slope falls by at least 1 for each unit of z, the mode is between 0 and
// the slope at 0: Newton's steps are kept inside an interval that halves otherwise.
func modeOf(slopes func(z float64) (d1, d2 float64)) (mode, curvature float64) {
	d1, d2 := slopes(0)
	low, high := min(0, d1), max(0, d1)
	z := 0.0
	for range 200 {
		slope := d1 - z
		curvature = 1 - min(d2, 0)
		if math.Abs(slope) <= 1e-10*math.Sqrt(curvature) || !(high-low > 1e-14*(1+math.Abs(z))) {
			break
		}
		if slope > 0 {
			low = z
		} else {
			high = z
		}
		next := z + slope/curvature
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		z = next
		d1, d2 = slopes(z)
	}
	return z, curvature
}

// negligible is the logarithm of a share of an integral that rounding leaves.
const negligible = -40

// logExpect returns ln E exp(density(f)) under f ~ N(a, s²), for a log-concave density
// that comes with its first two derivatives: by the trapezoidal rule from the mode to either side, with steps of
// half of the integrand's deviation there, of s and of a quarter of f's unit at most. NaN if a or s is not finite.
func logExpect(density func(f float64) (value, d1, d2 float64), a, s float64) float64 {
	if !Finite(a) || !Finite(s) {
		return math.NaN()
	}
	value, _, _ := density(a)
	if s == 0 {
		return value
	}
	mode, curvature := modeOf(func(z float64) (float64, float64) {
		_, d1, d2 := density(a + s*z)
		return s * d1, s * s * d2
	})
	step := min(1/(4*s), 0.5/math.Sqrt(curvature))
	at := func(k int) float64 {
		z := mode + step*float64(k)
		v, _, _ := density(a + s*z)
		return v - z*z/2
	}
	top := at(0)
	sum := 1.0
	for _, way := range []int{-1, 1} {
		for k := way; k < mostNodes && -k < mostNodes; k += way {
			v := at(k) - top
			sum += math.Exp(v)
			if !(v > negligible) {
				break
			}
		}
	}
	return top + math.Log(sum*step/math.Sqrt(2*math.Pi))
}

// mostNodes on either side of a mode are enough where s is below 100.
const mostNodes = 4000
