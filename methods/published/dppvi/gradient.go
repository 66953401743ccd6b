package dppvi

import (
	"fmt"
	"math"

	"parley/methods/regression/glm"
)

// rowGradient is the per-example gradient of the local free energy that DP-PVI clips
// and sums (equation 4), over P means and then P logarithms of variances:
//
//	gᵢ = (N/L) ∇ E_q ln p(yᵢ | xᵢ, w) − (1/L) ∇ KL(q ‖ cavity)
//
// for N rows and L rows expected in a minibatch: gradients of L rows add up to one
// of F. The paper's 1/L is inside, so nothing is divided after summing and the
// clipping bound belongs to this scale.
//
// It is nothing but arithmetic: it clips, samples and protects nothing.
type rowGradient struct {
	likelihood   slopes
	cavity       glm.Gaussian
	k, d, p      int
	rows, batch  float64
	mean, logVar []float64
	variance     []float64
	shared       []float64 // −(1/L) ∇KL
	a, c, first  []float64
}

// newGradient returns the gradient for rows with the given number of columns, at
// a point that rowGradient.At sets. Rows and batch are N and L, both positive; N
// is public or has been released.
func newGradient(l slopes, cavity glm.Gaussian, columns int, rows, batch float64) (*rowGradient, error) {
	k := l.Activations()
	if err := cavity.CheckProper(k * columns); err != nil {
		return nil, fmt.Errorf("cavity: %w", err)
	}
	if !(rows > 0 && batch > 0) || !glm.Finite(rows/batch) || !glm.Finite(1/batch) {
		return nil, fmt.Errorf("minibatches of %v out of %v rows: want both positive", batch, rows)
	}
	p := k * columns
	return &rowGradient{likelihood: l, cavity: cavity, k: k, d: columns, p: p, rows: rows, batch: batch,
		variance: make([]float64, p), shared: make([]float64, 2*p),
		a: make([]float64, k), c: make([]float64, k), first: make([]float64, 2*k)}, nil
}

// Len returns the length 2P of a gradient.
func (g *rowGradient) Len() int { return 2 * g.p }

// With exchanges the likelihood for one of the same form, such as that of the next
// step's draws.
func (g *rowGradient) With(l slopes) { g.likelihood = l }

// At sets the point: P means, then P logarithms of variances. It reads x until the
// next call.
func (g *rowGradient) At(x []float64) {
	g.mean, g.logVar = x[:g.p], x[g.p:2*g.p]
	for j, r := range g.logVar {
		v, l := math.Exp(r), g.cavity.Lambda[j]
		g.variance[j] = v
		g.shared[j] = -(l*g.mean[j] - g.cavity.Eta[j]) / g.batch
		g.shared[g.p+j] = -(l*v - 1) / (2 * g.batch)
	}
}

// Example sets dst, of length Len, to the gradient of one row. It allocates
// nothing.
func (g *rowGradient) Example(r glm.Row, y float64, dst []float64) {
	copy(dst, g.shared)
	for k := range g.k {
		g.a[k], g.c[k] = r.Activation(g.mean[k*g.d:], g.variance[k*g.d:])
	}
	g.likelihood.Slopes(y, g.a, g.c, g.first)
	scale := g.rows / g.batch
	for k := range g.k {
		da, dc := scale*g.first[k], scale*g.first[g.k+k]
		mean, logVar, variance := dst[k*g.d:], dst[g.p+k*g.d:], g.variance[k*g.d:]
		for i, j := range r.Index {
			x := r.Value[i]
			mean[j] += da * x
			logVar[j] += dc * x * x * variance[j]
		}
	}
}

// clipFactor returns 1/max(1, norm/bound), which makes a vector of the given norm
// no longer than the bound. The bound is positive.
func clipFactor(norm, bound float64) float64 { return 1 / max(1, norm/bound) }

// adagrad moves each coordinate by Rate·g/(√Σg² + 1e-10), uphill. Sum is all that
// has to be carried; the published method keeps it at each site from one update to
// the next, and starting anew each time costs eight points of accuracy on its
// distribution C.
type adagrad struct {
	Rate float64   `cbor:"rate" json:"rate"`
	Sum  []float64 `cbor:"sum" json:"sum"` // of squared gradients
}

// Check reports a state that is not one of n coordinates.
func (s *adagrad) Check(n int) error {
	if !(s.Rate > 0) || !glm.Finite(s.Rate) {
		return fmt.Errorf("learning rate %v is not positive and finite", s.Rate)
	}
	if len(s.Sum) != n {
		return fmt.Errorf("%d accumulators for %d coordinates", len(s.Sum), n)
	}
	for i, v := range s.Sum {
		if !(v >= 0) || !glm.Finite(v) {
			return fmt.Errorf("accumulator %d is %v: want a finite number that is not negative", i, v)
		}
	}
	return nil
}

// Step moves x along a gradient of the same length.
func (s *adagrad) Step(x, gradient []float64) {
	for i, g := range gradient {
		s.Sum[i] += g * g
		x[i] += s.Rate * g / (math.Sqrt(s.Sum[i]) + 1e-10)
	}
}

// pointOf returns a density as the optimiser's coordinates: means, then logarithms
// of variances.
func pointOf(q glm.Gaussian) []float64 {
	mean, variance := q.Moments()
	for j, v := range variance {
		variance[j] = math.Log(v)
	}
	return append(mean, variance...)
}

// fromPoint returns the density at the optimiser's coordinates. Noise may have led
// where there is none: a variance that overflows or vanishes is an error.
func fromPoint(x []float64) (glm.Gaussian, error) {
	p := len(x) / 2
	variance := make([]float64, p)
	for j := range variance {
		variance[j] = math.Exp(x[p+j])
	}
	return glm.FromMoments(x[:p], variance)
}
