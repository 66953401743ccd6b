package between

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"parley/internal/linalg"
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
	betaAt := func(alpha, close float64) float64 {
		beta := noiseLawBetaFrom(alpha, near, close, s, nu)
		near = beta / alpha
		return beta
	}
	value := func(i float64) float64 {
		a := at(i)
		return noiseLawLogLik(a, betaAt(a, 1e-6), s, nu) // whose square is what is lost
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
		return maxSharedAlpha, betaAt(maxSharedAlpha, exactly)
	}
	alpha = at(descends(float64(max(best-around, 0)), float64(min(best+around, steps)), func(i float64) float64 {
		a := at(i)
		return noiseLawSlope(a, betaAt(a, exactly), s, nu)
	}))
	return alpha, betaAt(alpha, exactly)
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

// noiseLawLogLik is that log-likelihood, with ln Γ(x) = (x − ½) ln x − x + ½ ln 2π + gammaRest(x):
// the large terms are taken together, for each site in one logarithm.
func noiseLawLogLik(alpha, beta float64, s, nu []float64) float64 {
	total, half, logs := -float64(len(s))*gammaRest(alpha), 0.0, linalg.LogSum{Product: 1}
	for i, x := range s {
		h := nu[i] / 2
		up := 1 + h/alpha
		total += (alpha+h)*math.Log(up/(1+h*x/beta)) + gammaRest(alpha+h)
		half += h
		logs.Add(up)
	}
	return total - logs.Sum()/2 + half*(math.Log(alpha)-1-math.Log(beta))
}

// gammaRest is by Stirling's series, whose first term that is left out is x⁻⁹/1188.
func gammaRest(x float64) float64 {
	if x < 10 {
		g, _ := math.Lgamma(x)
		return g - (x-0.5)*math.Log(x) + x - math.Log(2*math.Pi)/2
	}
	y := 1 / x
	z := y * y
	return y * (1.0/12 - z*(1.0/360-z*(1.0/1260-z/1680)))
}

// noiseLawSlope is the derivative of the log-likelihood by α, and at the best β also that of
// what is left of it.
func noiseLawSlope(alpha, beta float64, s, nu []float64) float64 {
	total, logs := -float64(len(s))*digammaRest(alpha), linalg.LogSum{Product: 1}
	for i, x := range s {
		h := nu[i] / 2
		logs.Add((1 + h/alpha) / (1 + h*x/beta))
		total += digammaRest(alpha + h)
	}
	return total + logs.Sum()
}

// digammaRest is ψ(x) − ln x, the derivative of ln Γ(x) less its large part, by the same series;
// the first term that is left out is x⁻¹⁰/132.
func digammaRest(x float64) float64 {
	if x < 10 {
		return mathext.Digamma(x) - math.Log(x)
	}
	y := 1 / x
	z := y * y
	return -y/2 - z*(1.0/12-z*(1.0/120-z*(1.0/252-z/240)))
}

// noiseLawBetaFrom returns the best β for an α. With m = β/α it solves
// Σ (α + ν/2) m/(α m + ν s/2) = n, whose left-hand side rises in m and is at most n
// for m = min s and at least n for m = max s. Where a step
// of Newton's leaves these bounds, which every step narrows, the middle is next.
// It begins with an m, or with the middle if that is out of bounds, and ends where a step moves it
// by no more than a share.
func noiseLawBetaFrom(alpha, m, close float64, s, nu []float64) float64 {
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
		if math.Abs(n-t) <= 1e-15*n { // what rounding leaves
			break
		}
		moved := math.Abs(next - m)
		if m = next; moved <= close*m {
			break
		}
	}
	return alpha * m
}

// exactly is the share of m by which a step moves it where rounding decides.
const exactly = 2e-16
