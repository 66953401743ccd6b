package account

import "math"

// SharesDiffer bounds how far the law of a sum of n discrete Gaussians of variance σ² each, in steps, is from the one
// discrete Gaussian of variance nσ² that is accounted for: |ln(P(x)/Q(x))| is at most
// 10·Σₖ₌₁ⁿ⁻¹ exp(−2π²σ²k/(k+1)) for every whole x, for σ ≥ 1/2 (Kairouz, Liu and Steinke 2021, Theorem 9).
func SharesDiffer(variance float64, n int) float64 {
	total := 0.0
	for k := 1; k < n; k++ {
		total += math.Exp(-2 * math.Pi * math.Pi * variance * float64(k) / float64(k+1))
	}
	return 10 * total
}
