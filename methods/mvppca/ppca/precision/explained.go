package precision

import (
	"math"

	"parley/methods/mvppca/ppca"
)

// R2 returns the share of the variance of view k that all factors of a canonical model
// explain together, in large samples of subjects with all features: see
// [ppca.Explained.R2]. Its standard error in a sample of N is the square root of variance/N,
// by the delta method from the two sums of squares, whose law is that of quadratic forms of
// normal vectors: with M the posterior covariance of the factors, the view's residuals have
// covariance Ψ − W M Wᵀ, and Ψ with its values. Of factors that are not normal fourths tell, of
// their scores, which have a part λ/(1 + λ) of the excess of the factors' own for each of the two.
func R2(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, k int) (r2, variance float64) {
	q, group := p.Rank, l.GroupOf()
	first, end := l.View(k)
	residual, cross, all := make([]float64, q), make([]float64, q), make([]float64, q)
	for a, s := range strengths {
		all[a], residual[a] = 1, -1/(1+s)
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
	heavy := 0.0
	for a, s := range strengths {
		for b, t := range strengths {
			if excess := fourths.excess(a, b, q); excess > 0 && s > 0 && t > 0 {
				of := func(c int, s float64) float64 { return h[c*q+c] * (1/((1+s)*(1+s)) - ratio) * (1 + s) / s }
				heavy += excess * of(a, s) * of(b, t)
			}
		}
	}
	return 1 - ratio, math.Max(0, (2*(rr-2*ratio*rt+ratio*ratio*tt)+heavy)/(total*total))
}

// Interval returns intervals of 90 % for the share that a model of q factors explains in the
// population, where it explains r2 of some of the subjects it was fitted to, and [R2] gives
// the variance. It is about 1 − (1 − r2) (n − 1)/(n − q − 1), n being all whom the model was
// fitted to (Ezekiel 1930): of these it explains more than of others.
func Interval(variance float64, q int, fitted float64) func(r2, subjects float64) (low, high float64) {
	freedom := max(1, fitted-float64(q+1))
	quantile := half(freedom)
	return func(r2, subjects float64) (low, high float64) {
		centre := 1 - (1-r2)*max(1, (fitted-1)/freedom)
		half := quantile * math.Sqrt(variance/subjects*max(1, fitted/freedom))
		return centre - half, min(1, centre+half)
	}
}
