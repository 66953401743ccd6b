package precision

import (
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mvppca/linalg"
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

// Fit returns the variance of the R² of each view among fits to samples of such subjects; nil where
// the noise counts as known, as [R2] has it. It is the delta method with directions as those of [Rotated].
func Fit(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern) (variance []float64) {
	if checkFactors(p.Rank, strengths, fourths) != nil || !(slices.Min(strengths) > leastStrength) {
		return nil
	}
	w := newPerturbed(l, p, strengths, newTold(l, p, strengths, fourths, patterns))
	if w.free == nil {
		return nil
	}
	w.delta, variance = make([]float64, w.free.groups), make([]float64, l.Views())
	fitted := w.r2(l, 0)
	rng := rand.New(rand.NewPCG(uint64(len(p.Features)), uint64(p.Rank)))
	for range directions {
		step := w.draw(rng)
		for k, x := range w.r2(l, step) {
			slope := (x - fitted[k]) / step
			variance[k] += slope * slope / directions
		}
	}
	return variance
}

// r2 is that of each view so far along the direction.
func (w *perturbed) r2(l ppca.Layout, step float64) []float64 {
	q, v, view := len(w.strengths), w.scaled(), l.ViewOf()
	prec, rest, total := make([]float64, q*q), make([]float64, l.Views()), make([]float64, l.Views())
	for a := range q {
		prec[a*q+a] = 1
	}
	for i, g := range w.free.group {
		for a := range q {
			if step != 0 {
				v[i*q+a] += step * w.loading[i*q+a]
			}
			for b := range a + 1 {
				prec[a*q+b] += v[i*q+a] * v[i*q+b] / (1 + step*w.delta[g])
			}
		}
	}
	if _, ok := linalg.Cholesky(prec, q, q); !ok {
		return slices.Repeat([]float64{math.NaN()}, l.Views())
	}
	x := make([]float64, q)
	for i, g := range w.free.group {
		k, noise, common := view[w.p.Features[i]], 1+step*w.delta[g], 0.0
		copy(x, v[i*q:])
		for _, y := range x {
			common += y * y
		}
		rest[k] += w.noise[i] * (noise - linalg.CholQuadratic(prec, q, q, x))
		total[k] += w.noise[i] * (noise + common)
	}
	for k := range rest {
		rest[k] = 1 - rest[k]/total[k]
	}
	return rest
}

// Interval returns intervals of 90 % for the share that a model of q factors explains in the
// population, where it explains r2 of some of the subjects it was fitted to, [R2] gives
// the variance and [Fit] that of the fit. It is about 1 − (1 − r2) (n − 1)/(n − q − 1), n being all
// whom the model was fitted to (Ezekiel 1930): of these it explains more than of others. Some of
// them differ from all by the variance of their sample, and all from the population by that of the fit.
func Interval(variance, fit float64, q int, fitted float64) func(r2, subjects float64) (low, high float64) {
	freedom := max(1, fitted-float64(q+1))
	quantile := half(freedom)
	return func(r2, subjects float64) (low, high float64) {
		centre, of := 1-(1-r2)*max(1, (fitted-1)/freedom), variance/subjects
		if !math.IsNaN(fit) {
			of = fit + variance*max(0, 1/subjects-1/fitted)
		}
		half := quantile * math.Sqrt(of*max(1, fitted/freedom))
		return centre - half, min(1, centre+half)
	}
}
