package dppvi

import (
	"fmt"
	"math"

	"parley/methods/regression/glm"
)

// freeEnergy is a site's local optimisation (equation 3): the free energy
//
//	F(q) = Σᵢ E_q ln p(yᵢ | xᵢ, w) − KL(q ‖ cavity)
//
// (each row times its weight) of a density q = N(m, diag v), where the cavity is q_old divided by the site's
// own factor. With all rows and the prior in place of the cavity it is the
// evidence lower bound of central variational inference. The weights of class k
// are entries k·Columns … (k+1)·Columns − 1.
type freeEnergy struct {
	Likelihood likelihood
	Data       *glm.Design
	Cavity     glm.Gaussian // a density
}

// Weights returns the number of weights.
func (l *freeEnergy) Weights() int { return l.Likelihood.Activations() * l.Data.Columns() }

// Check reports outcomes that the likelihood does not know and a cavity that is
// no density over the weights. The methods of freeEnergy want it to pass.
func (l *freeEnergy) Check() error {
	if err := l.Cavity.CheckProper(l.Weights()); err != nil {
		return fmt.Errorf("cavity: %w", err)
	}
	for i := range l.Data.Rows() {
		if err := l.Likelihood.Check(l.Data.Outcome(i)); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// Value returns F at means and logarithms of variances, and sets its derivatives
// by both.
func (l *freeEnergy) Value(mean, logVar, gradMean, gradLogVar []float64) float64 {
	e := l.newEval(false)
	for j, r := range logVar {
		e.variance[j] = math.Exp(r)
	}
	copy(e.mean, mean)
	e.run()
	for j, v := range e.variance {
		gradMean[j], gradLogVar[j] = e.gradMean[j], v*e.gradVar[j]
	}
	return e.value
}

// eval evaluates the free energy and what Newton's method needs of it.
type eval struct {
	*freeEnergy
	k, d           int // activations and columns
	mean, variance []float64
	value          float64
	gradMean       []float64 // ∂F/∂m
	gradVar        []float64 // ∂F/∂v
	dataVar        []float64 // of which from the likelihood
	curve          []float64 // of each row: second derivatives by its activations; nil if not wanted
	a, c, first    []float64
}

func (l *freeEnergy) newEval(curves bool) *eval {
	k, p := l.Likelihood.Activations(), l.Weights()
	e := &eval{freeEnergy: l, k: k, d: l.Data.Columns(),
		mean: make([]float64, p), variance: make([]float64, p),
		gradMean: make([]float64, p), gradVar: make([]float64, p), dataVar: make([]float64, p),
		a: make([]float64, k), c: make([]float64, k), first: make([]float64, 2*k)}
	if curves {
		e.curve = make([]float64, l.Data.Rows()*k*(2*k+1))
	}
	return e
}

// run works at mean and variance.
func (e *eval) run() {
	clear(e.gradMean)
	clear(e.dataVar)
	e.value = 0
	n := e.k * (2*e.k + 1)
	for i := range e.Data.Rows() {
		r := e.Data.Row(i)
		for k := range e.k {
			e.a[k], e.c[k] = r.Activation(e.mean[k*e.d:], e.variance[k*e.d:])
		}
		var second []float64
		if e.curve != nil {
			second = e.curve[i*n : (i+1)*n]
		}
		value := e.Likelihood.Expect(e.Data.Outcome(i), e.a, e.c, e.first, second)
		if r.Weight != 1 {
			value *= r.Weight
			multiplyAll(r.Weight, e.first)
			multiplyAll(r.Weight, second)
		}
		e.value += value
		for k := range e.k {
			addSlopes(r, e.gradMean[k*e.d:], e.dataVar[k*e.d:], e.first[k], e.first[e.k+k])
		}
	}
	for j, v := range e.variance {
		l := e.Cavity.Lambda[j]
		diff := e.mean[j] - e.Cavity.Eta[j]/l
		e.value -= (l*v - math.Log(l*v) + l*diff*diff - 1) / 2
		e.gradMean[j] -= l * diff
		e.gradVar[j] = e.dataVar[j] + (1/v-l)/2
	}
}

func multiplyAll(by float64, x []float64) {
	for i := range x {
		x[i] *= by
	}
}

// addSlopes adds the derivatives by means and by variances that a row with
// derivatives by its activation's mean and variance has.
func addSlopes(r glm.Row, mean, variance []float64, da, dc float64) {
	for i, j := range r.Index {
		x := r.Value[i]
		mean[j] += da * x
		variance[j] += dc * x * x
	}
}
