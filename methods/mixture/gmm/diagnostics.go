package gmm

import (
	"cmp"
	"slices"
)

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
