// Package gmm is Gaussian mixtures as a Bayesian sees them. [Mixture] is a parameter θ = (π, μ, Σ), [Prior] its
// Dirichlet and normal-inverse-Wishart prior ([BoxPrior] makes one of a public range), [Posterior] a weighted sample of
// θ. [Coordinates] and [Unconstrained] serve to sample θ as a vector without constraints.
//
// Matrices are square, by rows, in one slice; of factors only the lower triangle counts. Everything is a function of
// its arguments and of the random numbers that it is handed, to the last bit on one architecture. What comes from
// elsewhere is checked by methods named Check, which give errors and never panic; all else expects shapes that agree.
package gmm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Limits of what may be declared: a parameter comes back from messages, too.
const (
	MaxDim        = 256
	MaxComponents = 64
)

// Mixture is a Gaussian mixture, θ = (π, μ, Σ), over rows of Dim numbers: the density Σ_k π_k N(x | μ_k, Σ_k).
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
	return Mixture{m.Dim, append([]float64(nil), m.Weights...), append([]float64(nil), m.Means...),
		append([]float64(nil), m.Covs...)}
}

// Check reports what is wrong with a mixture: its shape, numbers that are not finite, weights that are no
// probabilities, covariances that are not symmetric and positive definite.
func (m Mixture) Check() error {
	k, d := len(m.Weights), m.Dim
	if err := checkShape(k, d); err != nil {
		return err
	}
	if len(m.Means) != k*d || len(m.Covs) != k*d*d {
		return fmt.Errorf("a mixture of %d components in %d dimensions has %d numbers as means, %d as covariances", k,
			d, len(m.Means), len(m.Covs))
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
		return fmt.Errorf("a mixture of %d components in %d dimensions: want 1 to %d components and 1 to %d dimensions",
			k, d, MaxComponents, MaxDim)
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
		for i, s := range m.Mean(k) { // μ_k + L_k z
			for j, v := range z[:i+1] {
				s += l[k*d*d+i*d+j] * v
			}
			rows[at+i] = s
		}
	}
	return nil
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

// Cholesky replaces the lower triangle of the symmetric n × n matrix a by its Cholesky factor and returns ln |a|. It
// reports false when a is not positive definite to working precision. The diagonal is the factor's own, and [Forward]
// divides by it: the one of method factors keeps reciprocals there.
func Cholesky(a []float64, n int) (logDet float64, ok bool) {
	for i := range n {
		ri := a[i*n:][:n]
		for j := range i {
			rj := a[j*n:][:j+1]
			s := ri[j]
			for k, v := range rj[:j] {
				s -= ri[k] * v
			}
			ri[j] = s / rj[j]
		}
		s := ri[i]
		for _, v := range ri[:i] {
			s -= v * v
		}
		if !(s > 0) || math.IsInf(s, 0) {
			return 0, false
		}
		logDet += math.Log(s)
		ri[i] = math.Sqrt(s)
	}
	return logDet, true
}

// Forward replaces x by L⁻¹x, given the lower triangle of L.
func Forward(l []float64, n int, x []float64) {
	for i := range n {
		row := l[i*n:][:i+1]
		s := x[i]
		for j, v := range row[:i] {
			s -= v * x[j]
		}
		x[i] = s / row[i]
	}
}

// Squares returns |x|².
func Squares(x []float64) (s float64) {
	for _, v := range x {
		s += v * v
	}
	return s
}

// SquaredDistance returns |x − y|².
func SquaredDistance(x, y []float64) (s float64) {
	for i, v := range x {
		s += (v - y[i]) * (v - y[i])
	}
	return s
}

// logAdd returns ln(eᵃ + eᵇ).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// NotFinite returns the index of the first NaN or infinity; −1 if there is none.
func NotFinite(x []float64) int {
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return i
		}
	}
	return -1
}

