package dppvi

import (
	"math"

	"parley/methods/regression/glm"
)

// slopes are what a step of stochastic gradients needs of a likelihood: how many activations it has, and
// the derivatives of E ln p(y | f) for independent f_k ~ N(a_k, c_k) by (a₁ … a_K, c₁ … c_K).
type slopes interface {
	Activations() int
	Slopes(y float64, a, c, first []float64)
}

// likelihood has in addition the expectation itself, with first derivatives and, unless second is nil,
// the lower triangle of the second ones by rows, K(2K+1) numbers.
type likelihood interface {
	slopes
	Check(y float64) error
	Expect(y float64, a, c, first, second []float64) float64
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
func (logistic) Expect(y float64, a, c, first, second []float64) float64 {
	value, d := glm.ExpectLogSigmoid(y*a[0], c[0])
	first[0], first[1] = y*d[0], d[1]/2
	if second != nil {
		second[0], second[1], second[2] = d[1], y*d[2]/2, d[3]/4
	}
	return value
}

// Slopes is Expect without its value.
func (l logistic) Slopes(y float64, a, c, first []float64) { l.Expect(y, a, c, first, nil) }

// sampled is the logistic likelihood averaged over draws of a standard normal number, with the derivatives
// of that average: the reparametrised stochastic gradients that DP-PVI was published with. A minibatch
// shares its draws.
type sampled struct {
	glm.Logistic
	draws []float64
}

// Slopes differentiates by c through the deviation √c; at c = 0 that derivative is set to 0.
func (l sampled) Slopes(y float64, a, c, first []float64) {
	s := math.Sqrt(c[0])
	first[0], first[1] = 0, 0
	w := 1 / float64(len(l.draws))
	for _, z := range l.draws {
		g := y * w / (1 + math.Exp(y*(a[0]+s*z)))
		first[0] += g
		first[1] += g * z
	}
	if s > 0 {
		first[1] /= 2 * s
	} else {
		first[1] = 0
	}
}

// linear has closed forms.
type linear struct{ glm.Linear }

// Expect returns −½ ln(2π Variance) − ((y − a)² + c)/(2 Variance).
func (l linear) Expect(y float64, a, c, first, second []float64) float64 {
	l.Slopes(y, a, c, first)
	if second != nil {
		second[0], second[1], second[2] = -1/l.Variance, 0, 0
	}
	r := y - a[0]
	return -(math.Log(2*math.Pi*l.Variance) + (r*r+c[0])/l.Variance) / 2
}

// Slopes sets (y − a)/Variance and −½/Variance.
func (l linear) Slopes(y float64, a, _, first []float64) {
	first[0], first[1] = (y-a[0])/l.Variance, -0.5/l.Variance
}
