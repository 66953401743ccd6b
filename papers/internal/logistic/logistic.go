// Package logistic has the logistic function, for classifiers.
package logistic

import "math"

// Sigma returns σ(s) = 1/(1 + e⁻ˢ) without overflow.
func Sigma(s float64) float64 {
	if s < 0 {
		e := math.Exp(s)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-s))
}

// LogSigma returns ln σ(s) without overflow: the log-likelihood of the label 1 at
// the logit s, and at −s that of the label 0.
func LogSigma(s float64) float64 {
	return min(s, 0) - math.Log1p(math.Exp(-math.Abs(s)))
}
