package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
)

// noiseOf is the variance of a number's errors, of n rows or so much weight, where it and the weights
// of the model are known as well as the mode says. Sums at q and the variance at say
// what they are at all others, as the log-likelihood is a parabola: with the information H and the
// gradient g at the variance 1, the prior's precision Λ and mean m₀, and d = (Λ + H/s)⁻¹ (g/s − Λ(m −
// m₀)), the mean square of errors at s is
//
//	[ squares − 2dᵀg + dᵀHd + tr H(Λ + H/s)⁻¹ ]/n,
//
// and s is its fixed point. That is a sum over the eigenvalues of Λ^{-½} H Λ^{-½}. With more than
// fitted.Most weights it is the mean square at q with what is unsure of expectations. The variance is within many orders of magnitude of the
// outcome's.
func noiseOf(prior glm.Gaussian, q glm.Normal, s *Sums, at, n, outcome float64) float64 {
	within := func(x float64) float64 { return min(max(x, outcome*1e-28), outcome*1e12) }
	square := -at * (2*s.Value/n + math.Log(2*math.Pi*at)) // of errors
	p := len(q.Mean)
	h, root := mat.NewSymDense(p, nil), make([]float64, p)
	squares, unsure := n*square, 0.0
	for i := range p {
		root[i] = math.Sqrt(prior.Lambda[i])
		for j := range i + 1 {
			x := at * s.Information[glm.Packed(i, j)]
			h.SetSym(i, j, x/root[i]/root[j])
			unsure += x * q.Covariance[glm.Packed(i, j)]
			if j < i {
				unsure += x * q.Covariance[glm.Packed(i, j)]
			}
		}
	}
	var e mat.EigenSym
	if p > fitted.Most || !e.Factorize(h, true) {
		return within(square + unsure/n)
	}
	var v mat.Dense
	e.VectorsTo(&v)
	values := e.Values(nil)
	g, off := make([]float64, p), make([]float64, p) // in the eigenvectors' coordinates
	for k := range p {
		for i := range p {
			g[k] += v.At(i, k) * at * s.Gradient[i] / root[i]
			off[k] += v.At(i, k) * (root[i]*q.Mean[i] - prior.Eta[i]/root[i])
		}
		values[k] = max(values[k], 0)
	}
	noise := within(square)
	for range mostFixed {
		left := squares
		for k, x := range values {
			d := (g[k] - noise*off[k]) / (noise + x)
			left += d*(x*d-2*g[k]) + noise*x/(noise+x)
		}
		next := within(left / n)
		done := math.Abs(next-noise) <= 1e-12*noise
		if noise = next; done {
			break
		}
	}
	if !glm.Finite(noise) {
		return within(square)
	}
	return noise
}

// mostFixed is how often the fixed point is approached; it comes nearer by the share of weights in rows.
const mostFixed = 10000

// times are the sums where the log-likelihood of every row is so many times as much.
func (s *Sums) times(factor float64) *Sums {
	out := *s
	out.Value, out.Weight = factor*s.Value, factor*s.Weight
	out.Gradient, out.Information = make([]float64, len(s.Gradient)), make([]float64, len(s.Information))
	for j, x := range s.Gradient {
		out.Gradient[j] = factor * x
	}
	for j, x := range s.Information {
		out.Information[j] = factor * x
	}
	return &out
}
