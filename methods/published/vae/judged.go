package vae

import (
	"context"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/study"
)

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{modelFormat} }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return loadModel(data) }

// Method implements [method.Model].
func (m *model) Method() string { return "vae" }

// Evaluator implements judged.Evaluable. To the model a new site is as any other.
func (Method) Evaluator(_ *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := loadModel(data)
	if err != nil {
		return nil, err
	}
	return m.predictive(), nil
}

// Central implements judged.Centraliser: the same autoencoder trained on all rows in one
// place, in one round of as many epochs as all rounds have.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	e, err := s.net.extentOf(ctx, s.dims, rows)
	if err != nil {
		return nil, err
	}
	sc := scaleOf(s.net.features, []*extent{e})
	subjects, err := sc.subjects(ctx, s.dims, rows)
	if err != nil {
		return nil, err
	}
	w, _, err := s.net.fit(ctx, s.options, s.net.start(s.stream("", 0)), subjects, s.Rounds*s.Epochs, s.stream("", 1))
	if err != nil {
		return nil, err
	}
	return newModel(s, &sc, w, nil).predictive(), nil
}

// predictive answers about rows in the units in which they were measured.
type predictive struct {
	*model
	in *inferrer
	x  []float64
}

func (m *model) predictive() *predictive { return &predictive{model: m, in: m.net.inferrer(m.Weights)} }

// Infer implements [evaluate.Model]. There is no density: the bound is none.
func (m *predictive) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return m.Predict(row, dst, nil)
}

// Predict implements [evaluate.Predictive].
func (m *predictive) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	m.x = flatten(m.x, m.dims, row)
	s := m.scale.subject(m.x)
	a := m.in.infer(&s)
	dst.Resize(m.net.latent, m.dims)
	copy(dst.Latent, a.code)
	dst.LogLik = math.NaN()
	j := 0
	for k, d := range m.dims {
		for i := range d {
			mean, off := m.scale.own(j, a)
			dst.Mean[k][i] = mean
			if sd != nil && !s.seen[j] {
				sd[k][i] = off
			}
			j++
		}
	}
	return nil
}
