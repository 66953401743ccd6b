package gmm

import (
	"cmp"
	"math"
	"slices"
)

// Match returns the order of m's components that lies closest to a reference:
// component order[k] of m belongs to component k of the reference, so that the sum of
// squared distances between means, each feature divided by its scale and each pair
// counted by the sum of its two weights, is smallest (Kuhn and Munkres). Components of a
// mixture have no names: without matching, means over a posterior are all the same.
// Weights count because a component that hardly a row belongs to may lie anywhere: it
// must not decide where those with rows belong. A nil scale is all ones.
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

// EffectiveSize returns Kish's (Σw)²/Σw²: how many independent draws estimate a mean as
// well as this weighted sample does. It speaks of the weights alone: draws that are
// copies of each other, or that all miss a mode, are not noticed. As
// a rule, below 100 do not report tails; below 20 report nothing.
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

// Quantile returns the smallest value at which a share q of the weight is reached.
// There must be values.
func Quantile(values, weights []float64, q float64) float64 {
	order := make([]int, len(values))
	total := 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	s := 0.0
	for _, i := range order {
		if s += weights[i]; s >= q*total {
			return values[i]
		}
	}
	return values[order[len(order)-1]]
}
