package gmm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Prior is the published prior of a mixture (section 2.2): π ~ Dir(α), and for
// each component Σ ~ IW(ν, Ψ) and μ | Σ ~ N(m, Σ/κ).
type Prior struct {
	Alpha []float64 `json:"alpha" cbor:"alpha"` // α > 0, one for each component
	Mean  []float64 `json:"mean" cbor:"mean"`   // m
	Kappa float64   `json:"kappa" cbor:"kappa"` // κ > 0: rows that m is worth
	Nu    float64   `json:"nu" cbor:"nu"`       // ν > d − 1; E Σ = Ψ/(ν − d − 1) for ν > d + 1
	Psi   []float64 `json:"psi" cbor:"psi"`     // Ψ by rows
}

// BoxPrior returns the prior of k components that a public range of each feature
// suggests: m its middle, κ 0.02, ν d + 3, Ψ 0.04 diag(R²) of its widths R, α 1, so
// that means have a standard deviation of about R and E Σ is 0.02 diag(R²)
// (Richardson and Green 1997, read for several dimensions). A range taken from
// the rows themselves would be a leak.
func BoxPrior(lo, hi []float64, k int) (Prior, error) {
	d := len(lo)
	if len(hi) != d {
		return Prior{}, fmt.Errorf("a box of %d lower and %d upper ends", d, len(hi))
	}
	if err := checkShape(k, d); err != nil {
		return Prior{}, err
	}
	p := Prior{make([]float64, k), make([]float64, d), 0.02, float64(d) + 3, make([]float64, d*d)}
	for i := range p.Alpha {
		p.Alpha[i] = 1
	}
	for i := range lo {
		r := hi[i] - lo[i]
		if !(r > 0) || math.IsInf(r, 0) {
			return Prior{}, fmt.Errorf("feature %d has the range [%v, %v]: want a lower end below a finite upper one", i, lo[i], hi[i])
		}
		p.Mean[i] = (lo[i] + hi[i]) / 2
		p.Psi[i*d+i] = 0.04 * r * r
	}
	return p, p.Check()
}

// Dim returns the number of features.
func (p Prior) Dim() int { return len(p.Mean) }

// Components returns K.
func (p Prior) Components() int { return len(p.Alpha) }

// Check reports what is wrong with a prior.
func (p Prior) Check() error {
	k, d := len(p.Alpha), len(p.Mean)
	if err := checkShape(k, d); err != nil {
		return err
	}
	for i, a := range p.Alpha {
		if !(a > 0) || math.IsInf(a, 1) {
			return fmt.Errorf("α of component %d is %v: want a positive number", i, a)
		}
	}
	switch {
	case NotFinite(p.Mean) >= 0:
		return fmt.Errorf("m of the prior has an entry that is not finite")
	case !(p.Kappa > 0) || math.IsInf(p.Kappa, 1):
		return fmt.Errorf("κ of the prior is %v: want a positive number", p.Kappa)
	case !(p.Nu > float64(d-1)) || math.IsInf(p.Nu, 1):
		return fmt.Errorf("ν of the prior is %v: want more than %d, the dimension less 1", p.Nu, d-1)
	case len(p.Psi) != d*d:
		return fmt.Errorf("prior: Ψ has %d numbers, want %d × %d", len(p.Psi), d, d)
	}
	if err := checkPositiveDefinite(p.Psi, d); err != nil {
		return fmt.Errorf("prior: Ψ %w", err)
	}
	return nil
}

// Equal says whether two priors are one.
func (p Prior) Equal(q Prior) bool {
	return slices.Equal(p.Alpha, q.Alpha) && slices.Equal(p.Mean, q.Mean) && p.Kappa == q.Kappa && p.Nu == q.Nu && slices.Equal(p.Psi, q.Psi)
}

// Symmetric says whether the prior is the same for every order of components.
func (p Prior) Symmetric() bool {
	for _, a := range p.Alpha {
		if a != p.Alpha[0] {
			return false
		}
	}
	return true
}

