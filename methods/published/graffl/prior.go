package graffl

import (
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// scaleOf is what distances in each feature are measured by: the square root of Ψ's diagonal, in the feature's unit.
func scaleOf(p gmm.Prior) []float64 {
	d := p.Dim()
	out := make([]float64, d)
	for i := range out {
		out[i] = math.Sqrt(p.Psi[i*d+i])
	}
	return out
}

// Sampler draws from a prior. It is not safe for concurrent use.
type Sampler struct {
	prior  gmm.Prior
	psi    []float64 // lower Cholesky factor of Ψ
	a, rt  []float64 // Bartlett's triangle and its inverse; a square root of Σ
	normal []float64
	root   float64 // κ^−½
}

// NewSampler prepares drawing from p, which must satisfy Check.
func NewSampler(p gmm.Prior) *Sampler {
	d := p.Dim()
	s := &Sampler{p, append([]float64(nil), p.Psi...), make([]float64, d*d), make([]float64, d*d), make([]float64, d),
		1 / math.Sqrt(p.Kappa)}
	gmm.Cholesky(s.psi, d)
	return s
}

// Draw draws θ into m, which must have the prior's shape.
func (s *Sampler) Draw(r *rand.Rand, m gmm.Mixture) {
	s.Weights(r, m.Weights)
	for k := range m.Weights {
		s.Component(r, m.Mean(k))
		s.Covariance(m.Cov(k))
	}
}

// Weights draws π as normalised gamma variates.
func (s *Sampler) Weights(r *rand.Rand, pi []float64) {
	sum := 0.0
	for sum == 0 { // all underflow only for tiny α
		for k, a := range s.prior.Alpha {
			pi[k] = gamma(r, a)
			sum += pi[k]
		}
	}
	for k := range pi {
		pi[k] /= sum
	}
}

// Covariance writes that of the component last drawn.
func (s *Sampler) Covariance(dst []float64) {
	d := len(s.normal)
	for i := range d {
		for j := range i + 1 {
			t := 0.0
			for k := range d {
				t += s.rt[i*d+k] * s.rt[j*d+k]
			}
			dst[i*d+j], dst[j*d+i] = t, t
		}
	}
}

// Component draws a mean, and keeps a square root of its covariance: with Ψ = CCᵀ and Bartlett's A of a Wishart with ν
// degrees of freedom, Σ = (C A⁻ᵀ)(C A⁻ᵀ)ᵀ.
func (s *Sampler) Component(r *rand.Rand, mean []float64) {
	d, a := len(mean), s.a
	for i := range d {
		a[i*d+i] = 1 / math.Sqrt(2*gamma(r, (s.prior.Nu-float64(i))/2))
		for j := range i {
			a[i*d+j] = r.NormFloat64()
		}
	}
	// a becomes A⁻¹, whose diagonal it has already: row i of the inverse is −A⁻¹ᵢᵢ Σ_{j≤k<i} Aᵢₖ A⁻¹ₖⱼ.
	for i := range d {
		row := a[i*d:][:i+1]
		copy(s.normal, row[:i])
		for j := range i {
			t := 0.0
			for k := j; k < i; k++ {
				t += s.normal[k] * a[k*d+j]
			}
			row[j] = -t * row[i]
		}
	}
	for i := range d { // C A⁻ᵀ
		for j := range d {
			t := 0.0
			for k := range min(i, j) + 1 {
				t += s.psi[i*d+k] * a[j*d+k]
			}
			s.rt[i*d+j] = t
		}
	}
	s.Around(r, s.prior.Mean, s.root, mean)
}

// Around draws x from N(mean, scale² Σ) of the component last drawn.
func (s *Sampler) Around(r *rand.Rand, mean []float64, scale float64, x []float64) {
	d := len(x)
	for i := range s.normal {
		s.normal[i] = scale * r.NormFloat64()
	}
	for i := range x {
		t := mean[i]
		for j, v := range s.normal {
			t += s.rt[i*d+j] * v
		}
		x[i] = t
	}
}

// gamma draws from the gamma distribution of shape a and scale 1 (Marsaglia and Tsang 2000; below 1 by their boost).
// Its stream is ours, so that proposals can be drawn again from their numbers whatever a library changes.
func gamma(r *rand.Rand, a float64) float64 {
	if a < 1 {
		return gamma(r, a+1) * math.Pow(r.Float64(), 1/a)
	}
	if a == 1 {
		return r.ExpFloat64()
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := r.Float64()
		if x2 := x * x; u < 1-0.0331*x2*x2 || math.Log(u) < x2/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
