package hierarchical

import "math"

// maxSharedAlpha bounds α where the sites' noise variances differ no more than
// their sampling explains: the prior is then sharp, and yet finite.
const maxSharedAlpha = 1e6

// noiseLaw fits the inverse-gamma law of the sites' true noise variances τ to
// their estimates s on ν degrees of freedom each, ν s/τ ~ χ²(ν), by maximising
// the marginal likelihood (a scaled F distribution)
//
//	Σ {α ln β − ln Γ(α) + ln Γ(α + ν/2) − (α + ν/2) ln(β + ν s/2)}.
func noiseLaw(s, nu []float64) (alpha, beta float64) {
	if len(s) < 2 {
		return maxSharedAlpha, maxSharedAlpha * s[0]
	}
	const lo, steps = -1.0, 70 // decades of α: 0.1 to 10⁶
	hi := math.Log10(maxSharedAlpha)
	at := func(i float64) float64 { return math.Pow(10, lo+(hi-lo)*i/steps) }
	value := func(i float64) float64 {
		a := at(i)
		return noiseLawLogLik(a, noiseLawBeta(a, s, nu), s, nu)
	}
	best, bestValue := steps, value(steps)
	for i := range steps {
		if v := value(float64(i)); v > bestValue+1e-6 { // rounding of ln Γ(10⁶)
			best, bestValue = i, v
		}
	}
	if best == steps {
		return maxSharedAlpha, noiseLawBeta(maxSharedAlpha, s, nu)
	}
	// Golden section between the neighbours of the best.
	const ratio = 0.6180339887498949
	a, b := float64(max(best-1, 0)), float64(best+1)
	for b-a > 1e-6 {
		x, y := b-ratio*(b-a), a+ratio*(b-a)
		if value(x) >= value(y) {
			b = y
		} else {
			a = x
		}
	}
	alpha = at((a + b) / 2)
	return alpha, noiseLawBeta(alpha, s, nu)
}

func noiseLawLogLik(alpha, beta float64, s, nu []float64) float64 {
	g, _ := math.Lgamma(alpha)
	total := 0.0
	for i := range s {
		h, _ := math.Lgamma(alpha + nu[i]/2)
		// α ln β − (α + ν/2) ln(β + νs/2), the large terms taken together.
		total += h - g - alpha*math.Log1p(nu[i]*s[i]/2/beta) - nu[i]/2*math.Log(beta+nu[i]*s[i]/2)
	}
	return total
}

// noiseLawBeta returns the best β for an α. With m = β/α it solves
// Σ (α + ν/2) m/(α m + ν s/2) = n, whose left-hand side rises in m and is at most n
// for m = min s and at least n for m = max s.
func noiseLawBeta(alpha float64, s, nu []float64) float64 {
	lo, hi := s[0], s[0]
	for _, x := range s {
		lo, hi = min(lo, x), max(hi, x)
	}
	for hi-lo > 4e-16*hi {
		m := lo + (hi-lo)/2
		if m <= lo || m >= hi {
			break
		}
		t := 0.0
		for i := range s {
			t += (alpha + nu[i]/2) * m / (alpha*m + nu[i]*s[i]/2)
		}
		if t < float64(len(s)) {
			lo = m
		} else {
			hi = m
		}
	}
	return alpha * (lo + (hi-lo)/2)
}
