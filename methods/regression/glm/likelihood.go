package glm

import (
	"fmt"
	"math"
)

// Likelihood is what a row's outcome y says of its activations f₁ … f_K. Under
// a posterior with diagonal covariance they are independent, f_k ~ N(a_k, c_k).
// Everything else in this package asks a likelihood for these few functions.
//
// Derivatives are by (a₁ … a_K, c₁ … c_K) in this order; second derivatives are
// the lower triangle of their matrix by rows, K(2K+1) numbers. An implementation
// keeps no state, and allocates nothing in Slopes.
type Likelihood interface {
	// Activations returns K ≥ 1, the number of weights for each column of the
	// design matrix.
	Activations() int
	// Check reports an outcome that the likelihood does not know.
	Check(y float64) error
	// Expect returns E ln p(y | f), sets its derivatives, and its second
	// derivatives unless second is nil.
	Expect(y float64, a, c, first, second []float64) float64
	// Slopes sets the first derivatives alone.
	Slopes(y float64, a, c, first []float64)
	// Predict sets K numbers, what is expected of an outcome: the probability of +1
	// or of each class, or the mean.
	Predict(a, c, dst []float64)
}

// Logistic is p(y | f) = σ(y f) for y of −1 or +1. Expectations are exact to
// about 1e-12, by 20 Gauss–Hermite nodes where these are enough.
type Logistic struct{}

// Activations returns 1.
func (Logistic) Activations() int { return 1 }

// Check wants −1 or +1.
func (Logistic) Check(y float64) error {
	if y != 1 && y != -1 {
		return fmt.Errorf("outcome %v of a binary model: want -1 or +1", y)
	}
	return nil
}

// Expect uses ∂/∂a E g = E g′ and ∂/∂c E g = ½ E g″.
func (Logistic) Expect(y float64, a, c, first, second []float64) float64 {
	e := expectLogSigmoid(y*a[0], c[0])
	first[0], first[1] = y*e.d[0], e.d[1]/2
	if second != nil {
		second[0], second[1], second[2] = e.d[1], y*e.d[2]/2, e.d[3]/4
	}
	return e.value
}

// Slopes is Expect without what costs more.
func (Logistic) Slopes(y float64, a, c, first []float64) {
	d1, d2 := slopesLogSigmoid(y*a[0], c[0])
	first[0], first[1] = y*d1, d2/2
}

// Predict sets E σ(f), the exact probability of +1.
func (Logistic) Predict(a, c, dst []float64) { dst[0] = expectSigmoid(a[0], c[0]) }

// LogisticTwenty is the logistic likelihood with every expectation by 20 Gauss–Hermite
// nodes, however wide the activation: what published test vectors have beside the
// exact numbers. It has no second derivatives.
type LogisticTwenty struct{ Logistic }

// Expect sets no second derivatives.
func (LogisticTwenty) Expect(y float64, a, c, first, _ []float64) float64 {
	e := twentyLogSigmoid(y*a[0], math.Sqrt(c[0]))
	first[0], first[1] = y*e.d[0], e.d[1]/2
	return e.value
}

// LogisticBy is the logistic likelihood with expectations by a fixed rule, and
// with the derivatives of the rule itself: of Σ wₖ ln σ(y(a + √c zₖ)). With a
// rule of [Sampled] nodes these are the reparametrised stochastic gradients that
// DP-PVI was published with.
type LogisticBy struct {
	Logistic
	Rule Rule
}

// Expect differentiates by c through the deviation √c; at c = 0 these derivatives
// are set to 0.
func (l LogisticBy) Expect(y float64, a, c, first, second []float64) float64 {
	l.Slopes(y, a, c, first)
	s, v := math.Sqrt(c[0]), 0.0
	var h [3]float64 // by a and a, a and s, s and s
	for k, z := range l.Rule.Nodes {
		w, f := l.Rule.Weights[k], y*(a[0]+s*z)
		v += w * logSigma(f)
		g := -w / (2 + 2*math.Cosh(f))
		h[0] += g
		h[1] += g * z
		h[2] += g * z * z
	}
	if second != nil {
		second[0], second[1], second[2] = h[0], 0, 0
		if s > 0 {
			// first[1] is the derivative by s over 2s.
			second[1], second[2] = h[1]/(2*s), (h[2]-2*first[1])/(4*c[0])
		}
	}
	return v
}

// Slopes sets the derivatives of the rule.
func (l LogisticBy) Slopes(y float64, a, c, first []float64) {
	s := math.Sqrt(c[0])
	first[0], first[1] = 0, 0
	for k, z := range l.Rule.Nodes {
		g := y * l.Rule.Weights[k] / (1 + math.Exp(y*(a[0]+s*z)))
		first[0] += g
		first[1] += g * z
	}
	if s > 0 {
		first[1] /= 2 * s
	} else {
		first[1] = 0
	}
}

// logSigma returns ln σ(f).
func logSigma(f float64) float64 {
	return math.Min(f, 0) - math.Log1p(math.Exp(-math.Abs(f)))
}

// Linear is y ~ N(f, Variance): regression with known noise. Everything has a
// closed form.
type Linear struct{ Variance float64 } // > 0

// Activations returns 1.
func (Linear) Activations() int { return 1 }

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

// Expect returns −½ ln(2π Variance) − ((y − a)² + c)/(2 Variance).
func (l Linear) Expect(y float64, a, c, first, second []float64) float64 {
	l.Slopes(y, a, c, first)
	if second != nil {
		second[0], second[1], second[2] = -1/l.Variance, 0, 0
	}
	r := y - a[0]
	return -(math.Log(2*math.Pi*l.Variance) + (r*r+c[0])/l.Variance) / 2
}

// Slopes sets (y − a)/Variance and −½/Variance.
func (l Linear) Slopes(y float64, a, c, first []float64) {
	first[0], first[1] = (y-a[0])/l.Variance, -0.5/l.Variance
}

// Predict sets the mean.
func (Linear) Predict(a, c, dst []float64) { dst[0] = a[0] }
