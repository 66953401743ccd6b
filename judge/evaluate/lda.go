package evaluate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// LDA is Fisher's linear discriminant analysis for any number of classes, with
// one covariance for all of them and priors from the training data (Hastie,
// Tibshirani, Friedman: The Elements of Statistical Learning, section 4.3):
//
//	δ_k(x) = xᵀΣ⁻¹μ_k − ½ μ_kᵀΣ⁻¹μ_k + log π_k
type LDA struct {
	classes   []string
	direction [][]float64 // Σ⁻¹μ_k
	offset    []float64   // −½ μ_kᵀΣ⁻¹μ_k + log π_k
}

// FitLDA fits the analysis to points in latent space. Σ is the pooled
// within-class scatter divided by n − K. Only if it cannot be factorised, or
// with a condition number above 10¹², is the smallest sufficient of 10⁻⁸,
// 10⁻⁶, … times the mean total variance added to its diagonal. In a latent
// space of no dimensions the analysis always names the most frequent class. It
// is an error if there are fewer than two classes or no more points than classes.
func FitLDA(train Scores) (*LDA, error) {
	n := len(train.Latent)
	if n == 0 || n != len(train.Labels) {
		return nil, fmt.Errorf("linear discriminant analysis: %d points, %d labels", n, len(train.Labels))
	}
	classes := slices.Compact(slices.Sorted(slices.Values(train.Labels)))
	if len(classes) < 2 || n <= len(classes) {
		return nil, fmt.Errorf("linear discriminant analysis: %d points in %d classes; needs two classes, and more points than classes", n, len(classes))
	}
	q := len(train.Latent[0])
	count := make([]float64, len(classes))
	class := make([]int, n)
	for i, label := range train.Labels {
		class[i], _ = slices.BinarySearch(classes, label)
		count[class[i]]++
	}
	l := &LDA{classes: classes}
	for k := range classes {
		l.direction = append(l.direction, make([]float64, q))
		l.offset = append(l.offset, math.Log(count[k]/float64(n)))
	}
	if q == 0 {
		return l, nil
	}
	means := mat.NewDense(len(classes), q, nil)
	grand := make([]float64, q)
	for i, x := range train.Latent {
		if len(x) != q {
			return nil, fmt.Errorf("linear discriminant analysis: point %d has %d dimensions, not %d", i+1, len(x), q)
		}
		floats.Add(means.RawRowView(class[i]), x)
		floats.Add(grand, x)
	}
	for k := range classes {
		floats.Scale(1/count[k], means.RawRowView(k))
	}
	floats.Scale(1/float64(n), grand)

	within := mat.NewSymDense(q, nil)
	total := 0.0
	d := make([]float64, q)
	for i, x := range train.Latent {
		floats.SubTo(d, x, grand)
		total += floats.Dot(d, d)
		floats.SubTo(d, x, means.RawRowView(class[i]))
		within.SymRankOne(within, 1, mat.NewVecDense(q, d))
	}
	within.ScaleSym(1/float64(n-len(classes)), within)
	chol, err := factorise(within, total/float64(n*q))
	if err != nil {
		return nil, err
	}
	for k := range classes {
		mu := means.RowView(k)
		a := mat.NewVecDense(q, l.direction[k])
		if err := chol.SolveVecTo(a, mu); err != nil {
			return nil, fmt.Errorf("linear discriminant analysis: %w", err)
		}
		l.offset[k] -= mat.Dot(mu, a) / 2
	}
	return l, nil
}

func factorise(s *mat.SymDense, variance float64) (*mat.Cholesky, error) {
	if variance == 0 {
		variance = 1 // all points are one: any Σ gives the priors
	}
	const limit = 1e12
	var chol mat.Cholesky
	if chol.Factorize(s) && chol.Cond() <= limit {
		return &chol, nil
	}
	for ridge := 1e-8; ridge <= 1; ridge *= 100 {
		r := mat.NewSymDense(s.SymmetricDim(), nil)
		r.CopySym(s)
		for i := range s.SymmetricDim() {
			r.SetSym(i, i, s.At(i, i)+ridge*variance)
		}
		if chol.Factorize(r) && chol.Cond() <= limit {
			return &chol, nil
		}
	}
	return nil, fmt.Errorf("linear discriminant analysis: the scores are not finite")
}

// Classify returns the most probable class of a point; of classes that are
// equally probable, the first in ascending order.
func (l *LDA) Classify(x []float64) string {
	best, at := math.Inf(-1), 0
	for k := range l.classes {
		if d := floats.Dot(x, l.direction[k]) + l.offset[k]; d > best {
			best, at = d, k
		}
	}
	return l.classes[at]
}

// Accuracy is the share of points that are classified as they are labelled;
// NaN if there are none.
func (l *LDA) Accuracy(test Scores) float64 {
	right := 0
	for i, x := range test.Latent {
		if l.Classify(x) == test.Labels[i] {
			right++
		}
	}
	return float64(right) / float64(len(test.Latent))
}
