package stats

import (
	"cmp"
	"slices"
)

// BenjaminiHochberg adjusts p values so that the expected share of false findings among
// those below a bound is at most the bound (1995): the least of p_(j) m/j over all ranks
// j from the test's own on.
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, least := make([]float64, len(p)), 1.0
	for rank := len(order); rank > 0; rank-- {
		i := order[rank-1]
		least = min(least, p[i]*float64(len(p))/float64(rank))
		out[i] = least
	}
	return out
}
