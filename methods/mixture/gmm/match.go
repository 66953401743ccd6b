package gmm

import (
	"cmp"
	"fmt"
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

// Kind names a set discrepancy.
type Kind string

const (
	Energy Kind = "energy" // 2 E|g − y| − E|g − g′| − E|y − y′|: no scale to choose, a slope from far away
	MMD    Kind = "mmd"    // E k(g, g′) − 2 E k(g, y) + E k(y, y′), k a Gaussian kernel
)

// Discrepancy is a distance between sets of rows that may be summed over sites
// whose rows are unlike: Σ_j (n_j/n) D(G, Y_j) is D(G, all rows) and a constant that
// does not depend on the generated set G. Other distances are not offered: summed
// over sites with one mode each, Wasserstein distances prefer a single blob between
// the modes to the truth.
//
// All means are over all pairs (V-statistics). Sets are n × dim, by rows, and not
// empty.
type Discrepancy struct {
	Kind      Kind    `json:"kind" cbor:"kind"`
	Bandwidth float64 `json:"bandwidth,omitempty" cbor:"bandwidth,omitempty"` // h of exp(−|x−y|²/2h²), in features' units; MMD only
}

// Check reports what is wrong with a discrepancy.
func (d Discrepancy) Check() error {
	switch {
	case d.Kind != Energy && d.Kind != MMD:
		return fmt.Errorf("discrepancy %q may not be summed over sites, or is not known: want %q or %q", string(d.Kind), Energy, MMD)
	case d.Kind == MMD && (!(d.Bandwidth > 0) || math.IsInf(d.Bandwidth, 1)):
		return fmt.Errorf("bandwidth %v of %q: want a positive number", d.Bandwidth, MMD)
	case d.Kind == Energy && d.Bandwidth != 0:
		return fmt.Errorf("%q takes no bandwidth", Energy)
	}
	return nil
}

// Cross returns the mean over all pairs of a row of a and a row of b: of |a − b|
// for Energy, of the kernel for MMD. With generated rows as a and its own as b it is
// what a site answers.
func (d Discrepancy) Cross(a, b []float64, dim int) float64 {
	total, scale := 0.0, -1/(2*d.Bandwidth*d.Bandwidth)
	for i := 0; i < len(a); i += dim {
		x, s := a[i:i+dim], 0.0
		for j := 0; j < len(b); j += dim {
			if q := SquaredDistance(x, b[j:j+dim]); d.Kind == Energy {
				s += math.Sqrt(q)
			} else {
				s += math.Exp(scale * q)
			}
		}
		total += s
	}
	return total / (float64(len(a)/dim) * float64(len(b)/dim))
}

// Combine returns D(G, Y) given the means over pairs within G, across, and within Y.
func (d Discrepancy) Combine(within, across, rows float64) float64 {
	if d.Kind == Energy {
		return 2*across - within - rows
	}
	return within - 2*across + rows
}

// Between returns D(a, b).
func (d Discrepancy) Between(a, b []float64, dim int) float64 {
	return d.Combine(d.Cross(a, a, dim), d.Cross(a, b, dim), d.Cross(b, b, dim))
}

// Over returns D(G, all rows) less the part that no generated set changes, from
// what each site answers, its [Discrepancy.Cross], and its number of rows: right for
// any split of the rows. It may be negative.
func (d Discrepancy) Over(within float64, across []float64, rows []int) float64 {
	n, s := 0, 0.0
	for j, c := range across {
		n += rows[j]
		s += float64(rows[j]) * c
	}
	return d.Combine(within, s/float64(n), 0)
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
