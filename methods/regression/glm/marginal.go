package glm

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
)

// nodes of the quadrature over a site's intercept: what they leave of the logarithm is
// below 1e-9 for usual sites, and 1e-6 for a single subject where sites differ by τ = 3.
const nodes = 25

var rule = GaussHermite(nodes)

// logTauLargest bounds ln τ about that of its prior's scale: beyond e^±12 deviations between
// sites are none, or are all there is. logTauBeyond bounds it in any unit of an outcome.
const (
	logTauLargest = 12
	logTauBeyond  = 72
)

// MixedPoint is where derivatives are asked for.
type MixedPoint struct {
	Weights []float64 `cbor:"w" json:"weights"`
	LogTau  float64   `cbor:"t" json:"log_tau"` // within ±logTauBeyond
}

// Check reports a point that is none of p weights within ±most, or beyond what can be calculated with.
func (x MixedPoint) Check(p int, most float64) error {
	if len(x.Weights) != p {
		return fmt.Errorf("a point of %d weights, want %d", len(x.Weights), p)
	}
	for j, w := range x.Weights {
		if !Inside(w, -most, most) {
			return fmt.Errorf("weight %d of %v is beyond ±%v", j, w, most)
		}
	}
	if !Inside(x.LogTau, -logTauBeyond, logTauBeyond) {
		return fmt.Errorf("ln τ = %v is not within ±%v", x.LogTau, logTauBeyond)
	}
	return nil
}

// WeightLargest bounds weights at which derivatives over a random intercept are asked for.
const WeightLargest = 1e20

// Derivatives are those of a log-likelihood by p weights, and of a marginal one then by ln τ.
type Derivatives struct {
	Value    float64     `cbor:"value" sums:"signed"`
	Weight   float64     `cbor:"weight"` // Σ −∂²/∂f² over rows with activations f, if somebody has added it up
	Gradient wire.Vector `cbor:"gradient" sums:"signed"`
	// minus the second derivatives, the lower triangle by rows
	Information wire.Vector `cbor:"information" sums:"signed"`
}

// NewDerivatives returns zeros for so many weights, ln τ being one of them.
func NewDerivatives(weights int) *Derivatives {
	return &Derivatives{Gradient: make(wire.Vector, weights), Information: make(wire.Vector, Triangle(weights))}
}

// AddBlock adds h x xᵀ to the information of the weights from two offsets on, the second not beyond the first.
func (d *Derivatives) AddBlock(r Row, offset, other int, h float64) {
	for k, j := range r.Index {
		row, last := d.Information[Packed(offset+int(j), other):], len(r.Index)
		if offset == other {
			last = k + 1
		}
		for m := range last {
			row[r.Index[m]] += h * r.Value[k] * r.Value[m]
		}
	}
}

// Marginal is the log-likelihood of a site's rows over its random intercept,
//
//	ℓ(w, ln τ) = ln ∫ Πᵢ p(yᵢ | xᵢ·w + τz)^{wᵢ} φ(z) dz,
//
// by adaptive Gauss–Hermite quadrature in one dimension (Pinheiro and Bates, J Comput
// Graph Stat 1995). The likelihood has one activation and is log-concave in it.
type Marginal struct {
	likelihood Likelihood
	data       *Design
	eta        []float64 // of each row, without the intercept
	first      []float64 // at the last intercept: derivative by the activation
	curve      []float64 // and minus the second one
}

