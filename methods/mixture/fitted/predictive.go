package fitted

import (
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// Evaluator is what evaluation asks of a study's model. To a mixture a new site is as any other.
func Evaluator(s *Setup, files []method.File) (evaluate.Model, error) {
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := LoadModel(data)
	if err != nil {
		return nil, err
	}
	of, err := m.Predictive()
	if err != nil {
		return nil, err
	}
	return NewPredictive(of, s), nil
}

// predictive is a sample of mixtures as evaluation sees it.
type predictive struct {
	*gmm.Predictive
	widths      []int
	mean, noise []float64
}

// NewPredictive makes one.
func NewPredictive(of *gmm.Predictive, s *Setup) evaluate.Model {
	d := len(s.Names)
	return &predictive{of, s.Widths(), make([]float64, d), make([]float64, d)}
}

// Infer implements [evaluate.Model]. The latent variables are the probabilities of all components
// but the last, which the others tell.
func (m *predictive) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return m.Predict(row, dst, nil)
}

// Predict implements [evaluate.Predictive].
func (m *predictive) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	x := observed(row, m.widths)
	says, err := m.Of(x)
	if err != nil {
		return err
	}
	m.Expect(x, m.mean, m.noise)
	dst.Resize(m.Components()-1, m.widths)
	copy(dst.Latent, says.Probability)
	dst.LogLik = says.LogDensity
	j := 0
	for k, d := range m.widths {
		for i := range d {
			dst.Mean[k][i] = m.mean[j]
			if sd != nil && gmm.NotFinite(x[j:j+1]) == 0 {
				sd[k][i] = math.Sqrt(m.noise[j])
			}
			j++
		}
	}
	return nil
}
