// Package glm is the arithmetic of regressions: rows, likelihoods, densities of weights, and random
// intercepts. It knows nothing of sites, tasks and studies.
//
// An [Encoding] turns declared columns into rows of a [Design], and weights back into the features' own units; a
// [Binding] reads them from data of a schema. [Gaussian] is a density or a factor with diagonal covariance, in natural
// parameters, and [Normal] one with any. [Logistic], [Cloglog], [Linear], [Poisson] and [Softmax] are likelihoods;
// another one is a few functions of a row's activation.
//
// Every site s may have an intercept b_s ~ N(0, τ²) of its own. [Marginal] is what a site can
// say of weights and τ without its intercept, [Search] finds the posterior of both from sums
// over sites, and [Marginal.Intercept] is what a site knows of its own, which stays there.
//
// All results are functions of their arguments alone, to the last bit on one architecture. Values that come from
// elsewhere are checked by methods named Check and give errors, never panics.
package glm

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
)

// Likelihood is what a row's outcome y says of its activations f₁ … f_K.
type Likelihood interface {
	// Activations returns K ≥ 1, the number of weights for each column of the design matrix.
	Activations() int
	// Check reports an outcome that the likelihood does not know.
	Check(y float64) error
	// LogLik returns ln p(y | f), and sets its derivatives by the activations. Of a single one it returns
	// minus the second derivative too.
	LogLik(y float64, f, first []float64) (value, curve float64)
	// Predict sets K numbers, what is expected of an outcome where activations are N(a_k, c_k): the
	// probability of +1 or of each class, or the mean.
	Predict(a, c, dst []float64)
}

// Binary is a likelihood of two outcomes, −1 and +1.
type Binary interface {
	Likelihood
	// LogExpect returns ln E p(y | f) for f ~ N(a, c).
	LogExpect(y, a, c float64) float64
	// ExpectNone returns E ln p(−1 | f) for f ~ N(a, c), and its derivative by a.
	ExpectNone(a, c float64) (value, slope float64)
}

// single is what likelihoods of one activation have in common, and binary those of −1 and +1.
type (
	single struct{}
	binary struct{ single }
)

// Activations returns 1.
func (single) Activations() int { return 1 }

// Check wants −1 or +1.
func (binary) Check(y float64) error {
	if y != 1 && y != -1 {
		return fmt.Errorf("outcome %v of a binary model: want -1 or +1", y)
	}
	return nil
}

// Logistic is p(y | f) = σ(y f) for y of −1 or +1.
type Logistic struct{ binary }

// LogLik returns ln σ(y f).
func (Logistic) LogLik(y float64, f, first []float64) (value, curve float64) {
	e := logSigmoid{}
	e.add(1, y*f[0])
	first[0] = y * e.d[0]
	return e.value, -e.d[1]
}

// Predict sets E σ(f), the exact probability of +1.
func (Logistic) Predict(a, c, dst []float64) { dst[0] = expectSigmoid(a[0], c[0]) }

// LogExpect implements [Binary].
func (Logistic) LogExpect(y, a, c float64) float64 { return LogExpectSigmoid(y*a, c) }

// ExpectNone implements [Binary].
func (Logistic) ExpectNone(a, c float64) (value, slope float64) {
	value, d := ExpectLogSigmoid(-a, c)
	return value, -d[0]
}

// Linear is y ~ N(f, Variance): regression with known noise.
type Linear struct {
	single
	Variance float64 // > 0
}

// Check wants a finite number and a positive variance.
func (l Linear) Check(y float64) error {
	if !(l.Variance > 0) || !Finite(l.Variance) {
		return fmt.Errorf("noise variance %v is not positive and finite", l.Variance)
	}
	if !Finite(y) {
		return fmt.Errorf("outcome %v is not finite", y)
	}
	return nil
}

// LogLik returns −½ ln(2π Variance) − (y − f)²/(2 Variance).
func (l Linear) LogLik(y float64, f, first []float64) (value, curve float64) {
	r := y - f[0]
	first[0] = r / l.Variance
	return -(math.Log(2*math.Pi*l.Variance) + r*r/l.Variance) / 2, 1 / l.Variance
}

// Predict sets the mean.
func (Linear) Predict(a, c, dst []float64) { dst[0] = a[0] }

// Softmax is p(y | f) = exp(f_y) / Σ exp(f_k) for y of 0 … Classes−1, with weights for every class.
type Softmax struct{ Classes int } // 2 to maxClasses

// maxClasses bounds the work space that rows need.
const maxClasses = 32

// Activations returns the number of classes.
func (l Softmax) Activations() int { return l.Classes }

