package predict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// scatter is how scores vary: sums over clusters of rows, of which each is a person's unless the plan names
// another, of s sᵀ for a cluster's score s, the sum of w ∂ln p(y | f)/∂f x over its rows. A row that counts as w rows
// is in w clusters.
type scatter struct {
	Clusters int         `cbor:"clusters"`
	Meat     wire.Vector `cbor:"meat" sums:"signed"` // Σ s sᵀ, the lower triangle by rows
}

// ScatterSays is what a scatter tells.
const ScatterSays = "number of persons, sums of the products of the derivatives of their log-likelihood by every two " +
	"weights"

// NewScatter is that of no rows.
func NewScatter(weights int) *scatter {
	return &scatter{Meat: make(wire.Vector, glm.Triangle(weights))}
}

// ScatterOf sums up the rows of a design at the mean of q, whose weights are a sample's or numbers of rows.
func ScatterOf(l glm.Likelihood, q glm.Normal, d *glm.Design, sampled bool) *scatter {
	columns, k, weights := d.Columns(), l.Activations(), len(q.Mean)
	s := NewScatter(weights)
	rows := make([]int, d.Rows())
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return d.Cluster(a) - d.Cluster(b) })
	f, first, score := make([]float64, k), make([]float64, k), make([]float64, weights)
	var touched []int
	for n, i := range rows {
		r := d.Row(i)
		w := r.Weight
		if !sampled {
			w = math.Sqrt(w)
		}
		for c := range f {
			f[c], _ = r.Activation(q.Mean[c*columns:], q.Mean[c*columns:])
		}
		l.LogLik(d.Outcome(i), f, first)
		for c, g := range first {
			for m, j := range r.Index {
				at := c*columns + int(j)
				if score[at] == 0 {
					touched = append(touched, at)
				}
				score[at] = glm.Clamp(score[at]+w*g*r.Value[m], scoreLargest)
			}
		}
		if n+1 < len(rows) && d.Cluster(rows[n+1]) == d.Cluster(i) {
			continue
		}
		slices.Sort(touched)
		touched = slices.Compact(touched)
		for a, i := range touched {
			for _, j := range touched[:a+1] {
				s.Meat[glm.Packed(i, j)] += score[i] * score[j]
			}
		}
		for _, i := range touched {
			score[i] = 0
		}
		touched = touched[:0]
		s.Clusters += Alike(r, sampled)
	}
	return s
}

// scoreLargest bounds a score, so that its fourth power stays below what rowLargest allows.
const scoreLargest = 1e50

// check refuses what no rows can give, beyond [method.CheckSums].
func (s *scatter) check() error {
	if s.Clusters < 1 || s.Clusters > glm.MostRows {
		return fmt.Errorf("scores of %d persons", s.Clusters)
	}
	return glm.CheckSquares(s.Meat, "product of scores")
}

// AddScore adds a cluster by its score.
func (s *scatter) AddScore(score []float64) {
	s.Clusters++
	for i, x := range score {
		for j := range i + 1 {
			s.Meat[glm.Packed(i, j)] += x * score[j]
		}
	}
}

// Robust is the covariance of weights that holds whatever the law of outcomes is, if their expectation is right:
// C (G/(G − 1) Σ s sᵀ + Λ) C of G clusters, for the covariance C by the model and the precisions Λ of the prior
// (Huber 1967; White 1980; Liang and Zeger 1986). The prior counts as rows that say as much.
func (s *scatter) Robust(q glm.Normal, prior glm.Gaussian) []float64 {
	n := len(q.Mean)
	small := float64(s.Clusters) / max(float64(s.Clusters-1), 1)
	meat := glm.Sym(n, func(i, j int) float64 {
		x := small * s.Meat[glm.Packed(i, j)]
		if i == j {
			x += prior.Lambda[i]
		}
		return x
	})
	c := glm.Symmetric(q.Covariance, n)
	var half, all mat.Dense
	half.Mul(c, meat)
	all.Mul(&half, c)
	return glm.Lower(glm.Sym(n, func(i, j int) float64 { return (all.At(i, j) + all.At(j, i)) / 2 }))
}
