package dppvi

import (
	"math"

	"parley/methods/regression/glm"
)

// slopes are what a step of stochastic gradients needs of a likelihood: the derivatives of
// E ln p(y | f), f ~ N(a, c), by a and c.
type slopes interface {
	Slopes(y, a, c float64) (da, dc float64)
}

// likelihood has in addition the expectation itself, with its second derivatives by a twice, by both, and by c twice.
type likelihood interface {
	slopes
	Check(y float64) error
	Expect(y, a, c float64) (value, da, dc float64, second [3]float64)
}

// expectationsOf is a likelihood with its expectations.
func expectationsOf(l glm.Likelihood) likelihood {
	if l, ok := l.(glm.Linear); ok {
		return linear{l}
	}
	return logistic{}
}

// logistic has exact expectations, to about 1e-12.
type logistic struct{ glm.Logistic }

// Expect uses ∂/∂a E g = E g′ and ∂/∂c E g = ½ E g″.
func (logistic) Expect(y, a, c float64) (value, da, dc float64, second [3]float64) {
	value, d := glm.ExpectLogSigmoid(y*a, c)
	return value, y * d[0], d[1] / 2, [3]float64{d[1], y * d[2] / 2, d[3] / 4}
}

// Slopes is Expect without its value.
func (l logistic) Slopes(y, a, c float64) (da, dc float64) {
	_, da, dc, _ = l.Expect(y, a, c)
	return da, dc
}

// sampled is the logistic likelihood averaged over draws of a standard normal number, with the derivatives of that
// average: the reparametrised stochastic gradients that DP-PVI was published with. A minibatch shares its draws.
type sampled struct {
	glm.Logistic
	draws []float64
}

// Slopes differentiates by c through the deviation √c; at c = 0 that derivative is set to 0.
func (l sampled) Slopes(y, a, c float64) (da, dc float64) {
	s := math.Sqrt(c)
	w := 1 / float64(len(l.draws))
	for _, z := range l.draws {
		g := y * w / (1 + math.Exp(y*(a+s*z)))
		da += g
		dc += g * z
	}
	if !(s > 0) {
		return da, 0
	}
	return da, dc / (2 * s)
}

// linear has closed forms.
type linear struct{ glm.Linear }

// Expect returns −½ ln(2π Variance) − ((y − a)² + c)/(2 Variance).
func (l linear) Expect(y, a, c float64) (value, da, dc float64, second [3]float64) {
	r := y - a
	da, dc = l.Slopes(y, a, c)
	return -(math.Log(2*math.Pi*l.Variance) + (r*r+c)/l.Variance) / 2, da, dc, [3]float64{-1 / l.Variance}
}

// Slopes returns (y − a)/Variance and −½/Variance.
func (l linear) Slopes(y, a, _ float64) (da, dc float64) {
	return (y - a) / l.Variance, -0.5 / l.Variance
}
