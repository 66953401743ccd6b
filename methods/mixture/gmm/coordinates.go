package gmm

import (
	"fmt"
	"math"
)

// Coordinates maps a parameter θ to a vector u without constraints:
// ln(π_k/π_K) for k < K; μ_1 … μ_K; and for each component the lower Cholesky
// factor of Σ_k by rows, its diagonal in logarithms.
type Coordinates struct{ K, Dim int }

// Len returns the length of u.
func (c Coordinates) Len() int { return c.K - 1 + c.K*c.Dim + c.K*c.Triangle() }

// Triangle returns how many numbers of u are one covariance.
func (c Coordinates) Triangle() int { return c.Dim * (c.Dim + 1) / 2 }

// Means returns the part of u that is the means.
func (c Coordinates) Means(u []float64) []float64 { return u[c.K-1:][:c.K*c.Dim] }

// To writes u of a mixture. An error means a covariance that is not positive
// definite, or a weight of zero.
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
	c := &Unconstrained{Coordinates: Coordinates{k, d}, prior: p, pi: make([]float64, k), e: make([]float64, d), l: make([]float64, d*d)}
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
