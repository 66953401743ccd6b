package gmm

import (
	"fmt"
	"math"
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

// BoxPrior returns the prior of k components that a public range of each feature suggests: m its middle, κ 0.02, ν
// d + 3, Ψ 0.04 diag(R²) of its widths R, α 1, so that means have a standard deviation of about R and E Σ is
// 0.02 diag(R²) (Richardson and Green 1997, read for several dimensions).
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
			return Prior{}, fmt.Errorf("feature %d has the range [%v, %v]: want a lower end below a finite upper one",
				i, lo[i], hi[i])
		}
		p.Mean[i] = (lo[i] + hi[i]) / 2
		p.Psi[i*d+i] = 0.04 * r * r
	}
	return p, p.Check()
}

// Dim returns the number of features, and Components K.
func (p Prior) Dim() int        { return len(p.Mean) }
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

// SplitMix is the finaliser of SplitMix64, which makes unlike seeds of like numbers.
func SplitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Coordinates maps a parameter θ to a vector u without constraints: ln(π_k/π_K) for k < K; μ_1 … μ_K; and for each
// component the lower Cholesky factor of Σ_k by rows, its diagonal in logarithms.
type Coordinates struct{ K, Dim int }

// Len returns the length of u.
func (c Coordinates) Len() int { return c.K - 1 + c.K*c.Dim + c.K*c.Triangle() }

// Triangle returns how many numbers of u are one covariance.
func (c Coordinates) Triangle() int { return c.Dim * (c.Dim + 1) / 2 }

// Means returns the part of u that is the means.
func (c Coordinates) Means(u []float64) []float64 { return u[c.K-1:][:c.K*c.Dim] }

// To writes u of a mixture. An error means a covariance that is not positive definite, or a weight of zero.
func (c Coordinates) To(u []float64, m Mixture) error {
	l, _, err := m.factors()
	if err != nil {
		return err
	}
	last := m.Weights[c.K-1]
	for k, w := range m.Weights {
		if !(w > 0) {
			return fmt.Errorf("a weight of %v is zero and has no logarithm", m.Weights)
		}
		if k < c.K-1 {
			u[k] = math.Log(w / last)
		}
	}
	at := c.K - 1 + copy(u[c.K-1:], m.Means)
	for k := range c.K {
		factor := l[k*c.Dim*c.Dim:]
		for i := range c.Dim {
			at += copy(u[at:], factor[i*c.Dim:][:i])
			u[at] = math.Log(factor[i*c.Dim+i])
			at++
		}
	}
	return nil
}

// From writes the mixture of u.
func (c Coordinates) From(m Mixture, u []float64) {
	c.Weights(m.Weights, u)
	for k := range c.K {
		c.Component(m, u, k)
	}
}

// Component writes the mean and the covariance of component k.
func (c Coordinates) Component(m Mixture, u []float64, k int) {
	d := c.Dim
	copy(m.Mean(k), c.Means(u)[k*d:])
	cov, l := m.Cov(k), u[c.K-1+c.K*d+k*c.Triangle():][:c.Triangle()]
	for i := range d {
		for j := range i + 1 {
			s := 0.0
			for q := range j + 1 {
				s += entry(l, i, q) * entry(l, j, q)
			}
			cov[i*d+j], cov[j*d+i] = s, s
		}
	}
}

// entry returns L_ij, j ≤ i, of a packed factor with logarithms on its diagonal.
func entry(l []float64, i, j int) float64 {
	v := l[i*(i+1)/2+j]
	if i == j {
		return math.Exp(v)
	}
	return v
}

// Weights writes the weights π of u.
func (c Coordinates) Weights(pi, u []float64) {
	top := 0.0
	for _, v := range u[:c.K-1] {
		top = max(top, v)
	}
	pi[c.K-1] = math.Exp(-top)
	sum := pi[c.K-1]
	for k, v := range u[:c.K-1] {
		pi[k] = math.Exp(v - top)
		sum += pi[k]
	}
	for k := range pi {
		pi[k] /= sum
	}
}

// Unconstrained evaluates a prior in coordinates. It is not safe for concurrent use.
type Unconstrained struct {
	Coordinates
	prior     Prior
	dirichlet float64 // its constant
	normal    float64 // that of one component's normal density and 2ᵈ
	spread    wishart
	pi, e     []float64
	l         []float64 // the lower Cholesky factor of a component
}

// NewUnconstrained prepares a prior, which must satisfy Check.
func NewUnconstrained(p Prior) *Unconstrained {
	k, d := p.Components(), p.Dim()
	c := &Unconstrained{Coordinates: Coordinates{k, d}, prior: p, pi: make([]float64, k), e: make([]float64, d),
		l: make([]float64, d*d)}
	c.spread, _ = newWishart(p.Nu, p.Psi, d)
	c.dirichlet = dirichletConstant(p.Alpha)
	c.normal = float64(d) * (math.Ln2 - (math.Log(2*math.Pi)-math.Log(p.Kappa))/2)
	return c
}

// LogDensity returns ln p(u) = ln p(θ(u)) + ln |∂θ/∂u|, where the Jacobian is
// Π_k π_k · Π_k 2ᵈ Π_i L_{k,ii}^{d−i+2}, i from 1.
func (c *Unconstrained) LogDensity(u []float64) float64 {
	c.Weights(c.pi, u)
	s := c.dirichlet
	for k, w := range c.pi {
		s += c.prior.Alpha[k] * math.Log(w)
	}
	for k := range c.K {
		s += c.LogComponent(u, k)
	}
	if math.IsNaN(s) {
		return math.Inf(-1)
	}
	return s
}

// LogComponent is the factor of component k.
func (c *Unconstrained) LogComponent(u []float64, k int) float64 {
	d, s := c.Dim, c.normal
	at := c.K - 1 + c.K*d + k*c.Triangle()
	logDet := 0.0
	for i := range d {
		copy(c.l[i*d:], u[at:][:i])
		v := u[at+i]
		at += i + 1
		c.l[i*d+i] = math.Exp(v)
		logDet += 2 * v
		s += float64(d-i+1) * v
	}
	for i, v := range c.Means(u)[k*d:][:d] {
		c.e[i] = v - c.prior.Mean[i]
	}
	s += c.spread.log(c.l, logDet)
	Forward(c.l, d, c.e)
	return s - (logDet+c.prior.Kappa*Squares(c.e))/2
}
