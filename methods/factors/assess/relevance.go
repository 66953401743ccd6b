package assess

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

const (
	steps = 1000
	tol   = 1e-5
)

// Strengths is automatic relevance determination: each column a of W has the
// prior N(0, 1/α_a) with α_a = d / E|w_a|², estimated along with it, so that
// columns which the data do not need shrink to nothing (Bishop, "Bayesian PCA",
// 1999). The factors are turned to the axes of WᵀΨ⁻¹W at every step, since only
// there can a surplus column stand alone. It begins at a model with more factors than are needed, and returns the wᵀΨ⁻¹w of its columns,
// falling: a factor counts where that is above 1, which says that all its
// features together tell more of the factor than its prior does.
func Strengths(l ppca.Layout, blocks []ppca.Block, start *ppca.Params) ([]float64, error) {
	if err := start.Check(l); err != nil {
		return nil, fmt.Errorf("relevance: %w", err)
	}
	f, err := ppca.NewPXEM(l, blocks, start.Rank, start)
	if err != nil {
		return nil, fmt.Errorf("relevance: %w", err)
	}
	q := f.Model.Q
	r := &fit{
		PXEM: f, alpha: make([]float64, q), spent: make([]float64, q*f.Model.LD),
		inverse: make([]float64, (q+1)*f.Stride), system: make([]float64, (q+1)*f.Stride), axes: linalg.NewEigen(q),
		noise: make([]float64, l.Groups()), weight: make([]float64, l.Groups()), row: make([]float64, q+1),
	}
	strength, err := r.turn()
	if err != nil {
		return nil, err
	}
	for step := range steps {
		if _, err := f.Expect(); err != nil {
			return nil, fmt.Errorf("relevance, step %d: %w", step, err)
		}
		if err := r.shrink(); err != nil {
			return nil, fmt.Errorf("relevance, step %d: %w", step, err)
		}
		last := strength
		if strength, err = r.turn(); err != nil {
			return nil, fmt.Errorf("relevance, step %d: %w", step, err)
		}
		moved := 0.0
		for a, s := range strength {
			moved = max(moved, math.Abs(s-last[a])/max(1, s))
		}
		if moved < tol {
			break
		}
	}
	return strength, nil
}

// fit is a fit with its priors.
type fit struct {
	*ppca.PXEM
	alpha           []float64 // q: precision of each column's prior
	spent           []float64 // q × ld: Σ over features of the posterior covariance of their loadings
	system, inverse []float64 // (q+1) × stride
	axes            *linalg.Eigen
	noise, weight   []float64 // per noise group: residual sum and count
	row             []float64 // q + 1 scratch
}

// shrink is the M step: with R = Σ⟨x̃x̃ᵀ⟩ and A = diag(α, 0), the loadings and mean
// of feature j are (R + ψ A)⁻¹ b_j, their covariance V = ψ (R + ψ A)⁻¹.
func (r *fit) shrink() error {
	q, ld, stride := r.Model.Q, r.Model.LD, r.Stride
	clear(r.noise)
	clear(r.weight)
	clear(r.spent)
	class, psi := -1, math.NaN()
	for _, j := range r.Features {
		sums := r.R[r.Class[j]]
		if r.Class[j] != class || r.Model.Psi[j] != psi {
			class, psi = r.Class[j], r.Model.Psi[j]
			copy(r.system, sums)
			for a, alpha := range r.alpha {
				r.system[a*stride+a] += psi * alpha
			}
			if _, ok := linalg.Cholesky(r.system, q+1, stride); !ok {
				return ppca.ErrCollapsed
			}
			linalg.CholInverse(r.inverse, r.system, q+1, stride)
		}
		b := r.B[j*ld:][:q]
		copy(r.row, b)
		r.row[q] = r.Dev[j]
		linalg.CholSolve(r.system, q+1, stride, r.row)
		s := r.Square[j] - 2*r.row[q]*r.Dev[j] + linalg.Quadratic(sums, stride, r.row, r.row)
		for a, x := range b {
			s -= 2 * r.row[a] * x
		}
		copy(r.Model.W[j*ld:], r.row[:q])
		r.Model.Mu[j] += r.row[q]
		r.noise[r.Model.Group[j]] += s
		r.weight[r.Model.Group[j]] += r.Count[j]
		for a := range q {
			for c := range q {
				r.spent[a*ld+c] += psi * r.inverse[a*stride+c]
			}
		}
	}
	for _, j := range r.Features {
		g := r.Model.Group[j]
		r.Model.Psi[j] = max(r.noise[g]/r.weight[g], r.Floor[g])
	}
	return nil
}

// turn rotates the factors to the axes of WᵀΨ⁻¹W, strongest first, sets the
// priors there, and returns the eigenvalues.
func (r *fit) turn() ([]float64, error) {
	q, ld := r.Model.Q, r.Model.LD
	gram := make([]float64, q*q)
	for _, j := range r.Features {
		w := r.Model.W[j*ld:][:q]
		for a, x := range w {
			for c, y := range w {
				gram[a*q+c] += x * y / r.Model.Psi[j]
			}
		}
	}
	if !r.axes.Factorise(gram, q) {
		return nil, fmt.Errorf("the eigenvalues of the loadings did not converge")
	}
	column := func(dst []float64, a int) {
		for i := range q {
			dst[i] = r.axes.Vectors[i*q+q-1-a]
		}
	}
	axis, old := make([]float64, q), make([]float64, q)
	squares := make([]float64, q)
	for a := range q {
		column(axis, a)
		squares[a] = linalg.Quadratic(r.spent, ld, axis, axis)
	}
	for _, j := range r.Features {
		w := r.Model.W[j*ld:][:q]
		copy(old, w)
		for a := range q {
			column(axis, a)
			w[a] = 0
			for i, x := range old {
				w[a] += x * axis[i]
			}
			squares[a] += w[a] * w[a]
		}
	}
	for a, s := range squares {
		r.alpha[a] = float64(len(r.Features)) / max(s, 1e-300)
	}
	strength := slices.Clone(r.axes.Values)
	slices.Reverse(strength)
	return strength, nil
}
