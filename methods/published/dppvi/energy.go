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
// evidence lower bound of central variational inference.
type freeEnergy struct {
	Likelihood likelihood
	Data       *glm.Design
	Cavity     glm.Gaussian // a density
}

// Check reports outcomes that the likelihood does not know and a cavity that is
// no density over the weights. The methods of freeEnergy want it to pass.
func (l *freeEnergy) Check() error {
	if err := l.Cavity.CheckProper(l.Data.Columns()); err != nil {
		return fmt.Errorf("cavity: %w", err)
	}
	for i := range l.Data.Rows() {
		if err := l.Likelihood.Check(l.Data.Outcome(i)); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// eval evaluates the free energy and what Newton's method needs of it.
type eval struct {
	*freeEnergy
	mean, variance []float64
	value          float64
	gradMean       []float64    // ∂F/∂m
	gradVar        []float64    // ∂F/∂v
	dataVar        []float64    // of which from the likelihood
	curve          [][3]float64 // of each row: second derivatives by its activation's mean and variance
}

func (l *freeEnergy) newEval() *eval {
	p := l.Data.Columns()
	return &eval{freeEnergy: l, mean: make([]float64, p), variance: make([]float64, p),
		gradMean: make([]float64, p), gradVar: make([]float64, p), dataVar: make([]float64, p),
		curve: make([][3]float64, l.Data.Rows())}
}

// run works at mean and variance.
func (e *eval) run() {
	clear(e.gradMean)
	clear(e.dataVar)
	e.value = 0
	for i := range e.Data.Rows() {
		r := e.Data.Row(i)
		a, c := r.Activation(e.mean, e.variance)
		value, da, dc, second := e.Likelihood.Expect(e.Data.Outcome(i), a, c)
		if w := r.Weight; w != 1 {
			value, da, dc, second = value*w, da*w, dc*w, [3]float64{second[0] * w, second[1] * w, second[2] * w}
		}
		e.value += value
		e.curve[i] = second
		addSlopes(r, e.gradMean, e.dataVar, da, dc)
	}
	for j, v := range e.variance {
		l := e.Cavity.Lambda[j]
		diff := e.mean[j] - e.Cavity.Eta[j]/l
		e.value -= (l*v - math.Log(l*v) + l*diff*diff - 1) / 2
		e.gradMean[j] -= l * diff
		e.gradVar[j] = e.dataVar[j] + (1/v-l)/2
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

// nearest is the largest Newton step, in posterior standard deviations of each weight, after
// which the optimum counts as found. As steps shrink quadratically, what is left is far less.
const nearest = 1e-7

// info is what may be looked at after an optimisation.
type info struct {
	Converged bool
	Steps     int     // of Newton's method
	Products  int     // passes over the data for products with the Hessian
	Step      float64 // the last step, in posterior standard deviations
	Gradient  float64 // where that step began: largest derivative of F by a mean or by the logarithm of a variance
	Value     float64 // F
}

// Optimum maximises the free energy by Newton's method over means and standard deviations, in which F is concave for
// every likelihood here: the maximum is the only one, and line search leads to it from everywhere. Newton's equations
// are solved by conjugate gradients, preconditioned by the diagonal of the Hessian, which is never formed: time and
// memory are a few passes over the entries of the design matrix that are not zero, with more weights than rows too. The
// search starts from a density; the optimum does not depend on it. If it does not converge in so many steps, the best
// point is returned and info says so.
func (l *freeEnergy) Optimum(start glm.Gaussian, steps int) (glm.Gaussian, info, error) {
	if err := l.Check(); err != nil {
		return glm.Gaussian{}, info{}, err
	}
	if err := start.CheckProper(l.Data.Columns()); err != nil {
		return glm.Gaussian{}, info{}, fmt.Errorf("start: %w", err)
	}
	n := newNewton(l, start)
	for n.Steps < steps && !n.Converged {
		n.direction()
		n.measure()
		n.Converged = n.Step <= nearest
		if n.Step == 0 || !n.move() {
			break
		}
		n.Steps++
	}
	g, err := glm.FromMoments(n.at.mean, n.at.variance)
	if err != nil {
		return glm.Gaussian{}, n.info, fmt.Errorf("optimum: %w", err)
	}
	return g, n.info, nil
}

// newton is the state of the search. Vectors of 2P entries hold means, then standard deviations u = √v.
type newton struct {
	info
	p         int // weights
	at, trial *eval
	grad      []float64 // of F
	step      []float64
	diagonal  []float64 // of −Hessian
	r, z, dir []float64 // of conjugate gradients
	product   []float64
}

func newNewton(l *freeEnergy, start glm.Gaussian) *newton {
	p := l.Data.Columns()
	n := &newton{p: p, at: l.newEval(), trial: l.newEval()}
	for _, v := range []*[]float64{&n.grad, &n.step, &n.diagonal, &n.r, &n.z, &n.dir, &n.product} {
		*v = make([]float64, 2*p)
	}
	n.at.mean, n.at.variance = start.Moments()
	n.at.run()
	// One step of the fixed-point equation 1/v = λ_cavity − 2 ∂/∂v Σ E ln p is most
	// of the way from a prior to a posterior.
	copy(n.trial.mean, n.at.mean)
	for j := range p {
		n.trial.variance[j] = 1 / (l.Cavity.Lambda[j] - 2*min(n.at.dataVar[j], 0))
	}
	n.trial.run()
	if n.trial.value > n.at.value {
		n.at, n.trial = n.trial, n.at
	}
	n.Value = n.at.value
	return n
}

// direction solves Newton's equations for the point at hand, more accurately the nearer it is to the optimum.
func (n *newton) direction() {
	for j, v := range n.at.variance {
		n.grad[j], n.grad[n.p+j] = n.at.gradMean[j], 2*math.Sqrt(v)*n.at.gradVar[j]
	}
	n.hessianDiagonal()
	clear(n.step)
	copy(n.r, n.grad)
	rz := n.precondition()
	copy(n.dir, n.z)
	// rz is about twice what is left to gain.
	target := rz * min(0.1, math.Pow(rz/(1+math.Abs(n.Value)), 0.75))
	for range 4*n.p + 10 {
		if !(rz > target) || rz < 1e-26 {
			break
		}
		n.multiply()
		curvature := dot(n.dir, n.product)
		if !(curvature > 0) { // never in exact arithmetic
			break
		}
		alpha := rz / curvature
		for i, d := range n.dir {
			n.step[i] += alpha * d
			n.r[i] -= alpha * n.product[i]
		}
		next := n.precondition()
		beta := next / rz
		for i, z := range n.z {
			n.dir[i] = z + beta*n.dir[i]
		}
		rz = next
	}
}

func (n *newton) precondition() (rz float64) {
	for i, r := range n.r {
		n.z[i] = r / n.diagonal[i]
		rz += r * n.z[i]
	}
	return rz
}

// hessianDiagonal sets the diagonal of −∂²F by means and standard deviations.
func (n *newton) hessianDiagonal() {
	e := n.at
	mean, sd := n.diagonal[:n.p], n.diagonal[n.p:]
	clear(n.diagonal)
	for i, h := range e.curve {
		r := e.Data.Row(i)
		for t, j := range r.Index {
			x2 := r.Value[t] * r.Value[t]
			mean[j] -= h[0] * x2
			sd[j] -= h[2] * x2 * x2
		}
	}
	for j, v := range e.variance {
		l := e.Cavity.Lambda[j]
		mean[j] += l
		// ∂c/∂u = 2x²u; near the optimum the likelihood's own curvature by c is small and may have either sign.
		sd[j] = max(4*v*sd[j]-2*e.dataVar[j], 0) + 1/v + l
	}
}

// multiply sets product to −∂²F · dir.
func (n *newton) multiply() {
	n.Products++
	e := n.at
	clear(n.product)
	// In terms of the variance, ∂c = 2x²u·∂u: the factor 2u goes in here and out below.
	dm, ds := n.dir[:n.p], n.dir[n.p:]
	om, os := n.product[:n.p], n.product[n.p:]
	u2 := n.z[n.p:] // free until the next preconditioning
	for j, v := range e.variance {
		u2[j] = 2 * math.Sqrt(v) * ds[j]
	}
	for i, h := range e.curve {
		r := e.Data.Row(i)
		a, c := r.Products(dm, u2)
		addSlopes(r, om, os, -(h[0]*a + h[1]*c), -(h[1]*a + h[2]*c))
	}
	for j, v := range e.variance {
		l := e.Cavity.Lambda[j]
		om[j] += l * dm[j]
		os[j] = 2*math.Sqrt(v)*os[j] + (1/v+l-2*e.dataVar[j])*ds[j]
	}
}

// move goes along the step as far as F rises. It returns false where it cannot.
func (n *newton) move() bool {
	slope := dot(n.grad, n.step)
	// Standard deviations stay positive: at most 95 % of the way to zero.
	f := 1.0
	for j, v := range n.at.variance {
		if du, u := n.step[n.p+j], math.Sqrt(v); f*du < -0.95*u {
			f = -0.95 * u / du
		}
	}
	if !(slope >= 0) || !glm.Finite(n.Step) {
		return false
	}
	// Below this, differences of F are rounding and the step is right by itself.
	small := 1e-10 * (1 + math.Abs(n.Value))
	for ; f > 1e-12; f /= 2 {
		for j, v := range n.at.variance {
			u := math.Sqrt(v) + f*n.step[n.p+j]
			n.trial.mean[j], n.trial.variance[j] = n.at.mean[j]+f*n.step[j], u*u
		}
		n.trial.run()
		if gain := n.trial.value - n.Value; gain >= 1e-4*f*slope || slope < small && gain > -small {
			n.at, n.trial = n.trial, n.at
			n.Value = n.at.value
			return true
		}
	}
	return false
}

// measure says how large the step is and how steep the point at hand.
func (n *newton) measure() {
	n.Step, n.Gradient = 0, 0
	for j, v := range n.at.variance {
		n.Step = max(n.Step, math.Max(math.Abs(n.step[j]), math.Abs(n.step[n.p+j]))/math.Sqrt(v))
		n.Gradient = max(n.Gradient, math.Abs(n.at.gradMean[j]), math.Abs(v*n.at.gradVar[j]))
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

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
