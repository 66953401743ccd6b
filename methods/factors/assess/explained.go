package assess

import (
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
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
// the noise counts as known, as [R2] has it. It is the delta method, with the law that [Of] has for
// loadings and noise in large samples.
func Fit(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern) (variance []float64) {
	if checkFactors(p.Rank, strengths, fourths) != nil || !(slices.Min(strengths) > leastStrength) {
		return nil
	}
	w := newPerturbed(l, p, strengths, newTold(l, p, strengths, fourths, patterns))
	if w.free == nil {
		return nil
	}
	for k := range l.Views() {
		variance = append(variance, w.along(w.slopes(l, k)))
	}
	return variance
}

// slopes returns the derivatives of the R² of view k, p × q by Ψ^−½W, whose rows v_j have
// Σ v_j v_jᵀ = Λ, and by the relative errors of groups' noise. With M = (I + Λ)⁻¹, residuals have
// the sum of squares Σ ψ_j (1 − v_jᵀ M v_j) over the view's features, of Σ ψ_j (1 + |v_j|²) in all.
func (w *perturbed) slopes(l ppca.Layout, k int) (byLoading, byNoise []float64) {
	q, v, view := len(w.strengths), w.scaled(), l.ViewOf()
	byLoading, byNoise = make([]float64, len(v)), make([]float64, w.free.groups)
	inner := make([]float64, q*q) // M Σ ψ_j v_j v_jᵀ M
	rest, total := 0.0, 0.0
	for i, j := range w.p.Features {
		if view[j] != k {
			continue
		}
		row, unit := v[i*q:][:q], w.noise[i]
		rest, total = rest+unit, total+unit
		for a, x := range row {
			rest -= unit * x * x / (1 + w.strengths[a])
			total += unit * x * x
			for b, y := range row {
				inner[a*q+b] += unit * x * y / ((1 + w.strengths[a]) * (1 + w.strengths[b]))
			}
		}
	}
	for i, j := range w.p.Features {
		row, g, unit := v[i*q:][:q], w.free.group[i], 0.0
		if view[j] == k {
			unit = w.noise[i]
		}
		byNoise[g] -= unit * (1 - rest/total) / total
		for a, x := range row {
			along := 0.0
			for b, y := range row {
				along += inner[a*q+b] * y
			}
			byNoise[g] += x * along / total
			byLoading[i*q+a] = 2 * (unit*x*(1/(1+w.strengths[a])+rest/total) - along) / total
		}
	}
	return byLoading, byNoise
}

// along returns the variance of what has these slopes: it is linear in the independent numbers
// that draw draws.
func (w *perturbed) along(byLoading, byNoise []float64) (variance float64) {
	q := len(w.strengths)
	inside, outside := make([]float64, q*q), make([]float64, q*q) // of each factor's slopes, what lies in U
	for i, j := range w.p.Features {
		for f, s := range w.strengths {
			x := byLoading[i*q+f]
			for g := range byNoise {
				byNoise[g] += w.free.moves[(i*q+f)*len(byNoise)+g] * x
			}
			y := x * math.Sqrt((1+s)/(s*w.n.factor[j*q+f]))
			for b, u := range w.u[i*q:][:q] {
				inside[f*q+b] += x * u
				outside[f*q+b] += y * u
			}
		}
	}
	for i, j := range w.p.Features {
		for f, s := range w.strengths {
			x := byLoading[i*q+f] * math.Sqrt((1+s)/(s*w.n.factor[j*q+f]))
			for b, u := range w.u[i*q:][:q] {
				x -= u * outside[f*q+b]
			}
			variance += x * x
		}
	}
	for f, s := range w.strengths {
		for b, t := range w.strengths[:f+1] {
			x := inside[f*q+f] * (1 + s) / (2 * math.Sqrt(s))
			if b < f {
				x = (math.Sqrt(s)*inside[f*q+b] - math.Sqrt(t)*inside[b*q+f]) * math.Sqrt(rotation(1+s, 1+t))
			}
			variance += x * x * w.n.fourths.variance(f, b, q) / w.n.pair[f*q+b]
		}
	}
	return variance + linalg.CholQuadratic(w.free.chol, w.free.groups, w.free.ld, byNoise)
}

// Interval returns intervals of 90 % for the share that a model of q factors explains in the
// population, where it explains r2 of some of the subjects it was fitted to, [R2] gives
// the variance and [Fit] that of the fit. It is about 1 − (1 − r2) (n − 1)/(n − q − 1), n being all
// whom the model was fitted to (Ezekiel 1930): of these it explains more than of others. They differ from
// the population by the variance of their sample, and by what the fit errs beyond that of all who have the
// view. The fit itself may know the factors better than those, from subjects who lack the view.
//
// Where subjects lack other views, the population is one in which as many do: with fewer features, the
// factors follow these more closely.
func Interval(variance, fit float64, q int, fitted float64) func(r2, subjects float64) (low, high float64) {
	freedom := max(1, fitted-float64(q+1))
	quantile := half(freedom)
	return func(r2, subjects float64) (low, high float64) {
		centre, of := 1-(1-r2)*max(1, (fitted-1)/freedom), variance/subjects
		if !math.IsNaN(fit) {
			of += max(0, fit-variance/fitted)
		}
		half := quantile * math.Sqrt(of*max(1, fitted/freedom))
		return centre - half, min(1, centre+half)
	}
}