// checkPositiveDefinite reports whether a d × d matrix is symmetric and positive definite.
func checkPositiveDefinite(a []float64, d int) error {
	if NotFinite(a) >= 0 {
		return fmt.Errorf("has an entry that is not finite")
	}
	for i := range d {
		for j := range i {
			if math.Abs(a[i*d+j]-a[j*d+i]) > 1e-9*math.Sqrt(math.Abs(a[i*d+i]*a[j*d+j])) {
				return fmt.Errorf("is not symmetric")
			}
		}
	}
	if _, ok := Cholesky(append([]float64(nil), a...), d); !ok {
		return fmt.Errorf("is not positive definite")
	}
	return nil
}

// Match returns the order of m's components that lies closest to a reference: component order[k] of m belongs to
// component k of the reference, so that the sum of squared distances between means, each feature divided by its scale
// (nil is all ones), is smallest (Kuhn and Munkres). A pair counts by its two weights, as a component that hardly a row
// belongs to may lie anywhere.
func Match(reference, m Mixture, scale []float64) []int {
	k, d := m.Components(), m.Dim
	cost := make([]float64, k*k)
	for i := range k {
		for j := range k {
			a, b := reference.Mean(i), m.Mean(j)
			for c := range d {
				t := a[c] - b[c]
				if scale != nil {
					t /= scale[c]
				}
				cost[i*k+j] += t * t
			}
			cost[i*k+j] *= reference.Weights[i] + m.Weights[j]
		}
	}
	return assign(cost, k)
}

// Reorder returns m with component order[k] in place k.
func (m Mixture) Reorder(order []int) Mixture {
	out := NewMixture(len(order), m.Dim)
	for k, j := range order {
		out.Weights[k] = m.Weights[j]
		copy(out.Mean(k), m.Mean(j))
		copy(out.Cov(k), m.Cov(j))
	}
	return out
}

// assign returns for each of n rows the column that belongs to it in the assignment
// of least cost, by shortest augmenting paths with potentials: O(n³).
func assign(cost []float64, n int) []int {
	u, v := make([]float64, n+1), make([]float64, n+1)
	owner := make([]int, n+1) // row of a column, from 1; column 0 is where a search begins
	way, least, used := make([]int, n+1), make([]float64, n+1), make([]bool, n+1)
	for i := 1; i <= n; i++ {
		owner[0] = i
		at := 0
		for j := range least {
			least[j], used[j] = math.Inf(1), false
		}
		for owner[at] != 0 {
			used[at] = true
			row, next, delta := owner[at], 0, math.Inf(1)
			for j := 1; j <= n; j++ {
				if used[j] {
					continue
				}
				if c := cost[(row-1)*n+j-1] - u[row] - v[j]; c < least[j] {
					least[j], way[j] = c, at
				}
				if least[j] < delta || next == 0 {
					delta, next = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[owner[j]] += delta
					v[j] -= delta
				} else {
					least[j] -= delta
				}
			}
			at = next
		}
		for at != 0 {
			owner[at] = owner[way[at]]
			at = way[at]
		}
	}
	order := make([]int, n)
	for j := 1; j <= n; j++ {
		order[owner[j]-1] = j - 1
	}
	return order
}

// EffectiveSize returns Kish's (Σw)²/Σw²: how many independent draws estimate a mean as well as this weighted sample
// does, by its weights alone. As a rule, below 100 do not report tails; below 20 report nothing.
func EffectiveSize(weights []float64) float64 {
	s, q := 0.0, 0.0
	for _, w := range weights {
		s += w
		q += w * w
	}
	if q == 0 {
		return 0
	}
	return s * s / q
}

// Quantile returns the smallest of some values at which a share q of the weight is reached.
func Quantile(values, weights []float64, q float64) float64 {
	x, w := slices.Clone(values), slices.Clone(weights)
	stat.SortWeighted(x, w)
	return stat.Quantile(q, stat.Empirical, x, w)
}
