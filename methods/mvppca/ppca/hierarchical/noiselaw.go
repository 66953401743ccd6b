package hierarchical

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"parley/methods/mvppca/linalg"
)

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
	near := 0.0 // the last β/α: that of the next α is not far
	betaAt := func(alpha float64) float64 {
		beta := noiseLawBetaFrom(alpha, near, s, nu)
		near = beta / alpha
		return beta
	}
	value := func(i float64) float64 {
		a := at(i)
		return noiseLawLogLik(a, betaAt(a), s, nu)
	}
	// Every fifth: but for a few sites with hardly any degrees of freedom the value has one
	// maximum, or is flat.
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
	around := apart
	if best == steps {
		around = 1
		for i := steps - apart + 1; i < steps; i++ {
			look(i)
		}
	}
	if best == steps {
		return maxSharedAlpha, betaAt(maxSharedAlpha)
	}
	alpha = at(descends(float64(max(best-around, 0)), float64(min(best+around, steps)), func(i float64) float64 {
		a := at(i)
		return noiseLawSlope(a, betaAt(a), s, nu)
	}))
	return alpha, betaAt(alpha)
}

// descends returns where f goes from above zero to below between a and b, by false position
// with the rule of Illinois; an end where it does not.
func descends(a, b float64, f func(float64) float64) float64 {
	atA, atB := f(a), f(b)
	switch {
	case !(atA > 0):
		return a
	case !(atB < 0):
		return b
	}
	x := a + (b-a)/2
	for range 100 { // about 8 are enough
		last := x
		x = b - atB*(b-a)/(atB-atA)
		switch y := f(x); {
		case y == 0 || math.Abs(x-last) < 1e-8:
			return x
		case y > 0:
			if last == a { // the same end twice
				atB /= 2
			}
			a, atA = x, y
		default:
			if last == b {
				atA /= 2
			}
			b, atB = x, y
		}
	}
	return x
}

func noiseLawLogLik(alpha, beta float64, s, nu []float64) float64 {
	g, _ := math.Lgamma(alpha)
	total, h, half := 0.0, 0.0, 0.0
	for i := range s {
		if i == 0 || nu[i] != nu[i-1] {
			h, _ = math.Lgamma(alpha + nu[i]/2)
		}
		// α ln β − (α + ν/2) ln(β + νs/2), the large terms taken together.
		total += h - g - (alpha+nu[i]/2)*math.Log1p(nu[i]*s[i]/2/beta)
		half += nu[i] / 2
	}
	return total - half*math.Log(beta)
}

// noiseLawSlope is the derivative of the log-likelihood by α, and at the best β also that of
// what is left of it.
func noiseLawSlope(alpha, beta float64, s, nu []float64) float64 {
	g := mathext.Digamma(alpha)
	total, h, logs := 0.0, 0.0, linalg.LogSum{Product: 1}
	for i := range s {
		if i == 0 || nu[i] != nu[i-1] {
			h = mathext.Digamma(alpha + nu[i]/2)
		}
		total += h - g
		logs.Add(1 + nu[i]*s[i]/2/beta)
	}
	return total - logs.Sum()
}

// noiseLawBeta returns the best β for an α. With m = β/α it solves
// Σ (α + ν/2) m/(α m + ν s/2) = n, whose left-hand side rises in m and is at most n
// for m = min s and at least n for m = max s. Where a step
// of Newton's leaves these bounds, which every step narrows, the middle is next.
func noiseLawBeta(alpha float64, s, nu []float64) float64 {
	return noiseLawBetaFrom(alpha, 0, s, nu)
}

// noiseLawBetaFrom begins with an m, or with the middle if that is out of bounds.
func noiseLawBetaFrom(alpha, m float64, s, nu []float64) float64 {
	lo, hi := s[0], s[0]
	for _, x := range s {
		lo, hi = min(lo, x), max(hi, x)
	}
	n := float64(len(s))
	if !(m > lo && m < hi) {
		m = lo + (hi-lo)/2
	}
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
