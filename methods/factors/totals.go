package factors

import (
	"fmt"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/federated"
	"parley/methods/factors/options"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/study"
)

var _ method.Additive = Method{}

// What the sums of a study with a secure sum are called, as sites' people read it.
const (
	sumMoments = "number of values of each feature, their sum, and the sum of their squares"
	sumScatter = "for each set of views that the plan names, and for all: number of subjects, sums of each feature and of products of any two of them, and how many values were filled in; the log-likelihood"
)

// Totals implements [method.Additive].
func (Method) Totals(p *study.Plan, kind string) ([]privacy.Total, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	switch kind {
	case options.TaskScale:
		return []privacy.Total{{Name: sumMoments, Numbers: 3 * set.Layout.Features(), Grid: masks.Raw}}, nil
	case options.TaskFit:
		return []privacy.Total{{Name: sumScatter, Numbers: federated.SumNumbers(set), Grid: masks.Standardised}}, nil
	}
	return nil, fmt.Errorf("no sums answer task %q", kind)
}

// Numbers implements [method.Additive].
func (Method) Numbers(p *study.Plan, t method.Task, body []byte) (map[string][]float64, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	if t.Kind == options.TaskScale {
		var sums options.FeatureSums
		err := wire.Unmarshal(body, &sums)
		return map[string][]float64{sumMoments: sums.Raw()}, err
	}
	var answer federated.FitAnswer
	if err := wire.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	numbers, err := answer.Raw(set)
	return map[string][]float64{sumScatter: numbers}, err
}

// Answer implements [method.Additive].
func (Method) Answer(p *study.Plan, kind string, sums map[string][]float64) ([]byte, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	if kind == options.TaskScale {
		return wire.Marshal(options.FeatureSumsOf(sums[sumMoments]))
	}
	answer, err := federated.AnswerOf(set, sums[sumScatter])
	if err != nil {
		return nil, err
	}
	return wire.Marshal(answer)
}
