package graffl

import (
	"fmt"
	"math"
)

// Coordinates maps a parameter θ to a vector u without constraints:
// ln(π_k/π_K) for k < K; μ_1 … μ_K; and for each component the lower Cholesky
// factor of Σ_k by rows, its diagonal in logarithms.
type Coordinates struct{ K, Dim int }

// Len returns the length of u.
func (c Coordinates) Len() int { return c.K - 1 + c.K*c.Dim + c.K*c.triangle() }

func (c Coordinates) triangle() int { return c.Dim * (c.Dim + 1) / 2 }

// Means returns the part of u that is the means.
func (c Coordinates) Means(u []float64) []float64 { return u[c.K-1:][:c.K*c.Dim] }

// To writes u of a mixture. An error means a covariance that is not positive
// definite, or a weight of zero.
func (c Coordinates) To(u []float64, m Mixture) error {
	l, _, err := m.factors()
	if err != nil {
		return err
	}
	if !c.logits(u, m.Weights) {
		return fmt.Errorf("a weight of %v is zero and has no logarithm", m.Weights)
	}
	for k := range c.K {
		c.put(u, k, m.Mean(k), l[k*c.Dim*c.Dim:])
	}
	return nil
}

// logits writes the part of u that is the weights, and reports whether all are positive.
func (c Coordinates) logits(u, weights []float64) bool {
	last := weights[c.K-1]
	for k, w := range weights {
		if !(w > 0) {
			return false
		}
		if k < c.K-1 {
			u[k] = math.Log(w / last)
		}
	}
	return true
}

// put writes one component, given the Cholesky factor of its covariance.
func (c Coordinates) put(u []float64, k int, mean, l []float64) {
	copy(u[c.K-1+k*c.Dim:], mean)
	at := c.K - 1 + c.K*c.Dim + k*c.triangle()
	for i := range c.Dim {
		at += copy(u[at:], l[i*c.Dim:][:i])
		u[at] = math.Log(l[i*c.Dim+i])
		at++
	}
}

// From writes the mixture of u.
func (c Coordinates) From(m Mixture, u []float64) {
	c.weights(m.Weights, u)
	for k := range c.K {
		c.component(m, u, k)
	}
}

// component writes the mean and the covariance of component k.
func (c Coordinates) component(m Mixture, u []float64, k int) {
	d := c.Dim
	copy(m.Mean(k), c.Means(u)[k*d:])
	cov, l := m.Cov(k), u[c.K-1+c.K*d+k*c.triangle():][:c.triangle()]
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

func (c Coordinates) weights(pi, u []float64) {
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

// unconstrained evaluates a prior in coordinates. It is not safe for concurrent use.
type unconstrained struct {
	Coordinates
	prior     Prior
	dirichlet float64 // its constant
	normal    float64 // that of one component's normal density and 2ᵈ
	spread    wishart
	pi, e     []float64
	logDet    []float64 // ln |Σ_k| of each component that was last evaluated
	triangles []float64 // and lower Cholesky factors
}

func newUnconstrained(p Prior) *unconstrained {
	k, d := p.Components(), p.Dim()
	c := &unconstrained{Coordinates: Coordinates{k, d}, prior: p, pi: make([]float64, k), e: make([]float64, d),
		logDet: make([]float64, k), triangles: make([]float64, k*d*d)}
	c.spread, _ = newWishart(p.Nu, p.Psi, d)
	c.dirichlet = dirichletConstant(p.Alpha)
	c.normal = float64(d) * (math.Ln2 - (math.Log(2*math.Pi)-math.Log(p.Kappa))/2)
	return c
}

// LogDensity returns ln p(u) = ln p(θ(u)) + ln |∂θ/∂u|, where the Jacobian is
// Π_k π_k · Π_k 2ᵈ Π_i L_{k,ii}^{d−i+2}, i from 1.
func (c *unconstrained) LogDensity(u []float64) float64 {
	c.weights(c.pi, u)
	s := c.logWeights(c.pi)
	for k := range c.K {
		s += c.logComponent(u, k)
	}
	if math.IsNaN(s) {
		return math.Inf(-1)
	}
	return s
}

// logWeights is the factor of the weights π.
func (c *unconstrained) logWeights(pi []float64) float64 {
	s := c.dirichlet
	for k, w := range pi {
		s += c.prior.Alpha[k] * math.Log(w)
	}
	return s
}

// logComponent is the factor of component k, whose Cholesky factor it leaves in triangles.
func (c *unconstrained) logComponent(u []float64, k int) float64 {
	d, s := c.Dim, c.normal
	at := c.K - 1 + c.K*d + k*c.triangle()
	logDet, l := 0.0, c.triangles[k*d*d:]
	for i := range d {
		copy(l[i*d:], u[at:][:i])
		v := u[at+i]
		at += i + 1
		l[i*d+i] = math.Exp(v)
		logDet += 2 * v
		s += float64(d-i+1) * v
	}
	c.logDet[k] = logDet
	return s + c.spread.log(l, logDet) + c.around(k, c.Means(u)[k*d:][:d])
}

// around is the part of ln N(μ | m, Σ_k/κ) that depends on θ, Σ_k that last evaluated.
func (c *unconstrained) around(k int, mu []float64) float64 {
	for i := range c.e {
		c.e[i] = mu[i] - c.prior.Mean[i]
	}
	forward(c.triangles[k*c.Dim*c.Dim:], c.Dim, c.e)
	return -(c.logDet[k] + c.prior.Kappa*squares(c.e)) / 2
}

// LogDensity returns the log prior density of u: that of θ(u) and the logarithm
// of the Jacobian. It is −Inf where u overflows.
func (c Coordinates) LogDensity(p Prior, u []float64) float64 {
	return newUnconstrained(p).LogDensity(u)
}
