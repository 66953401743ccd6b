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
	at := &PCA{features: m.features, latent: m.latent, mean: slices.Clone(m.mean), centred: make([]float64, len(m.mean))}
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
