package sketch

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/linalg"
	"parley/methods/mixture/gmm"
)

// precision is a Gaussian likelihood of the observed means, whose covariance does not
// depend on the parameter.
type precision struct {
	n        int
	observed []float64
	matrix   []float64 // inverse of the covariance, lower triangle by rows
}

// newPrecision inverts a covariance, which it overwrites.
func newPrecision(observed, cov []float64) (*precision, error) {
	n := len(observed)
	if _, ok := gmm.NewBlocked(n).Cholesky(cov); !ok {
		return nil, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	p := &precision{n, observed, make([]float64, n*n)}
	inverse := make([]float64, n*n) // of the factor, whose rows follow from those before
	for i := range n {
		row := inverse[i*n:][:i+1]
		row[i] = 1
		for j, l := range cov[i*n:][:i] {
			for c, v := range inverse[j*n:][:j+1] {
				row[c] -= l * v
			}
		}
		for c := range row {
			row[c] /= cov[i*n+i]
		}
		for r, a := range row { // a row's part in the product with its transpose
			for c, b := range row[:r+1] {
				p.matrix[r*n+c] += a * b
			}
		}
	}
	return p, nil
}

// geometricPath returns the likelihood p^(1−β) q^β, in a form that is quick to evaluate. A
// nil p is constant.
func geometricPath(p, q *precision, beta float64) (*form, error) {
	n := q.n
	at := func(i, j int) float64 {
		k := max(i, j)*n + min(i, j)
		if p == nil {
			return beta * q.matrix[k]
		}
		return (1-beta)*p.matrix[k] + beta*q.matrix[k]
	}
	f := &form{observed: q.observed, order: make([]int, n)}
	for i := range f.order {
		f.order[i] = i
	}
	slices.SortStableFunc(f.order, func(i, j int) int { return cmp.Compare(at(i, i), at(j, j)) })
	l := make([]float64, n*n)
	for i, r := range f.order {
		for j, s := range f.order[:i+1] {
			l[i*n+j] = at(r, s)
		}
	}
	if _, ok := gmm.NewBlocked(n).Cholesky(l); !ok {
		return nil, fmt.Errorf("the precision of %d landmark means is singular", n)
	}
	// R's transpose, with an end for every band of rows.
	f.rows = make([]float64, n*n)
	for j := range n {
		for i := j; i < n; i++ {
			f.rows[j*n+i] = l[i*n+j]
		}
	}
	for first := 0; first < n; first += band {
		last := first
		for j := first; j < min(first+band, n); j++ {
			for i := n - 1; i >= max(j, last); i-- {
				if math.Abs(l[i*n+j]) >= negligibleEntry*l[i*n+i] {
					last = i
					break
				}
			}
		}
		f.ends = append(f.ends, last+1)
	}
	return f, nil
}

const (
	// negligibleEntry is where an entry of a factor, over the diagonal's, changes nothing.
	negligibleEntry = 1e-3
	// band is so many rows of a factor that are multiplied together.
	band = 12
	// chainCount is how many particles are.
	chainCount = 8
)

// form is a quadratic form in the difference of observed and expected means.
type form struct {
	observed []float64
	// Landmarks that rows come near are first: those far from all rows depend on no
	// other, so that rows of the factor end early.
	order []int
	rows  []float64 // the transposed Cholesky factor Rᵀ of the precision
	ends  []int     // of each band of rows
}

// fill writes column i of a matrix of differences, which has a row for each landmark.
func (f *form) fill(columns []float64, i int, mean []float64) {
	for at, r := range f.order {
		columns[at*chainCount+i] = f.observed[r] - mean[r]
	}
}

// logs returns −½ |Rᵀ(y − mean)|² of each column, with memory for the products.
func (f *form) logs(columns, room []float64) (s [chainCount]float64) {
	n := len(f.order)
	clear(room)
	for b, end := range f.ends {
		first := b * band
		linalg.MulAdd(room[first*chainCount:], f.rows[first*n+first:], n, 1, columns[first*chainCount:], min(band, n-first), end-first, chainCount)
	}
	for r := range n {
		for i, v := range room[r*chainCount:][:chainCount] {
			s[i] -= v * v / 2
		}
	}
	return s
}

// Misfit returns how far the observed landmark means are from those of a parameter, in
// standard deviations: (y − E φ)ᵀ C⁻¹ (y − E φ) with C the covariance of
// [Landmarks.LogLikelihood]. Under the parameter it is χ² with as many degrees of
// freedom as there are landmarks: the predictive check of what was released.
func (l Landmarks) Misfit(o Observation, m gmm.Mixture) (chiSq, tail float64, err error) {
	if err := o.Check(l.Len()); err != nil {
		return 0, 0, err
	}
	mean, cov, err := l.Moments(m)
	if err != nil {
		return 0, 0, err
	}
	spread(regularised(o), mean, cov)
	n := len(mean)
	if _, ok := gmm.Cholesky(cov, n); !ok {
		return 0, 0, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	off := make([]float64, n)
	for r := range off {
		off[r] = o.Mean[r] - mean[r]
	}
	gmm.Forward(cov, n, off)
	chiSq = gmm.Squares(off)
	return chiSq, distuv.ChiSquared{K: float64(n)}.Survival(chiSq), nil
}

// regularised is an observation with a variance of ¼/n² more on every mean: the means of
// landmarks that hardly a row comes near are far from Gaussian. The posterior uses it, too.
func regularised(o Observation) Observation {
	o.NoiseVar += 1 / (4 * o.Rows * o.Rows)
	return o
}
