package mixed

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/methods/pvi/gvi"
)

// Prior is that of weights and of τ, which are independent.
type Prior struct {
	Weights gvi.Gaussian
	Tau     float64 // τ is half-normal with this scale: |N(0, Tau²)|
}

// TauScale is the scale of τ's prior for a likelihood: 1 on the scale of log-odds or
// log-rates, where sites that differ by more than 2 are rare, and one standard deviation
// of the outcome's noise for a number (Gelman, Bayesian Analysis 2006, on half-normal and
// half-t priors for few groups).
func TauScale(l gvi.Likelihood) float64 {
	if l, ok := l.(gvi.Linear); ok {
		return math.Sqrt(l.Variance)
	}
	return 1
}

// add adds the logarithm of the prior's density at a point, by ln τ, up to a constant.
func (p Prior) add(x Point, d *Derivatives) {
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

// The search for the mode.
const (
	maxNewton  = 40  // exchanges for the mode; about seven are usual
	nearMode   = 0.1 // standard deviations: a step below it is the last, since each point of the grid takes one more
	largestLog = 1.0 // step of ln τ
)

// The grid over ln τ, in standard deviations from its mode: its density is skewed either way.
const (
	gridLow    = -6
	gridHigh   = 7
	gridPoints = 14
)

// Search finds the posterior of weights and τ, given sums over sites at points that it asks
// for: first the joint mode by safeguarded Newton steps, then, in two more exchanges, a grid
// of ln τ about it with two Newton steps of the weights at each. This is the integrated
// nested Laplace approximation with one hyperparameter (Rue, Martino and Chopin, J R Stat
// Soc B 2009). Its fields are its state, to be kept between exchanges.
type Search struct {
	Best    Point     `cbor:"best"`    // the best point so far
	Value   float64   `cbor:"value"`   // the log posterior there
	Step    []float64 `cbor:"step"`    // from Best, by weights and ln τ; of the first point none
	Tried   int       `cbor:"tried"`   // exchanges
	Grid    []Point   `cbor:"grid"`    // asked for next instead of a step; nil before
	Refined bool      `cbor:"refined"` // whether the grid's weights have made a step of their own
}

// NewSearch starts at the prior's mean, with sites that differ as the prior expects.
func NewSearch(p Prior) *Search {
	mean, _ := p.Weights.Moments()
	return &Search{Best: Point{Weights: mean, LogTau: math.Log(p.Tau / 2)}}
}

// Ask returns the points at which the sites' derivatives are wanted.
func (s *Search) Ask() []Point {
	if s.Grid != nil {
		return s.Grid
	}
	x := Point{Weights: append([]float64(nil), s.Best.Weights...), LogTau: s.Best.LogTau}
	if s.Step != nil {
		n := len(x.Weights)
		for j := range x.Weights {
			x.Weights[j] += s.Step[j]
		}
		x.LogTau = gvi.Clamp(x.LogTau+s.Step[n], LogTauLargest)
	}
	return []Point{x}
}

// Tell takes in the sums over sites at the points that Ask returned. The posterior is not
// nil when the search is done, after the grid.
func (s *Search) Tell(p Prior, sums []*Derivatives) (*Posterior, error) {
	asked := s.Ask()
	if len(sums) != len(asked) {
		return nil, fmt.Errorf("derivatives at %d points of %d", len(sums), len(asked))
	}
	for i, d := range sums {
		p.add(asked[i], d)
	}
	switch {
	case s.Grid != nil && s.Refined:
		return posterior(p, asked, sums)
	case s.Grid != nil:
		s.Refined = true
		return nil, refine(s.Grid, sums)
	}
	s.Tried++
	d, x := sums[0], asked[0]
	if s.Step != nil && !(d.Value >= s.Value-1e-9*(1+math.Abs(s.Value))) {
		if s.Tried >= maxNewton {
			return nil, fmt.Errorf("%w: after %d steps the log posterior still falls", gvi.ErrNotConverged, s.Tried)
		}
		for j := range s.Step {
			s.Step[j] /= 4
		}
		return nil, nil
	}
	if !gvi.Finite(d.Value) {
		return nil, fmt.Errorf("the log posterior is %v at the start", d.Value)
	}
	l, err := factorise(d)
	if err != nil {
		return nil, err
	}
	step, size := l.newton(d)
	s.Best, s.Value, s.Step = x, d.Value, step
	if size > nearMode {
		if s.Tried >= maxNewton {
			return nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", gvi.ErrNotConverged, s.Tried, size)
		}
		return nil, nil
	}
	s.Best = s.Ask()[0]
	s.Step = nil
	n := len(step) - 1
	for k := range gridPoints {
		by := (gridLow + float64(k)*(gridHigh-gridLow)/(gridPoints-1)) * l.sd
		g := Point{Weights: append([]float64(nil), s.Best.Weights...), LogTau: gvi.Clamp(s.Best.LogTau+by, LogTauLargest)}
		for j := range n {
			g.Weights[j] += l.along[j] * by
		}
		s.Grid = append(s.Grid, g)
	}
	return nil, nil
}

// refine moves the weights at each point of the grid by a Newton step.
func refine(grid []Point, sums []*Derivatives) error {
	for k, d := range sums {
		l, err := factorise(d)
		if err != nil {
			return err
		}
		for j, x := range l.conditional(d) {
			grid[k].Weights[j] += x
		}
	}
	return nil
}

// local is the curvature at a point, split into that of the weights, which is positive
// definite as the marginal likelihood is log-concave in them, and what ln τ adds.
type local struct {
	weights mat.Cholesky
	along   []float64 // how the best weights move with ln τ
	left    float64   // curvature by ln τ along with the weights, made positive
	sd      float64   // left^−½
}

// factorise reads the curvature at a point.
func factorise(d *Derivatives) (*local, error) {
	n := len(d.Gradient) - 1
	l := &local{along: make([]float64, n)}
	if ok := l.weights.Factorize(symmetric(d.Curvature, n)); !ok {
		return nil, fmt.Errorf("the curvature by the weights is not positive definite: sites' sums do not fit together")
	}
	last := d.Curvature[n*(n+1)/2:]
	cross := mat.NewVecDense(n, append([]float64(nil), last[:n]...))
	move := mat.NewVecDense(n, l.along)
	if err := l.weights.SolveVecTo(move, cross); err != nil {
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
	own := l.conditional(d)
	g := d.Gradient[n]
	for j, a := range l.along {
		g += a * d.Gradient[j]
	}
	u := gvi.Clamp(g/l.left, largestLog)
	step = append(step, own...)
	for j := range step {
		step[j] += l.along[j] * u
	}
	size = math.Abs(u) / l.sd
	var covariance mat.SymDense
	if err := l.weights.InverseTo(&covariance); err != nil {
		return append(step, u), math.Inf(1)
	}
	for j, x := range step {
		size = max(size, math.Abs(x)/math.Sqrt(covariance.At(j, j)))
	}
	return append(step, u), size
}

// conditional returns Newton's step of the weights alone.
func (l *local) conditional(d *Derivatives) []float64 {
	n := len(d.Gradient) - 1
	step := mat.NewVecDense(n, nil)
	// An error says that the matrix is badly conditioned, which factorise has refused.
	_ = l.weights.SolveVecTo(step, mat.NewVecDense(n, append([]float64(nil), d.Gradient[:n]...)))
	return step.RawVector().Data
}

// symmetric reads the first n rows of a lower triangle.
func symmetric(lower []float64, n int) *mat.SymDense {
	s := mat.NewSymDense(n, nil)
	at := 0
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, lower[at])
			at++
		}
	}
	return s
}
