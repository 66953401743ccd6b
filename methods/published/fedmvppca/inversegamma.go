package fedmvppca

import (
	"fmt"
	"math"

	"parley/internal/stats"
)

// maxAlpha stands for an inverse-gamma law without spread: all values equal.
const maxAlpha = 1e12

// inverseGamma returns the maximum-likelihood parameters of an inverse-gamma
// law for positive values x, fully converged:
//
//	ln α − ψ(α) = ln mean(1/x) + mean ln x,   β = α / mean(1/x).
//
// One value, or values that are all equal, have α → ∞: α is then 1e12. This is
// method ML1 of Llera and Beckmann, "Estimating an Inverse Gamma distribution",
// 2016, at its fixed point.
func inverseGamma(x []float64) (alpha, beta float64, err error) {
	if len(x) == 0 {
		return 0, 0, fmt.Errorf("inverse-gamma law of no values")
	}
	inverse := 0.0
	for i, v := range x {
		if !(v > 0) || math.IsInf(v, 0) {
			return 0, 0, fmt.Errorf("inverse-gamma law of value %d, %v, which is not positive and finite", i, v)
		}
		inverse += 1 / v
	}
	inverse /= float64(len(x))
	// Relative to the harmonic mean, 1/x = (1 + e)/h, the right-hand side is
	// ln(1 + mean e) − mean ln(1 + e), free of cancellation for values alike.
	h := 1 / inverse
	meanE, meanLog := 0.0, 0.0
	for _, v := range x {
		e := (h - v) / v
		meanE += e
		if math.Abs(e) < 0.5 {
			meanLog += math.Log1p(e)
		} else {
			meanLog += math.Log(h / v)
		}
	}
	n := float64(len(x))
	s := math.Log1p(meanE/n) - meanLog/n
	alpha = maxAlpha
	if s > stats.LogMinusDigamma(maxAlpha) {
		alpha = inverseLogMinusDigamma(s)
	}
	return alpha, alpha / inverse, nil
}

// inverseLogMinusDigamma solves f(α) = ln α − ψ(α) = s > 0. Since f is nearly
// proportional to 1/α at both ends, α ← α f(α)/s gains a digit or more per step.
func inverseLogMinusDigamma(s float64) float64 {
	a := (3 - s + math.Sqrt((s-3)*(s-3)+24*s)) / (12 * s)
	for range 100 {
		next := a * stats.LogMinusDigamma(a) / s
		if math.Abs(next-a) <= 1e-15*a {
			return next
		}
		a = next
	}
	return a
}
