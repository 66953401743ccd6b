package exact

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// rowSums are those over a site's rows at weights w, each row by its weight. With f = x·w of a row they are
//
//	value        Σ ln p(y | f)
//	gradient     Σ ∂/∂f ln p(y | f) x
//	information  Σ −∂²/∂f² ln p(y | f) x xᵀ   (its lower triangle by rows)
//	weight       Σ −∂²/∂f² ln p(y | f)
//
// With the probabilities α of K classes the gradient is Σ ([y = k] − α_k) x for each, the information Σ (diag α − ααᵀ)
// ⊗ x xᵀ and the weight Σ ½ (1 − Σ α_k²). With random intercepts they are of the marginal likelihood, by ln τ too.
type rowSums struct {
	Rows int `cbor:"rows"`
	glm.Derivatives
}

// gather adds the rows of a design at the weights w, as far as the sums have a place for what is asked. The first ones
// of counts have the derivatives of other parabolas: see [nearCounts].
func (s *rowSums) gather(l glm.Likelihood, w []float64, isFirst bool, d *glm.Design) {
	classes, columns := l.Activations(), d.Columns()
	s.Rows = d.Rows()
	var begin func(r glm.Row, y, a float64) (first, second float64)
	if _, counts := l.(glm.Poisson); counts && isFirst {
		begin = nearCounts(d)
	}
	a, first, alpha := make([]float64, classes), make([]float64, classes), make([]float64, classes)
	for i := range d.Rows() {
		r, y := d.Row(i), d.Outcome(i)
		for k := range a {
			a[k], _ = r.Activation(w[k*columns:], w[k*columns:])
		}
		value, h := l.LogLik(y, a, first)
		s.Value += r.Weight * value
		switch {
		case s.Information == nil:
		case classes == 1:
			if begin != nil {
				first[0], h = begin(r, y, a[0])
			}
			h = r.Weight * max(h, 0)
			s.Weight += h
			s.AddBlock(r, 0, 0, h)
		default:
			for k, g := range first {
				alpha[k] = -g
			}
			alpha[int(y)]++
			s.addClasses(r, columns, alpha)
		}
		for k, g := range first {
			g *= r.Weight
			for m, j := range r.Index {
				s.Gradient[k*columns+int(j)] += g * r.Value[m]
			}
		}
	}
}

// addClasses adds (diag α − ααᵀ) ⊗ x xᵀ to the information.
func (s *rowSums) addClasses(r glm.Row, columns int, alpha []float64) {
	for k, p := range alpha {
		own := 0.0 // α_k (1 − α_k), where α_k may be 1 but for rounding
		for o, other := range alpha {
			if o == k {
				continue
			}
			own += p * other
			if o < k {
				s.AddBlock(r, k*columns, o*columns, -r.Weight*p*other)
			}
		}
		s.AddBlock(r, k*columns, k*columns, r.Weight*own)
		s.Weight += r.Weight * own / 2
	}
}

// newton is P⁻¹(gradient − Λ₀(m − m₀)) at weights m, for P = Λ₀ + information, of which it is not ok if it cannot be
// inverted.
func newton(prior glm.Gaussian, m []float64, s *rowSums,
	classes int) (by *mat.VecDense, chol *mat.Cholesky, ok bool) {
	p, g := slices.Clone(s.Information), mat.NewVecDense(len(m), nil)
	for j, l := range prior.Lambda {
		p[glm.Packed(j, j)] += l
		g.SetVec(j, s.Gradient[j]-(l*m[j]-prior.Eta[j]))
	}
	glm.Pin(p, len(m), classes)
	by, chol = new(mat.VecDense), new(mat.Cholesky)
	return by, chol, chol.Factorize(glm.Symmetric(p, len(m))) && glm.Usable(chol.SolveVecTo(by, g))
}

