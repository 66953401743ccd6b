package precision

import (
	"math"

	"parley/methods/mvppca/ppca"
)

// R2 returns the share of the variance of view k that factor f of a canonical model explains
// by itself, or all factors together for f = q, in large samples of subjects with all
// features: see [ppca.Explained.R2]. Its standard error in a sample of N is the square root
// of variance/N, by the delta method from the two sums of squares, whose law is that of
// quadratic forms of normal vectors.
//
// With D the factors that are counted and M the posterior covariance of all, the view's
// residuals have covariance Ψ + W (I − D − D M D) Wᵀ, and Ψ + W (I − D) Wᵀ with its values.
func R2(l ppca.Layout, p *ppca.Params, strengths []float64, k, f int) (r2, variance float64) {
	q, group := p.Rank, l.GroupOf()
	first, end := l.View(k)
	residual, cross, all := make([]float64, q), make([]float64, q), make([]float64, q)
	for a, s := range strengths {
		all[a], cross[a], residual[a] = 1, 1, 1
		if f == q || a == f {
			cross[a], residual[a] = 0, -1/(1+s)
		}
	}
	h := make([]float64, q*q) // WᵀW
	for j := first; j < end; j++ {
		w := p.W[j*q:][:q]
		for a, x := range w {
			for b, y := range w {
				h[a*q+b] += x * y
			}
		}
	}
	// sums returns trace and squared Frobenius norm of Ψ + W diag(c) Wᵀ.
	sums := func(c []float64) (trace, norm float64) {
		for j := first; j < end; j++ {
			psi, x := p.Noise[group[j]], 0.0
			for a, w := range p.W[j*q:][:q] {
				x += c[a] * w * w
			}
			trace += psi + x
			norm += psi*psi + 2*psi*x
		}
		for a := range c {
			for b := range c {
				norm += c[a] * c[b] * h[a*q+b] * h[a*q+b]
			}
		}
		return trace, norm
	}
	rest, rr := sums(residual)
	total, tt := sums(all)
	_, rt := sums(cross)
	ratio := rest / total
	return 1 - ratio, math.Max(0, 2*(rr-2*ratio*rt+ratio*ratio*tt)/(total*total))
}
