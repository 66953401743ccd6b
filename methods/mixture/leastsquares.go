package mixture

import (
	"fmt"
	"math"

	"parley/methods/mixture/gmm"
)

// LeastSquares moves x to a minimum of |r(x)|² by the steps of Levenberg and
// Marquardt, and returns it. residuals writes m residuals and, unless jac is nil, their
// derivatives, m × len(x) by rows.
func LeastSquares(x []float64, m int, residuals func(r, jac, x []float64)) (loss float64) {
	n := len(x)
	r, jac := make([]float64, m), make([]float64, m*n)
	gram, l, slope, step, to := make([]float64, n*n), make([]float64, n*n), make([]float64, n), make([]float64, n), make([]float64, n)
	residuals(r, jac, x)
	loss = gmm.Squares(r)
	damping := 1e-3
	for range 200 {
		clear(gram)
		clear(slope)
		for i, v := range r {
			row := jac[i*n:][:n]
			for a, g := range row {
				if g == 0 {
					continue
				}
				slope[a] += g * v
				for b, h := range row[:a+1] {
					gram[a*n+b] += g * h
				}
			}
		}
		before, better := loss, false
		for range 16 {
			copy(l, gram)
			for a := range n {
				l[a*n+a] += damping*gram[a*n+a] + 1e-300
			}
			if _, ok := gmm.Cholesky(l, n); ok {
				copy(step, slope)
				gmm.Forward(l, n, step)
				gmm.BackwardSolve(l, n, step)
				for a := range to {
					to[a] = x[a] - step[a]
				}
				residuals(r, nil, to)
				if v := gmm.Squares(r); v < loss {
					copy(x, to)
					loss, better = v, true
					damping = max(damping/10, 1e-15)
					break
				}
			}
			damping = 10 * max(damping, 1e-12)
		}
		if !better || before-loss <= 1e-12*loss {
			break
		}
		residuals(r, jac, x)
	}
	return loss
}

// difference is what two answers to one question tell about the record by which two
// sets differ: with sums (means times numbers of rows) of the larger and the smaller
// set, its own contribution. Where answers are exact, so is it; where they carry
// noise, it carries that of both.
func difference(larger, smaller []float64) ([]float64, error) {
	if len(larger) != len(smaller) {
		return nil, fmt.Errorf("sums of %d and of %d numbers", len(larger), len(smaller))
	}
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	return d, nil
}

// mostAdvantage returns how often, at most, anybody is right who must tell from a
// release under (ε, δ) which of two records it held, both equally likely
// beforehand: (e^ε + δ)/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
func mostAdvantage(epsilon, delta float64) float64 {
	e := math.Exp(-epsilon)
	return min(1, (1+delta*e)/(1+e))
}
