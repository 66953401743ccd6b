package gvi

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// CountQuantile returns the least count that a new observation does not exceed with at
// least probability p, for a rate eᶠ with f ~ N(a, c): by the 20 nodes for f, and the
// regularised incomplete gamma function for the count. 0 < p < 1.
func CountQuantile(p, a, c float64) float64 {
	s := math.Sqrt(c)
	below := func(k float64) (sum float64) { // the probability of at most k
		for i, z := range twenty.Nodes {
			mean, _, _ := rate(a + s*z)
			sum += twenty.Weights[i] * mathext.GammaIncRegComp(k+1, max(mean, math.SmallestNonzeroFloat64))
		}
		return sum
	}
	high := 1.0
	for below(high) < p && high < math.MaxFloat64/2 {
		high *= 2
	}
	low := -1.0 // below low+1 is too little
	for high-low > 1 {
		mid := math.Floor((low + high) / 2)
		if mid <= low || mid >= high {
			break
		}
		if below(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
