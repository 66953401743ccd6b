package glm

import (
	"fmt"
	"math"
)

// Likelihood is what a row's outcome y says of its activations f₁ … f_K.
type Likelihood interface {
	// Activations returns K ≥ 1, the number of weights for each column of the
	// design matrix.
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

// checkBinary wants −1 or +1.
func checkBinary(y float64) error {
	if y != 1 && y != -1 {
		return fmt.Errorf("outcome %v of a binary model: want -1 or +1", y)
	}
	return nil
}

// Logistic is p(y | f) = σ(y f) for y of −1 or +1.
type Logistic struct{}

// Activations returns 1.
func (Logistic) Activations() int { return 1 }

// Check wants −1 or +1.
func (Logistic) Check(y float64) error { return checkBinary(y) }

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

// LogLik returns −½ ln(2π Variance) − (y − f)²/(2 Variance).
func (l Linear) LogLik(y float64, f, first []float64) (value, curve float64) {
	r := y - f[0]
	first[0] = r / l.Variance
	return -(math.Log(2*math.Pi*l.Variance) + r*r/l.Variance) / 2, 1 / l.Variance
}

// Predict sets the mean.
func (Linear) Predict(a, c, dst []float64) { dst[0] = a[0] }