// Check wants a whole number below Classes.
func (l Softmax) Check(y float64) error {
	if l.Classes < 2 || l.Classes > maxClasses {
		return fmt.Errorf("%d classes: want 2 to %d", l.Classes, maxClasses)
	}
	if y != math.Trunc(y) || y < 0 || y >= float64(l.Classes) {
		return fmt.Errorf("outcome %v of a model of %d classes: want one of 0 to %d", y, l.Classes, l.Classes-1)
	}
	return nil
}

// LogLik returns f_y − ln Σ exp(f_k), and sets [k = y] − α_k for the probabilities α_k.
func (l Softmax) LogLik(y float64, f, first []float64) (value, _ float64) {
	copy(first, f)
	value = f[int(y)] - SoftmaxOf(first)
	for k := range f {
		first[k] = -first[k]
	}
	first[int(y)]++
	return value, 0
}

// Predict sets softmax(a_k/√(1 + π c_k/8)), the probit approximation of every class (equation 11), normalised.
func (l Softmax) Predict(a, c, dst []float64) {
	for k := range dst {
		dst[k] = a[k] / math.Sqrt(1+math.Pi*c[k]/8)
	}
	SoftmaxOf(dst)
}

// SoftmaxOf replaces exponents by probabilities and returns ln Σ exp. What no exponent
// should be gives probabilities too: NaN has none, and infinities share all alike.
func SoftmaxOf(x []float64) (lse float64) {
	top, sum := math.Inf(-1), 0.0
	for k, v := range x {
		if x[k] = min(max(v, -math.MaxFloat64), math.MaxFloat64); x[k] > top {
			top = x[k]
		}
	}
	for k, v := range x {
		if x[k] = math.Exp(v - top); math.IsNaN(v) {
			x[k] = 0
		}
		sum += x[k]
	}
	if sum == 0 { // none is a number
		floats.AddConst(1, x)
		sum = float64(len(x))
	}
	for k := range x {
		x[k] /= sum
	}
	return top + math.Log(sum)
}

// Poisson is p(y | f) = exp(y f − eᶠ)/y! for counts y: the rate's logarithm is the
// activation. As E eᶠ = exp(a + c/2), everything has a closed form.
//
// Rates end at e³⁰, about 10¹³: from there on the exponential goes on as its own
// parabola, so that no posterior, however wide, leads to numbers that are not finite, and
// the free energy stays concave with continuous second derivatives.
type Poisson struct{ single }

const (
	largestCount = 1e9
	logRateEnd   = 30
)

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
	low, high := -1.0, 1.0 // low is too little
	for below(high) < p && high < math.MaxFloat64/2 {
		low, high = high, 2*high
	}
	for mid := math.Floor((low + high) / 2); mid > low && mid < high; mid = math.Floor((low + high) / 2) {
		if below(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Cloglog is p(+1 | f) = 1 − exp(−eᶠ), the complementary log-log link. Of an event in a period f is the logarithm
// of the hazard summed over the period, so that effects are those of a model of proportional hazards
// (Prentice and Gloeckler, Biometrics 1978).
type Cloglog struct{ binary }

// LogLik returns −u or ln(1 − e⁻ᵘ), for u = eᶠ.
func (Cloglog) LogLik(y float64, f, first []float64) (value, curve float64) {
	u, d1, d2 := rate(f[0])
	if y < 0 {
		first[0] = -d1
		return -u, d2
	}
	if f[0] < -logRateEnd { // ln u but for rounding
		first[0] = 1
		return f[0], u / 2
	}
	g := d1 / math.Expm1(u)
	first[0] = g
	return math.Log(-math.Expm1(-u)), g * (u/-math.Expm1(-u) - 1)
}

// Predict sets the probability of +1.
func (l Cloglog) Predict(a, c, dst []float64) {
	dst[0] = math.Exp(l.LogExpect(1, a[0], c[0]))
	switch {
	case dst[0] <= 1:
	case math.IsNaN(dst[0]) && a[0] <= 0:
		dst[0] = 0
	default:
		dst[0] = 1
	}
}

// LogExpect implements [Binary].
func (l Cloglog) LogExpect(y, a, c float64) float64 {
	return min(logExpect(func(f float64) (value, d1, d2 float64) {
		at, first := [1]float64{f}, [1]float64{}
		value, curve := l.LogLik(y, at[:], first[:])
		return value, first[0], -curve
	}, a, math.Sqrt(c)), 0)
}

// ExpectNone implements [Binary]: −E eᶠ.
func (Cloglog) ExpectNone(a, c float64) (value, slope float64) {
	value, slope, _ = rate(a + c/2)
	return -value, -slope
}
