package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/factors/ppca"
)

// tolFactors is wide, because expectation maximisation creeps where noise is by feature.
var tolFactors = vectors.Tolerance{Rel: 1e-4, Floor: 0.1}

type factorAnalysisJSON struct {
	Schema     string      `json:"schema"`
	Subjects   float64     `json:"subjects"`
	Covariance [][]float64 `json:"covariance"` // divisor Subjects
	Fits       []struct {
		Q int `json:"q"`
		optimumJSON
	} `json:"fits"`
}

// verify fits one view with noise by feature, which is maximum-likelihood
// factor analysis.
func (f *factorAnalysisJSON) verify(list *vectors.List) error {
	d := len(f.Covariance)
	l, err := ppca.NewLayout([]int{d}, ppca.NoisePerFeature)
	if err != nil {
		return err
	}
	b := ppca.Block{N: f.Subjects, Mean: make([]float64, d)}
	for i, row := range f.Covariance {
		if len(row) != d {
			return fmt.Errorf("covariance: row %d has %d entries, want %d", i, len(row), d)
		}
		b.Features = append(b.Features, i)
		for _, x := range row {
			b.Scatter = append(b.Scatter, f.Subjects*x)
		}
	}
	for _, want := range f.Fits {
		name := fmt.Sprintf("q=%d", want.Q)
		fit, err := ppca.Fit(l, []ppca.Block{b}, want.Q, nil, ppca.FitOptions{Tol: 1e-13, MaxIter: 20000})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		want.compare(list, name, l, fit, tolFactors)
	}
	return nil
}
