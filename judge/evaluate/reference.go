package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/dataset"
)

// PCA is principal component analysis with the mean in place of what was not
// observed: the trivial rival of every method that handles missing views. With
// no components it predicts the mean. It has no density.
type PCA struct {
	features   []int // of each view
	mean       []float64
	components *mat.Dense // features × q, orthonormal columns; nil if q = 0
	centred    []float64  // of the row in hand
	latent     []float64
}

// FitMean returns the model that always predicts the pooled mean of the
// observed values, as a [PCA] without components.
func FitMean(ctx context.Context, sources ...dataset.Source) (*PCA, error) {
	return FitPCA(ctx, 0, sources...)
}

// At returns the mean of some rows, in place of that of all for every feature that one of them has.
func (m *PCA) At(ctx context.Context, rows dataset.Source) (*PCA, error) {
	at := &PCA{features: m.features, latent: m.latent, mean: slices.Clone(m.mean),
		centred: make([]float64, len(m.mean))}
	count := make([]float64, len(m.mean))
	return at, pooled(ctx, []dataset.Source{rows}, func(row *dataset.Row) {
		i := 0
		for k, x := range row.Views {
			for j, v := range x {
				if !math.IsNaN(v) {
					if count[i+j]++; count[i+j] == 1 {
						at.mean[i+j] = 0
					}
					at.mean[i+j] += (v - at.mean[i+j]) / count[i+j]
				}
			}
			i += m.features[k]
		}
	})
}

// FitPCA returns the first q principal components of the pooled rows, in two
// passes: means of the observed values, then the scatter of the rows with means
// in the gaps. Of every component the entry that is largest in size, or the
// first of several, is positive. It is an error if q is negative or above the
// number of features or if nobody observed a feature.
//
// The model is not safe for concurrent use.
func FitPCA(ctx context.Context, q int, sources ...dataset.Source) (*PCA, error) {
	schema, err := commonSchema(sources)
	if err != nil {
		return nil, fmt.Errorf("fitting PCA: %w", err)
	}
	m := &PCA{}
	d := 0
	for _, v := range schema.Views {
		m.features = append(m.features, len(v.Columns))
		d += len(v.Columns)
	}
	if q < 0 || q > d {
		return nil, fmt.Errorf("fitting PCA: %d components of %d features", q, d)
	}
	m.latent = make([]float64, q)
	m.mean, m.centred = make([]float64, d), make([]float64, d)
	count := make([]float64, d)
	err = pooled(ctx, sources, func(row *dataset.Row) {
		at := 0
		for k, x := range row.Views {
			for j, v := range x {
				if !math.IsNaN(v) {
					// A running mean keeps its precision far from zero.
					count[at+j]++
					m.mean[at+j] += (v - m.mean[at+j]) / count[at+j]
				}
			}
			at += m.features[k]
		}
	})
	if err != nil {
		return nil, fmt.Errorf("fitting PCA: %w", err)
	}
	at := 0
	for _, v := range schema.Views {
		for _, c := range v.Columns {
			if count[at] == 0 {
				return nil, fmt.Errorf("fitting PCA: nobody observed feature %s of view %s", c.Name, v.Name)
			}
			at++
		}
	}
	if q == 0 {
		return m, nil
	}
	scatter := mat.NewSymDense(d, nil)
	err = pooled(ctx, sources, func(row *dataset.Row) {
		m.centre(row)
		scatter.SymRankOne(scatter, 1, mat.NewVecDense(d, m.centred))
	})
	if err != nil {
		return nil, fmt.Errorf("fitting PCA: %w", err)
	}
	var eig mat.EigenSym
	if !eig.Factorize(scatter, true) {
		return nil, fmt.Errorf("fitting PCA: the eigenvalues of the scatter matrix did not converge")
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors) // ascending eigenvalues
	m.components = mat.NewDense(d, q, nil)
	for i := range q {
		v := mat.Col(nil, d-1-i, &vectors)
		if v[largest(v)] < 0 {
			floats.Scale(-1, v)
		}
		m.components.SetCol(i, v)
	}
	return m, nil
}

// largest returns the index of the first entry that is largest in size.
func largest(v []float64) int {
	at := 0
	for i := range v {
		if math.Abs(v[i]) > math.Abs(v[at]) {
			at = i
		}
	}
	return at
}

func pooled(ctx context.Context, sources []dataset.Source, do func(*dataset.Row)) error {
	for _, src := range sources {
		for row, err := range src.Rows(ctx) {
			if err != nil {
				return err
			}
			do(row)
		}
	}
	return nil
}

// centre writes the row's deviations from the mean, 0 in the gaps.
func (m *PCA) centre(row *dataset.Row) {
	at := 0
	for k, d := range m.features {
		for j := range d {
			m.centred[at] = 0
			if x := row.Views[k]; x != nil && !math.IsNaN(x[j]) {
				m.centred[at] = x[j] - m.mean[at]
			}
			at++
		}
	}
}

// Infer projects the row on the components. LogLik is NaN.
func (m *PCA) Infer(row *dataset.Row, dst *Posterior) error {
	if len(row.Views) != len(m.features) {
		return fmt.Errorf("the row has %d views, the model %d", len(row.Views), len(m.features))
	}
	for k, x := range row.Views {
		if x != nil && len(x) != m.features[k] {
			return fmt.Errorf("view %d of the row has %d features, the model %d", k+1, len(x), m.features[k])
		}
	}
	dst.Resize(len(m.latent), m.features)
	dst.LogLik = math.NaN()
	m.centre(row)
	flat := mat.NewVecDense(len(m.centred), m.centred)
	if m.components != nil {
		z := mat.NewVecDense(len(m.latent), m.latent)
		z.MulVec(m.components.T(), flat)
		flat.MulVec(m.components, z)
		copy(dst.Latent, m.latent)
	} else {
		flat.Zero()
	}
	at := 0
	for k := range dst.Mean {
		floats.AddTo(dst.Mean[k], m.mean[at:at+m.features[k]], m.centred[at:at+m.features[k]])
		at += m.features[k]
	}
	return nil
}

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
		return nil, fmt.Errorf("linear discriminant analysis: %d points in %d classes; needs two classes, and more "+
			"points than classes", n, len(classes))
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
