// Package fitted is a fitted model and what can be done with it: [LoadModel] reads
// model.json, and a [Model] then describes itself, transforms and imputes rows, draws
// subjects, is exported, and is compared with others, as the interfaces of package method ask.
//
// A model is a function of its file alone; rows are read one by one, and only what a
// method's comment says is kept of them. What does not fit together gives an error.
package fitted

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/study"
)

// Evaluator implements [method.Evaluable].
func Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := LoadModel(data)
	if err != nil {
		return nil, err
	}
	all, err := m.Predictive(p.Schema(), Population{New: newSite})
	switch {
	case err != nil:
		return nil, err
	case m.KnowsSites() && !newSite:
		return &sited{all, m, p.Schema()}, nil
	}
	return all, nil
}

// sited is a model of sites that have means or noise of their own.
type sited struct {
	evaluate.Predictive
	model  *Model
	schema dataset.Schema
}

// AtSite implements [evaluate.Sited].
func (m *sited) AtSite(name string) (evaluate.Predictive, error) {
	return m.model.Predictive(m.schema, Population{Site: name})
}

// Predictive answers about rows of a population in the units in which they were measured.
func (m *Model) Predictive(rows dataset.Schema, who Population) (evaluate.Predictive, error) {
	r, err := m.reader(rows, who)
	if err != nil {
		return nil, err
	}
	return newPredictive(r), nil
}

// Central is the maximum-likelihood fit to all rows, less the effects of covariates if there are any, each with what it
// has. The scale is the plan's; where that would give every site its own range, it is the range of all rows.
func Central(ctx context.Context, set ppca.Frame, all dataset.Source, of []options.Covariate,
	effects *options.Effects) (evaluate.Predictive, error) {
	l, scaling := set.Layout, set.Scaling
	if scaling == ppca.ScaleSiteRange {
		scaling = ppca.ScaleMinMax
	}
	sums, err := ppca.Read(ctx, l, all)
	if err != nil {
		return nil, err
	}
	scale, err := ppca.Common(set, scaling, sums)
	if err != nil {
		return nil, err
	}
	fit, err := ppca.FitBest(l, sums.In(scale), set.Factors, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
	if err != nil {
		return nil, fmt.Errorf("fitting one model to all rows: %w", err)
	}
	predictor, err := ppca.NewPredictor(l, &fit.Params)
	if err == nil {
		err = predictor.Sampled(ppca.SamplingTimes(l, fit.Rank, sums.Patterns))
	}
	if err != nil {
		return nil, err
	}
	r, err := newReader(predictor, scale, of, effects, all.Schema())
	if err != nil {
		return nil, err
	}
	return newPredictive(r), nil
}

// predictive answers about rows in the units in which they were measured: observed values are reconstructed as
// [ppca.Posterior.Describe] does, others are expected by the conditional mean.
type predictive struct {
	*reader
	layout    ppca.Layout
	view      []int
	logFactor []float64 // by feature: a density of t is that of the scaled value times its factor
	values    []float64 // scratch
}

func newPredictive(r *reader) *predictive {
	l, _ := r.predictor.Model()
	m := &predictive{reader: r, layout: l, view: l.ViewOf(), values: make([]float64, l.Features())}
	for _, f := range r.scale.Factor {
		m.logFactor = append(m.logFactor, math.Log(f))
	}
	return m
}

// Infer implements [evaluate.Model].
func (m *predictive) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	_, err := m.infer(row, dst)
	return err
}

func (m *predictive) infer(row *dataset.Row, dst *evaluate.Posterior) (*ppca.Posterior, error) {
	post, t, _, err := m.read(row)
	if err != nil {
		return nil, err
	}
	dst.Resize(m.predictor.Rank(), m.layout.Dims)
	post.Latent(dst.Latent, t)
	dst.LogLik = post.LogLik(t)
	for _, j := range post.Observed {
		dst.LogLik += m.logFactor[j]
	}
	mean := func(i, j int) float64 { return m.own(j, m.values[i]) }
	post.Describe(m.values, t)
	m.put(dst.Mean, post.Observed, mean)
	post.Impute(m.values, t)
	m.put(dst.Mean, post.Missing, mean)
	return post, nil
}

// put writes numbers of some features, the i-th of them j, view by view.
func (m *predictive) put(to [][]float64, features []int, x func(i, j int) float64) {
	for i, j := range features {
		lo, _ := m.layout.View(m.view[j])
		to[m.view[j]][j-lo] = x(i, j)
	}
}

// Predict implements [evaluate.Predictive].
func (m *predictive) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	post, err := m.infer(row, dst)
	if err != nil {
		return err
	}
	post.MissingVar(m.values)
	m.put(sd, post.Missing, func(i, j int) float64 { return math.Sqrt(m.values[i]) / m.scale.Factor[j] })
	return nil
}