// dirichletConstant returns ln Γ(Σα) − Σ ln Γ(α).
func dirichletConstant(alpha []float64) (s float64) {
	sum := 0.0
	for _, a := range alpha {
		sum += a
		g, _ := math.Lgamma(a)
		s -= g
	}
	g, _ := math.Lgamma(sum)
	return s + g
}

// wishart is an inverse Wishart density, prepared.
type wishart struct {
	nu       float64
	psi      []float64 // lower Cholesky factor of Ψ
	constant float64
	room     []float64
}

func newWishart(nu float64, psi []float64, d int) (w wishart, ok bool) {
	w = wishart{nu: nu, psi: append([]float64(nil), psi...), room: make([]float64, d)}
	logPsi, ok := Cholesky(w.psi, d)
	f := float64(d)
	w.constant = nu*logPsi/2 - nu*f/2*math.Ln2 - f*(f-1)/4*math.Log(math.Pi)
	for i := range d {
		g, _ := math.Lgamma((nu - float64(i)) / 2)
		w.constant -= g
	}
	return w, ok
}

// log is the density of Σ given its Cholesky factor and ln |Σ|.
func (w *wishart) log(sigma []float64, logSigma float64) float64 {
	d, trace := len(w.room), 0.0 // |L_Σ⁻¹ L_Ψ|²
	for j := range d {
		for i := range d {
			if w.room[i] = 0; i >= j {
				w.room[i] = w.psi[i*d+j]
			}
		}
		Forward(sigma, d, w.room)
		trace += Squares(w.room)
	}
	return w.constant - ((w.nu+float64(d)+1)*logSigma+trace)/2
}

// MeanCovariance returns E Σ = Ψ/(ν − d − 1) by rows; nil where there is none.
func (p Prior) MeanCovariance() []float64 {
	f := p.Nu - float64(p.Dim()) - 1
	if !(f > 0) {
		return nil
	}
	mean := append([]float64(nil), p.Psi...)
	for i := range mean {
		mean[i] /= f
	}
	return mean
}

// Scale is what distances in each feature are measured by: the square root of Ψ's
// diagonal, in the feature's unit.
func (p Prior) Scale() []float64 {
	d := p.Dim()
	out := make([]float64, d)
	for i := range out {
		out[i] = math.Sqrt(p.Psi[i*d+i])
	}
	return out
}

// Sampler draws from a prior. It is not safe for concurrent use.
type Sampler struct {
	prior  Prior
	psi    []float64 // lower Cholesky factor of Ψ
	a, rt  []float64 // Bartlett's triangle and its inverse; a square root of Σ
	normal []float64
	root   float64 // κ^−½
}

// Sampler prepares drawing from p, which must satisfy Check.
func (p Prior) Sampler() *Sampler {
	d := p.Dim()
	s := &Sampler{p, append([]float64(nil), p.Psi...), make([]float64, d*d), make([]float64, d*d), make([]float64, d), 1 / math.Sqrt(p.Kappa)}
	Cholesky(s.psi, d)
	return s
}

// Draw draws θ into m, which must have the prior's shape.
func (s *Sampler) Draw(r *rand.Rand, m Mixture) {
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

// Component draws a mean, and keeps a square root of its covariance: with
// Ψ = CCᵀ and Bartlett's A of a Wishart with ν degrees of freedom,
// Σ = (C A⁻ᵀ)(C A⁻ᵀ)ᵀ.
func (s *Sampler) Component(r *rand.Rand, mean []float64) {
	d, a := len(mean), s.a
	for i := range d {
		a[i*d+i] = 1 / math.Sqrt(2*gamma(r, (s.prior.Nu-float64(i))/2))
		for j := range i {
			a[i*d+j] = r.NormFloat64()
		}
	}
	// a becomes A⁻¹, whose diagonal it has already: row i of the inverse is
	// −A⁻¹ᵢᵢ Σ_{j≤k<i} Aᵢₖ A⁻¹ₖⱼ.
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

// SplitMix is the finaliser of SplitMix64, which makes unlike seeds of like numbers.
func SplitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// gamma draws from the gamma distribution of shape a and scale 1 (Marsaglia and
// Tsang 2000; below 1 by their boost). Its stream is ours, so that proposals can be
// drawn again from their numbers whatever a library changes.
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
