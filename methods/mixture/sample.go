package mixture

import (
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// sample is a posterior as it is kept: one vector of unconstrained coordinates for
// each draw would lose bits, so that all numbers of all mixtures follow each other.
type sample struct {
	Weights    wire.Vector `cbor:"weights"`
	Numbers    wire.Vector `cbor:"numbers"` // π, μ, Σ of each draw
	Stages     int         `cbor:"stages"`
	Acceptance float64     `cbor:"acceptance"`
	Rivals     wire.Vector `cbor:"rivals,omitempty"`
	// Size is the effective sample size that the sampler found, where the weights do not tell it: those
	// of draws that were drawn again by their weights are even.
	Size float64 `cbor:"size,omitempty"`
}

// packSample packs a posterior.
func packSample(p *gmm.Posterior) *sample {
	s := &sample{Weights: p.Weights, Stages: p.Stages, Acceptance: p.Acceptance, Rivals: p.Rivals}
	if p.Size != gmm.EffectiveSize(p.Weights) {
		s.Size = p.Size
	}
	for _, m := range p.Draws {
		s.Numbers = append(append(append(s.Numbers, m.Weights...), m.Means...), m.Covs...)
	}
	return s
}

// Posterior unpacks what [packSample] packed, and checks it: a state may have come
// from anywhere.
func (s *sample) Posterior(k, d int) (*gmm.Posterior, error) {
	each := k + k*d + k*d*d
	if len(s.Weights) < 1 || len(s.Weights) > MaxDraws || len(s.Numbers) != each*len(s.Weights) {
		return nil, fmt.Errorf("a sample of %d weights and %d numbers: want %d numbers for each of 1 to %d draws", len(s.Weights), len(s.Numbers), each, MaxDraws)
	}
	if s.Stages < 0 || !(s.Acceptance >= 0 && s.Acceptance <= 1) {
		return nil, fmt.Errorf("a sample made in %d stages with an acceptance of %v", s.Stages, s.Acceptance)
	}
	if !(s.Size >= 0 && s.Size <= float64(len(s.Weights))*(1+1e-9)) {
		return nil, fmt.Errorf("a sample of %d draws has an effective size of %v", len(s.Weights), s.Size)
	}
	p := &gmm.Posterior{Weights: s.Weights, Stages: s.Stages, Acceptance: s.Acceptance, Rivals: s.Rivals, Size: s.Size}
	sum := 0.0
	for i, w := range s.Weights {
		if !(w >= 0) {
			return nil, fmt.Errorf("draw %d has weight %v", i+1, w)
		}
		sum += w
		v := s.Numbers[i*each:][:each]
		m := gmm.Mixture{Dim: d, Weights: v[:k:k], Means: v[k : k+k*d : k+k*d], Covs: v[k+k*d:]}
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("draw %d: %w", i+1, err)
		}
		p.Draws = append(p.Draws, m)
	}
	if math.Abs(sum-1) > 1e-6 {
		return nil, fmt.Errorf("the weights of a sample sum to %v, not 1", sum)
	}
	if p.Size == 0 {
		p.Size = gmm.EffectiveSize(p.Weights)
	}
	return p, nil
}

var _ evaluate.Predictive = (*predictive)(nil)

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
	return newPredictive(of, s), nil
}

// predictive is a sample of mixtures as evaluation sees it.
type predictive struct {
	*gmm.Predictive
	widths      []int
	mean, noise []float64
}

// newPredictive makes one.
func newPredictive(of *gmm.Predictive, s *Setup) evaluate.Model {
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