// step is Newton's step from q, for the mode of the posterior: with precision P = Λ₀ + information, the mean moves by
// P⁻¹(gradient − Λ₀(m − m₀)) and the covariance becomes P⁻¹, Laplace's approximation. Of several classes it is without
// what all of them have in common. Moved is how far, in standard deviations: of the weight whose mean moves most, or
// the largest |ln| of a ratio of deviations, if that is more. Not ok is a P that cannot be inverted. Activations move
// by at most farthest, and a mean beyond largest is no step.
func step(prior glm.Gaussian, q glm.Normal, s *rowSums, classes int, farthest,
	largest float64) (next glm.Normal, moved float64, ok bool) {
	d := len(q.Mean)
	by, chol, ok := newton(prior, q.Mean, s, classes)
	var inverse mat.SymDense
	if !ok || !glm.Usable(chol.InverseTo(&inverse)) {
		return q, 0, false
	}
	scale := 1.0
	if far := math.Sqrt(mat.Inner(by, glm.Symmetric(s.Information, d), by) / s.Weight); far > farthest {
		scale = farthest / far
	}
	mean := floats.AddScaledTo(make([]float64, d), q.Mean, scale, by.RawVector().Data)
	lower := glm.Lower(&inverse)
	glm.Centre(mean, lower, classes)
	for i := range d { // beside a variance that a narrow prior makes tiny, rounding may go beyond it
		for j := range i {
			most := math.Sqrt(lower[glm.Packed(i, i)] * lower[glm.Packed(j, j)])
			lower[glm.Packed(i, j)] = min(max(lower[glm.Packed(i, j)], -most), most)
		}
	}
	next, err := glm.NewNormal(mean, lower)
	if err != nil {
		return q, 0, false
	}
	for j, v := range next.Variance {
		if !glm.Inside(mean[j], -largest, largest) || !glm.Inside(v, 1/glm.FactorLargest, glm.FactorLargest) {
			return q, 0, false // sites would refuse it
		}
		moved = max(moved, math.Abs(mean[j]-q.Mean[j])/math.Sqrt(v))
		if q.Variance[j] > 0 { // where the fit begins nothing is unsure yet
			moved = max(moved, math.Abs(math.Log(v/q.Variance[j]))/2)
		}
	}
	return next, moved, true
}

// nearCounts is what the first step takes log-likelihoods of counts for: parabolas, of which it returns the first
// derivative by the activation a of a row with outcome y, and minus the second.
//
// They are not at rates of 1, from where Newton's step goes far beyond large counts and comes back by 1 in each step,
// but for each row at about its own count, as iteratively reweighted least squares do (McCullagh and Nelder,
// Generalized Linear Models, 1989, section 2.5). With exposure e, the exponential of the offset, a row's rate is the
// posterior mean e (y + ½)/(e + ½/ρ) under the gamma prior with shape ½ whose mean is ρ, the counts of the site's rows
// per exposure, and half a count more so that none is no rate of 0.
func nearCounts(d *glm.Design) func(r glm.Row, y, a float64) (first, second float64) {
	counts, exposure := 0.5, 0.0
	for i := range d.Rows() {
		r := d.Row(i)
		counts += r.Weight * d.Outcome(i)
		exposure += r.Weight * math.Exp(r.Offset)
	}
	rate := counts / exposure
	return func(r glm.Row, y, a float64) (first, second float64) {
		e := math.Exp(r.Offset)
		mean := e * (y + 0.5) / (e + 0.5/rate)
		return y - mean + mean*(math.Log(mean)-a), mean
	}
}

// noiseOf is the variance of a number's errors, of n rows or so much weight, where it and the weights of the model are
// known as well as the mode says. With the information H and the gradient g at the variance 1 and weights m, the
// prior's precision Λ, P = Λ + H/s and Newton's step d at the variance s, the mean square of errors at s is
//
//	[ squares − 2dᵀg + dᵀHd + tr HP⁻¹ ]/n,
//
// and s is its fixed point. As tr HP⁻¹ = s tr(1 − ΛP⁻¹), which hardly changes with s, that is found in a few steps.
func noiseOf(prior glm.Gaussian, m []float64, s *rowSums, at, n, outcome float64) float64 {
	within := func(x float64) float64 { return min(max(x, outcome*n*1e-14), outcome*1e12) }
	squares := -at * (2*s.Value + n*math.Log(2*math.Pi*at)) // of errors
	noise, gradient := within(squares/n), mat.NewVecDense(len(m), s.Gradient)
	for range mostFixed {
		by, chol, ok := newton(prior, m, s.times(at/noise), 1)
		var inverse mat.SymDense
		if !ok || !glm.Usable(chol.InverseTo(&inverse)) {
			break
		}
		free := n
		for j, l := range prior.Lambda {
			free -= 1 - l*inverse.At(j, j)
		}
		next := within((squares + at*(mat.Inner(by, glm.Symmetric(s.Information, len(m)), by)-
			2*mat.Dot(by, gradient))) / free)
		if done := math.Abs(next-noise) <= 1e-12*noise; done || !glm.Finite(next) {
			break
		}
		noise = next
	}
	return noise
}

// mostFixed is how often the fixed point is approached.
const mostFixed = 50

// times are the sums where the log-likelihood of every row is so many times as much.
func (s *rowSums) times(factor float64) *rowSums {
	out := *s
	out.Value, out.Weight = factor*s.Value, factor*s.Weight
	out.Gradient = floats.ScaleTo(make([]float64, len(s.Gradient)), factor, s.Gradient)
	out.Information = floats.ScaleTo(make([]float64, len(s.Information)), factor, s.Information)
	return &out
}

// largestSum bounds every number of an answer: far beyond what rows of honest studies give,
// and so that no product of a few overflows.
const largestSum = 1e75
