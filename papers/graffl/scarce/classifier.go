// Package scarce asks whether synthetic rows help a site with few rows of a class: [Keep] tries a classifier with
// them beside the same without, and with the site's own rows of the class drawn again, which is what the site
// can do alone.
package scarce

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/papers/internal/logistic"
)

// Labelled is rows with a binary label each. True is the class of which there may be
// few.
type Labelled struct {
	Rows   [][]float64
	Labels []bool
}

// Count returns how many labels are true, and how many are false.
func (l Labelled) Count() (scarce, other int) {
	for _, y := range l.Labels {
		if y {
			scarce++
		}
	}
	return scarce, len(l.Labels) - scarce
}

// With returns the rows with more of the class.
func (l Labelled) With(extra [][]float64) Labelled {
	return Labelled{slices.Concat(l.Rows, extra), slices.Concat(l.Labels, slices.Repeat([]bool{true}, len(extra)))}
}

// Scarce returns the rows of the class.
func (l Labelled) Scarce() [][]float64 { return l.pick(func(i int) bool { return l.Labels[i] }).Rows }

// pick returns the rows for which a condition on their number holds.
func (l Labelled) pick(want func(i int) bool) (out Labelled) {
	for i, row := range l.Rows {
		if want(i) {
			out.Rows, out.Labels = append(out.Rows, row), append(out.Labels, l.Labels[i])
		}
	}
	return out
}

// LinearClassifier is P(y = 1 | x) = σ(w·x + b).
type LinearClassifier struct {
	Weights   []float64
	Intercept float64
}

// Penalty is that of the classifiers of all arms: see [FitLinear]. It is what other
// programs have by default, C = 1.
const Penalty = 1.0

// FitLinear fits a logistic regression by penalised maximum likelihood: it
// maximises Σ ln P(yᵢ | xᵢ) − ½ penalty ‖w‖², where the intercept is free, by
// Newton's method with halved steps. A penalty above 0 makes the optimum unique and finite
// even where a line separates the classes; 1/penalty is what other programs call C.
//
// Both labels must occur. Rows of several lengths, entries that are not finite, and
// no convergence in 100 steps are errors.
func FitLinear(rows [][]float64, labels []bool, penalty float64) (*LinearClassifier, error) {
	if len(rows) == 0 || len(rows) != len(labels) || !slices.Contains(labels, true) || !slices.Contains(labels, false) {
		return nil, fmt.Errorf("logistic regression: %d rows with %d labels: want as many, and both classes",
			len(rows), len(labels))
	}
	if !(penalty > 0) || math.IsInf(penalty, 0) {
		return nil, fmt.Errorf("logistic regression: penalty %v: want a number above 0", penalty)
	}
	d := len(rows[0])
	x := mat.NewDense(len(rows), d+1, nil) // a last column of ones
	for i, row := range rows {
		if len(row) != d {
			return nil, fmt.Errorf("logistic regression: row %d has %d columns, the first %d", i+1, len(row), d)
		}
		for j, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("logistic regression: row %d, column %d is %v", i+1, j+1, v)
			}
			x.Set(i, j, v)
		}
		x.Set(i, d, 1)
	}
	f := &logisticFit{x: x, labels: labels, penalty: penalty}
	w, err := f.maximise()
	if err != nil {
		return nil, fmt.Errorf("logistic regression: %w", err)
	}
	return &LinearClassifier{Weights: w[:d:d], Intercept: w[d]}, nil
}

// logisticFit is a penalised log-likelihood by weights, the last one the intercept.
type logisticFit struct {
	x       *mat.Dense
	labels  []bool
	penalty float64
}

// value returns what is maximised.
func (f *logisticFit) value(w []float64) float64 {
	v := 0.0
	for i, y := range f.labels {
		s := inner(f.x.RawRowView(i), w)
		if !y {
			s = -s
		}
		v += logistic.LogSigma(s)
	}
	for _, c := range w[:len(w)-1] {
		v -= f.penalty / 2 * c * c
	}
	return v
}

func (f *logisticFit) maximise() ([]float64, error) {
	n, p := f.x.Dims()
	w, trial := make([]float64, p), make([]float64, p)
	gradient, step := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
	weighted := mat.NewDense(n, p, nil)
	hessian, chol := mat.NewSymDense(p, nil), mat.Cholesky{}
	value := f.value(w)
	for range 100 {
		gradient.Zero()
		for i, y := range f.labels {
			row, to := f.x.RawRowView(i), weighted.RawRowView(i)
			s := logistic.Sigma(inner(row, w))
			e, root := -s, math.Sqrt(s*(1-s))
			if y {
				e++
			}
			for j, v := range row {
				gradient.SetVec(j, gradient.AtVec(j)+e*v)
				to[j] = root * v
			}
		}
		hessian.SymOuterK(1, weighted.T())
		for j := range p {
			ridge := 1e-12 // keeps the intercept's pivot positive when all is separated
			if j < p-1 {
				ridge = f.penalty
				gradient.SetVec(j, gradient.AtVec(j)-f.penalty*w[j])
			}
			hessian.SetSym(j, j, hessian.At(j, j)+ridge)
		}
		if !chol.Factorize(hessian) {
			return nil, errors.New("the Hessian is not negative definite")
		}
		if err := chol.SolveVecTo(step, gradient); err != nil && !errors.As(err, new(mat.Condition)) {
			return nil, err
		}
		gain := mat.Dot(gradient, step) // twice what the quadratic promises
		if gain <= 1e-16*(1+math.Abs(value)) {
			return w, nil
		}
		length, risen := 1.0, false
		for range 40 {
			for j := range trial {
				trial[j] = w[j] + length*step.AtVec(j)
			}
			if v := f.value(trial); v > value {
				value, risen = v, true
				break
			}
			length /= 2
		}
		if !risen { // rounding hides what is left to gain
			return w, nil
		}
		w, trial = trial, w
	}
	return nil, errors.New("no convergence in 100 steps")
}

// inner is Σ aᵢbᵢ, added in order.
func inner(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// Probability returns P(y = 1 | x) of each row. Rows of another length are errors.
func (c *LinearClassifier) Probability(rows [][]float64) ([]float64, error) {
	out := make([]float64, len(rows))
	for i, row := range rows {
		if len(row) != len(c.Weights) {
			return nil, fmt.Errorf("classifying row %d: %d columns, want %d", i+1, len(row), len(c.Weights))
		}
		out[i] = logistic.Sigma(c.Intercept + inner(row, c.Weights))
	}
	return out, nil
}