// New is the marginal likelihood of a design's rows.
func New(l Likelihood, d *Design) (*Marginal, error) {
	if l.Activations() != 1 {
		return nil, fmt.Errorf("a random intercept belongs to a model of one activation, not of %d", l.Activations())
	}
	for i := range d.Rows() {
		if err := l.Check(d.Outcome(i)); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	n := d.Rows()
	return &Marginal{likelihood: l, data: d, eta: make([]float64, n), first: make([]float64, n),
		curve: make([]float64, n)}, nil
}

// at sets the activations without intercept.
func (m *Marginal) at(weights []float64) {
	none := make([]float64, len(weights))
	for i := range m.eta {
		m.eta[i], _ = m.data.Row(i).Activation(weights, none)
	}
}

// rows sums up the rows' log-likelihood at intercept b, and its first and minus its
// second derivative by b; those of each row stay in first and curve.
func (m *Marginal) rows(b float64) (value, first, curve float64) {
	var a, d [1]float64
	for i, eta := range m.eta {
		a[0] = eta + b
		w := m.data.Row(i).Weight
		v, h := m.likelihood.LogLik(m.data.Outcome(i), a[:], d[:])
		value += w * v
		m.first[i], m.curve[i] = w*d[0], w*h
		first += m.first[i]
		curve += m.curve[i]
	}
	return value, first, curve
}

// gradient is that of the rows' log-likelihood by the weights and by b, at intercept b.
func (m *Marginal) gradient(b float64) (g []float64, first float64) {
	_, first, _ = m.rows(b)
	g = make([]float64, m.data.Columns(), m.data.Columns()+2)
	for i, f := range m.first {
		r := m.data.Row(i)
		for t, j := range r.Index {
			g[j] += f * r.Value[t]
		}
	}
	return g, first
}

// quadrature returns intercepts b with their posterior probabilities, and the value ℓ. Of
// normal outcomes b is normal, and values that are far larger than what they differ by, as
// with outliers or a noise that is far too small, leave none of their digits there.
func (m *Marginal) quadrature(tau float64) (b, p [nodes]float64, value float64) {
	if _, ok := m.likelihood.(Linear); ok {
		_, first, curve := m.rows(0)
		precision := curve + 1/(tau*tau)
		mode := first / precision
		for k, z := range rule.Nodes {
			b[k], p[k] = mode+z/math.Sqrt(precision), rule.Weights[k]
		}
		value, _, _ = m.rows(mode)
		return b, p, value - mode*mode/(2*tau*tau) - math.Log1p(tau*tau*curve)/2
	}
	// Nodes are where the integrand has its mass (Liu and Pierce, Biometrika 1994).
	mode, curvature := modeOf(func(z float64) (float64, float64) {
		_, first, curve := m.rows(tau * z)
		return tau * first, -tau * tau * curve
	})
	scale, top := 1/math.Sqrt(curvature), math.Inf(-1)
	for k, x := range rule.Nodes {
		z := mode + scale*x
		b[k] = tau * z
		v, _, _ := m.rows(b[k])
		p[k] = math.Log(rule.Weights[k]*scale) + (x*x-z*z)/2 + v // the rule's own density being N(mode, scale²)
		top = max(top, p[k])
	}
	sum := 0.0
	for k := range p {
		p[k] = math.Exp(p[k] - top)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return b, p, top + math.Log(sum)
}

// At returns the derivatives at a point: the gradient is the posterior mean of that of rows and b's prior, the
// curvature that of theirs less the gradient's covariance (Louis 1982). By ln τ the gradient is u − 1, u = b²/τ². That
// by the weights is g = s x̄ + g̃: s the derivative by b, x̄ the mean row by curvature. Where τ is large, s is taken
// from b, as E (s − b/τ²) f = −E f′:
//
//	E s = E b/τ²,  E h − Var s = 1/τ² − Var b/τ⁴,  Cov(s, g̃) = Cov(b, g̃)/τ²,  Cov(s, u) = (Cov(b, u) − 2 E b)/τ².
func (m *Marginal) At(x MixedPoint) (*Derivatives, error) {
	p := len(x.Weights)
	if err := x.Check(m.data.Columns(), WeightLargest); err != nil {
		return nil, err
	}
	m.at(x.Weights)
	d := NewDerivatives(p + 1)
	tau := math.Exp(x.LogTau)
	b, prob, value := m.quadrature(tau)
	d.Value = value
	curve := make([]float64, len(m.eta)) // E h of each row
	g := make([][]float64, len(prob))    // by the weights, then s or b/τ², then u
	for k, b := range b {
		own, s := m.gradient(b)
		g[k] = append(own, s, b/tau*(b/tau))
		floats.AddScaled(curve, prob[k], m.curve)
	}
	centre, all := m.information(curve, d)
	base, shift := all, 0.0
	large := tau*tau*all > 1
	if large {
		base = 1 / (tau * tau)
	}
	for k := range prob {
		for j, c := range centre {
			g[k][j] -= c * g[k][p]
		}
		if large {
			g[k][p] = b[k] / (tau * tau)
		}
	}
	mean, cov := momentsOf(prob[:], g)
	s, u := cov[Packed(p, 0):], cov[Packed(p+1, 0):]
	if large {
		shift = 2 * mean[p]
	}
	at := 0
	for i, c := range centre {
		d.Gradient[i] = mean[i] + c*mean[p]
		for j := range i + 1 {
			d.Information[at] += c*centre[j]*(base-s[p]) - c*s[j] - centre[j]*s[i] - cov[at]
			at++
		}
	}
	for j, c := range centre {
		d.Information[at+j] = -u[j] - c*(u[p]-shift)
	}
	d.Gradient[p], d.Information[at+p] = mean[p+1]-1, 2*mean[p+1]-u[p+1]
	d.concave(p)
	return d, nil
}

// information puts Σ h x xᵀ into the curvature by the weights, with the curvatures h of rows by their activation, and
// takes x̄ x̄ᵀ Σ h away again. It returns x̄, the mean of x with weights h, and Σ h.
func (m *Marginal) information(h []float64, d *Derivatives) (centre []float64, all float64) {
	centre = make([]float64, m.data.Columns())
	for i, h := range h {
		r := m.data.Row(i)
		all += h
		for t, j := range r.Index {
			centre[j] += h * r.Value[t]
		}
		d.AddBlock(r, 0, 0, h)
	}
	at := 0
	for i := range centre {
		if all > 0 {
			centre[i] /= all
		}
		for j := range i + 1 {
			d.Information[at] -= all * centre[i] * centre[j]
			at++
		}
	}
	return centre, all
}

// concave takes away what errors of quadrature make convex: of p weights the marginal likelihood is log-concave
// (Prékopa, 1973), and where τ is large beside what a row or two can tell, the nodes are too few to show it.
func (d *Derivatives) concave(p int) {
	convex := false
	for j := range p {
		convex = convex || d.Information[j*(j+3)/2] < 0
	}
	if !convex {
		return
	}
	if block := Floored(Symmetric(d.Information, p), 0); block != nil { // else whoever takes the curvature refuses it
		copy(d.Information, Lower(block))
	}
}

// momentsOf are the mean of vectors with these probabilities, and their covariance, its lower triangle by rows. The
// vectors become what they are beyond the mean.
func momentsOf(p []float64, vectors [][]float64) (mean, covariance []float64) {
	n := len(vectors[0])
	mean, around := make([]float64, n), NewDerivatives(n)
	for k, v := range vectors {
		floats.AddScaled(mean, p[k], v)
	}
	for k, v := range vectors {
		floats.Sub(v, mean)
		around.AddBlock(Dense(v), 0, 0, p[k])
	}
	return mean, around.Information
}

// Intercept is what is known of the random intercept of a site: normal given the weights, by the first two moments,
// with a mean that has a slope in them. The zero value is none.
type Intercept struct {
	Mean     float64   `json:"mean"`
	Variance float64   `json:"variance"`
	Slope    []float64 `json:"slope"` // of Mean by each weight; nil if it does not depend on them
}

// SD is the standard deviation of the intercept, of what is not known of weights too.
func (b Intercept) SD(q Normal) float64 {
	_, v := q.Activation(Dense(b.Slope), 0)
	return math.Sqrt(b.Variance + v)
}

// Intercept returns the posterior of the site's intercept at a point. With weights that are N(m, S) themselves it is
// N(Mean, Variance + Slopeᵀ S Slope), and an activation x·w + b has variance Variance + (x + Slope)ᵀ S (x + Slope).
func (m *Marginal) Intercept(x MixedPoint) Intercept {
	m.at(x.Weights)
	b, prob, _ := m.quadrature(math.Exp(x.LogTau))
	// The slope is the covariance of b with the gradient by the weights.
	vectors := make([][]float64, len(prob))
	for k, b := range b {
		g, _ := m.gradient(b)
		vectors[k] = append(g, b)
	}
	mean, covariance := momentsOf(prob[:], vectors)
	p := len(x.Weights)
	own := covariance[Packed(p, 0):]
	return Intercept{Mean: mean[p], Variance: own[p], Slope: own[:p]}
}
