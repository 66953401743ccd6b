package gmm

import "math"

// Unconstrained evaluates a prior in coordinates. It is not safe for concurrent use.
type Unconstrained struct {
	Coordinates
	prior     Prior
	dirichlet float64 // its constant
	normal    float64 // that of one component's normal density and 2ᵈ
	spread    wishart
	pi, e     []float64
	LogDet    []float64 // ln |Σ_k| of each component that was last evaluated
	Factors   []float64 // and lower Cholesky factors
}

// NewUnconstrained prepares a prior, which must satisfy Check.
func NewUnconstrained(p Prior) *Unconstrained {
	k, d := p.Components(), p.Dim()
	c := &Unconstrained{Coordinates: Coordinates{k, d}, prior: p, pi: make([]float64, k), e: make([]float64, d),
		LogDet: make([]float64, k), Factors: make([]float64, k*d*d)}
	c.spread, _ = newWishart(p.Nu, p.Psi, d)
	c.dirichlet = dirichletConstant(p.Alpha)
	c.normal = float64(d) * (math.Ln2 - (math.Log(2*math.Pi)-math.Log(p.Kappa))/2)
	return c
}

// LogDensity returns ln p(u) = ln p(θ(u)) + ln |∂θ/∂u|, where the Jacobian is
// Π_k π_k · Π_k 2ᵈ Π_i L_{k,ii}^{d−i+2}, i from 1.
func (c *Unconstrained) LogDensity(u []float64) float64 {
	c.Weights(c.pi, u)
	s := c.LogWeights(c.pi)
	for k := range c.K {
		s += c.LogComponent(u, k)
	}
	if math.IsNaN(s) {
		return math.Inf(-1)
	}
	return s
}

// LogWeights is the factor of the weights π.
func (c *Unconstrained) LogWeights(pi []float64) float64 {
	s := c.dirichlet
	for k, w := range pi {
		s += c.prior.Alpha[k] * math.Log(w)
	}
	return s
}

// LogComponent is the factor of component k, whose Cholesky factor it leaves in triangles.
func (c *Unconstrained) LogComponent(u []float64, k int) float64 {
	d, s := c.Dim, c.normal
	at := c.K - 1 + c.K*d + k*c.Triangle()
	logDet, l := 0.0, c.Factors[k*d*d:]
	for i := range d {
		copy(l[i*d:], u[at:][:i])
		v := u[at+i]
		at += i + 1
		l[i*d+i] = math.Exp(v)
		logDet += 2 * v
		s += float64(d-i+1) * v
	}
	c.LogDet[k] = logDet
	return s + c.spread.log(l, logDet) + c.around(k, c.Means(u)[k*d:][:d])
}

// around is the part of ln N(μ | m, Σ_k/κ) that depends on θ, Σ_k that last evaluated.
func (c *Unconstrained) around(k int, mu []float64) float64 {
	for i := range c.e {
		c.e[i] = mu[i] - c.prior.Mean[i]
	}
	Forward(c.Factors[k*c.Dim*c.Dim:], c.Dim, c.e)
	return -(c.LogDet[k] + c.prior.Kappa*Squares(c.e)) / 2
}
