package published

import "math"

// Delta is the δ of the paper's Table 1 for a client with n ≥ 1 rows,
// 10^⌊log₁₀(1/n)⌋: at most 1/n, but by less than the factor ten that the paper
// speaks of.
func Delta(n int) float64 {
	p := 1.0
	for p < float64(n) {
		p *= 10
	}
	return 1 / p
}

// batch is the number of rows that the paper's minibatches are to have on
// average, of n ≥ 1: max(20, ⌈share·n⌉) with a share of 0.02, but never more than
// there are. Over n it is the rate of Poisson sampling.
func batch(n int, share float64) int {
	return min(n, max(20, int(math.Ceil(share*float64(n)))))
}
