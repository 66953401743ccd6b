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
	// Every fifth, then all around the best of these: but for a few sites with hardly any degrees of
	// freedom the value has one maximum, or is flat.
	best, bestValue := steps, value(steps)
	look := func(i int) {
		if v := value(float64(i)); v > bestValue+1e-6 { // rounding of ln Γ(10⁶)
			best, bestValue = i, v
		}
	}
	const apart = 5
	for i := 0; i < steps; i += apart {
		look(i)
	}
	for i, to := max(best-apart+1, 0), min(best+apart, steps); i < to; i++ {
		if i%apart != 0 {
			look(i)
		}
	}
	if best == steps {
		return maxSharedAlpha, noiseLawBeta(maxSharedAlpha, s, nu)
	}
	// Golden section between the neighbours of the best.
	const ratio = 0.6180339887498949
	a, b := float64(max(best-1, 0)), float64(best+1)
	x, y := b-ratio*(b-a), a+ratio*(b-a)
	atX, atY := value(x), value(y)
	for b-a > 1e-6 {
		if atX >= atY {
			b = y
			x, y = b-ratio*(b-a), a+ratio*(b-a)
			atX, atY = value(x), atX
		} else {
			a = x
			x, y = b-ratio*(b-a), a+ratio*(b-a)
			atX, atY = atY, value(y)
		}
	}
	alpha = at((a + b) / 2)
	return alpha, noiseLawBeta(alpha, s, nu)
}

func noiseLawLogLik(alpha, beta float64, s, nu []float64) float64 {
	g, _ := math.Lgamma(alpha)
	total, h := 0.0, 0.0
	for i := range s {
		if i == 0 || nu[i] != nu[i-1] {
			h, _ = math.Lgamma(alpha + nu[i]/2)
		}
		// α ln β − (α + ν/2) ln(β + νs/2), the large terms taken together.
		total += h - g - alpha*math.Log1p(nu[i]*s[i]/2/beta) - nu[i]/2*math.Log(beta+nu[i]*s[i]/2)
	}
	return total
}

// noiseLawBeta returns the best β for an α. With m = β/α it solves
// Σ (α + ν/2) m/(α m + ν s/2) = n, whose left-hand side rises in m and is at most n
// for m = min s and at least n for m = max s. Where a step
// of Newton's leaves these bounds, which every step narrows, the middle is next.
func noiseLawBeta(alpha float64, s, nu []float64) float64 {
	lo, hi := s[0], s[0]
	for _, x := range s {
		lo, hi = min(lo, x), max(hi, x)
	}
	n, m := float64(len(s)), lo+(hi-lo)/2
	for range 200 { // no more than halving alone would take
		t, slope := 0.0, 0.0
		for i, x := range s {
			a := alpha + nu[i]/2
			y := m / (alpha*m + nu[i]*x/2)
			t += a * y
			slope += a * y * (1 - alpha*y)
		}
		if t < n {
			lo = m
		} else {
			hi = m
		}
		next := m * (1 + (n-t)/slope)
		if !(next > lo && next < hi) {
			next = lo + (hi-lo)/2
		}
		if math.Abs(n-t) <= 1e-15*n || math.Abs(next-m) <= 2e-16*m { // what rounding leaves
			break
		}
		m = next
	}
	return alpha * m
}
