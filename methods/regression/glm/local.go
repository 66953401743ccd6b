package glm

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Prior is that of weights and of τ, which are independent.
type Prior struct {
	Weights Gaussian
	Tau     float64 // τ is half-normal with this scale: |N(0, Tau²)|
}

// TauScale is the scale of τ's prior: 1 on the scale of log-odds or log-rates, where sites
// that differ by more than 2 are rare, and one standard deviation of the outcome for a number,
// whose variance that is; 0 if it is none (Gelman, Bayesian Analysis 2006, on half-normal
// and half-t priors for few groups).
func TauScale(variance float64) float64 {
	if variance > 0 {
		return math.Sqrt(variance)
	}
	return 1
}

// add adds the logarithm of the prior's density at a point, by ln τ, up to a constant.
func (p Prior) add(x MixedPoint, d *Derivatives) {
	at := 0
	for j, w := range x.Weights {
		l := p.Weights.Lambda[j]
		diff := w - p.Weights.Eta[j]/l
		d.Value -= l * diff * diff / 2
		d.Gradient[j] -= l * diff
		d.Curvature[at+j] += l
		at += j + 1
	}
	n := len(x.Weights)
	u := math.Exp(2*x.LogTau) / (p.Tau * p.Tau)
	d.Value += p.logTau(x.LogTau)
	d.Gradient[n] += 1 - u
	d.Curvature[at+n] += 2 * u
}

// logTau is the logarithm of the density of ln τ, up to a constant.
func (p Prior) logTau(x float64) float64 { return x - math.Exp(2*x)/(2*p.Tau*p.Tau) }

// allowed is how much of a step from ln τ stays within logTauLargest of the prior's scale.
func (p Prior) allowed(logTau, step float64) float64 {
	centre := math.Log(p.Tau)
	return min(max(step, centre-logTauLargest-logTau), centre+logTauLargest-logTau)
}

// largestLog is the largest step of ln τ, whose log posterior need not be concave.
const largestLog = 1.0

// local is the curvature at a point, split into that of the weights, which is positive
// definite as the marginal likelihood is log-concave in them, and what ln τ adds.
type local struct {
	weights mat.Cholesky
	along   []float64 // how the best weights move with ln τ
	left    float64   // curvature by ln τ along with the weights, made positive
	sd      float64   // left^−½
}

// factorise reads the curvature at a point.
func (p Prior) factorise(d *Derivatives) (*local, error) {
	n := len(d.Gradient) - 1
	l := &local{along: make([]float64, n)}
	own := symmetric(d.Curvature, n)
	if ok := l.weights.Factorize(own) || l.weights.Factorize(p.least(own)); !ok {
		return nil, fmt.Errorf("the curvature by the weights is not positive definite: sites' sums do not fit together")
	}
	last := d.Curvature[n*(n+1)/2:]
	cross := mat.NewVecDense(n, append([]float64(nil), last[:n]...))
	move := mat.NewVecDense(n, l.along)
	if err := l.weights.SolveVecTo(move, cross); !Usable(err) {
		return nil, fmt.Errorf("the curvature by the weights is close to singular: %w", err)
	}
	l.left = last[n] - mat.Dot(cross, move)
	// Far from the mode the log posterior need not be concave in ln τ.
	l.left = max(l.left, 0.25)
	l.sd = 1 / math.Sqrt(l.left)
	for j := range l.along {
		l.along[j] = -l.along[j]
	}
	return l, nil
}

// newton returns Newton's step, and its largest entry in standard deviations.
func (l *local) newton(d *Derivatives) (step []float64, size float64) {
	n := len(d.Gradient) - 1
	own := l.conditional(d).step
	g := d.Gradient[n]
	for j, a := range l.along {
		g += a * d.Gradient[j]
	}
	u := Clamp(g/l.left, largestLog)
	step = append(step, own...)
	for j := range step {
		step[j] += l.along[j] * u
	}
	size = math.Abs(u) / l.sd
	var covariance mat.SymDense
	if err := l.weights.InverseTo(&covariance); !Usable(err) {
		return append(step, u), math.Inf(1)
	}
	for j, x := range step {
		size = max(size, math.Abs(x)/math.Sqrt(covariance.At(j, j)))
	}
	return append(step, u), size
}

// least is a curvature that is nowhere below the prior's, as none is: what errors of quadrature
// make of it where τ is large beside what a row or two can tell need not be.
func (p Prior) least(curvature *mat.SymDense) *mat.SymDense {
	n := curvature.SymmetricDim()
	scaled := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			scaled.SetSym(i, j, curvature.At(i, j)/math.Sqrt(p.Weights.Lambda[i]*p.Weights.Lambda[j]))
		}
	}
	if !floor(scaled, 1) {
		return curvature
	}
	for i := range n {
		for j := range i + 1 {
			scaled.SetSym(i, j, scaled.At(i, j)*math.Sqrt(p.Weights.Lambda[i]*p.Weights.Lambda[j]))
		}
	}
	return scaled
}

// conditional is what is known of the weights at one τ, by Laplace's method.
type conditional struct {
	*local
	step  []float64 // Newton's
	value float64   // the log posterior
	gain  float64   // by which the step adds to it
	fell  bool      // whether the point is worse than the one before
}

func (l *local) conditional(d *Derivatives) *conditional {
	n := len(d.Gradient) - 1
	step := mat.NewVecDense(n, nil)
	// An error says that the matrix is badly conditioned, or what factorise has refused.
	_ = l.weights.SolveVecTo(step, mat.NewVecDense(n, append([]float64(nil), d.Gradient[:n]...)))
	c := &conditional{local: l, step: step.RawVector().Data, value: d.Value}
	for j, x := range c.step {
		c.gain += x * d.Gradient[j] / 2
	}
	return c
}

// evidence is the logarithm of the density of ln τ, up to a constant.
func (c *conditional) evidence() float64 { return c.value + c.gain - c.weights.LogDet()/2 }
