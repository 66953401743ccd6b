package glm

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Poisson is p(y | f) = exp(y f − eᶠ)/y! for counts y: the rate's logarithm is the
// activation. As E eᶠ = exp(a + c/2), everything has a closed form.
//
// Rates end at e³⁰, about 10¹³: from there on the exponential goes on as its own
// parabola, so that no posterior, however wide, leads to numbers that are not finite, and
// the free energy stays concave with continuous second derivatives.
type Poisson struct{}

const (
	largestCount = 1e9
	logRateEnd   = 30
)

// Activations returns 1.
func (Poisson) Activations() int { return 1 }

// Check wants a whole number from 0 to 10⁹.
func (Poisson) Check(y float64) error {
	if y != math.Trunc(y) || !Inside(y, 0, largestCount) {
		return fmt.Errorf("outcome %v of a model of counts: want a whole number from 0 to %v", y, largestCount)
	}
	return nil
}

// LogLik returns y f − eᶠ − ln y!.
func (Poisson) LogLik(y float64, f, first []float64) (value, curve float64) {
	g, d1, d2 := rate(f[0])
	first[0] = y - d1
	factorial, _ := math.Lgamma(y + 1)
	return y*f[0] - g - factorial, d2
}

// Predict sets the expected count, exp(a + c/2).
func (Poisson) Predict(a, c, dst []float64) { dst[0], _, _ = rate(a[0] + c[0]/2) }

// rate returns eᵘ with its first two derivatives, a parabola above logRateEnd.
func rate(u float64) (value, d1, d2 float64) {
	if u <= logRateEnd {
		value = math.Exp(u)
		return value, value, value
	}
	end, over := math.Exp(logRateEnd), u-logRateEnd
	return end * (1 + over*(1+over/2)), end * (1 + over), end
}

// CountSpread returns the standard deviation of a count whose rate is eᶠ: of the
// Poisson distribution, and of what is not known of its rate, exp(a + c/2) (eᶜ − 1)^½.
func CountSpread(a, c float64) float64 {
	mean, _, _ := rate(a + c/2)
	return math.Sqrt(mean + mean*mean*math.Expm1(min(c, logRateEnd)))
}

// LogExpectPoisson returns ln E p(y | f), the logarithm of the probability of a count
// under what is known of its rate.
func LogExpectPoisson(y, a, c float64) float64 {
	factorial, _ := math.Lgamma(y + 1)
	density := func(f float64) (value, d1, d2 float64) {
		g, g1, g2 := rate(f)
		return y*f - g - factorial, y - g1, -g2
	}
	return logExpect(density, a, math.Sqrt(c))
}

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
