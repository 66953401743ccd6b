// Package gmm is Gaussian mixtures as a Bayesian sees them. [Mixture] is a parameter
// θ = (π, μ, Σ), [Prior] its Dirichlet and normal-inverse-Wishart prior ([BoxPrior] makes
// one of a public range), [Posterior] a weighted sample of θ. Use
// [Mixture.Simulate] to draw rows, [Coordinates] and [Unconstrained] to sample θ as a vector
// without constraints, [Match] to number components alike, and [EffectiveSize] to tell whether a sample may be believed.
//
// Matrices are square, by rows, in one slice; of factors only the lower triangle counts.
// Everything is a function of its arguments and of the random numbers that it is handed,
// to the last bit on one architecture. What comes from elsewhere is checked by methods
// named Check, which give errors and never panic; all else expects shapes that agree.
package gmm

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Limits of what may be declared: a parameter comes back from messages, too.
const (
	MaxDim        = 256
	MaxComponents = 64
)

// Mixture is a Gaussian mixture, θ = (π, μ, Σ), over rows of Dim numbers: the
// density Σ_k π_k N(x | μ_k, Σ_k).
type Mixture struct {
	Dim     int       `json:"dim" cbor:"dim"`
	Weights []float64 `json:"weights" cbor:"weights"`         // π, non-negative, sum 1
	Means   []float64 `json:"means" cbor:"means"`             // μ, one after the other
	Covs    []float64 `json:"covariances" cbor:"covariances"` // Σ, one Dim × Dim after the other
}

// NewMixture returns a mixture of k components without values.
func NewMixture(k, dim int) Mixture {
	return Mixture{dim, make([]float64, k), make([]float64, k*dim), make([]float64, k*dim*dim)}
}

// Components returns K.
func (m Mixture) Components() int { return len(m.Weights) }

// Mean returns μ_k, which may be written to.
func (m Mixture) Mean(k int) []float64 { return m.Means[k*m.Dim:][:m.Dim] }

// Cov returns Σ_k by rows, which may be written to.
func (m Mixture) Cov(k int) []float64 { return m.Covs[k*m.Dim*m.Dim:][:m.Dim*m.Dim] }

// Clone returns a mixture that shares nothing with m.
func (m Mixture) Clone() Mixture {
	return Mixture{m.Dim, append([]float64(nil), m.Weights...), append([]float64(nil), m.Means...), append([]float64(nil), m.Covs...)}
}

// Check reports what is wrong with a mixture: its shape, numbers that are not
// finite, weights that are no probabilities, covariances that are not symmetric
// and positive definite.
func (m Mixture) Check() error {
	k, d := len(m.Weights), m.Dim
	if err := checkShape(k, d); err != nil {
		return err
	}
	if len(m.Means) != k*d || len(m.Covs) != k*d*d {
		return fmt.Errorf("a mixture of %d components in %d dimensions has %d numbers as means and %d as covariances: want %d and %d", k, d, len(m.Means), len(m.Covs), k*d, k*d*d)
	}
	sum := 0.0
	for i, w := range m.Weights {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("weight %v of component %d is no probability", w, i)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the weights of a mixture sum to %v, not 1", sum)
	}
	if i := NotFinite(m.Means); i >= 0 {
		return fmt.Errorf("the mean of component %d has an entry %v", i/d, m.Means[i])
	}
	for c := range k {
		if err := checkPositiveDefinite(m.Cov(c), d); err != nil {
			return fmt.Errorf("the covariance of component %d %w", c, err)
		}
	}
	return nil
}

func checkShape(k, d int) error {
	if k < 1 || k > MaxComponents || d < 1 || d > MaxDim {
		return fmt.Errorf("a mixture of %d components in %d dimensions: want 1 to %d components and 1 to %d dimensions", k, d, MaxComponents, MaxDim)
	}
	return nil
}

// factors returns the lower Cholesky factors of the covariances and their ln |Σ|.
func (m Mixture) factors() (l, logDet []float64, err error) {
	d := m.Dim
	l, logDet = append([]float64(nil), m.Covs...), make([]float64, len(m.Weights))
	for k := range m.Weights {
		var ok bool
		if logDet[k], ok = Cholesky(l[k*d*d:][:d*d], d); !ok {
			return nil, nil, fmt.Errorf("the covariance of component %d is not positive definite", k)
		}
	}
	return l, logDet, nil
}

// Simulate draws rows from m, as many as rows holds: rows is n × Dim, by rows.
// An error means a covariance that is not positive definite.
func (m Mixture) Simulate(r *rand.Rand, rows []float64) error {
	l, _, err := m.factors()
	if err != nil {
		return err
	}
	d := m.Dim
	z := make([]float64, d)
	for at := 0; at+d <= len(rows); at += d {
		k := Pick(r, m.Weights)
		for i := range z {
			z[i] = r.NormFloat64()
		}
		m.place(rows[at:at+d], l, k, z)
	}
	return nil
}

// place writes μ_k + L_k z.
func (m Mixture) place(x, l []float64, k int, z []float64) {
	d, mu := m.Dim, m.Mean(k)
	for i := range x {
		s := mu[i]
		for j, v := range z[:i+1] {
			s += l[k*d*d+i*d+j] * v
		}
		x[i] = s
	}
}

// Pick draws an index in proportion to weights that sum to 1.
func Pick(r *rand.Rand, weights []float64) int {
	u := r.Float64()
	for k, w := range weights {
		if u -= w; u < 0 {
			return k
		}
	}
	return len(weights) - 1
}
