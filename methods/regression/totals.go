package regression

import (
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/options"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/study"
)

var _ method.Additive = Method{}

// What the sums of a study with a secure sum are called, as sites' people read it.
var sumNames = map[string]string{
	options.TaskScale:  "number of values of each number, their sum and that of their squares, and how often each level of each category was observed",
	"nested":           "log-likelihood of rows, and without each term of the model that and its derivatives by all weights",
	options.TaskAssess: "how well the model predicts outcomes, and what it leaves of them, in sums over rows",
}

func sumName(kind string) string {
	if name := sumNames[kind]; name != "" {
		return name
	}
	return "number of rows, their log-likelihood, and sums of its first and second derivatives by all weights"
}

// Totals implements [method.Additive].
func (Method) Totals(p *study.Plan, kind string) ([]privacy.Total, error) {
	numbers, err := numbersOf(p, kind, nil)
	if err != nil {
		return nil, err
	}
	grid := masks.Standardised
	if kind == options.TaskScale {
		grid = masks.Raw
	}
	return []privacy.Total{{Name: sumName(kind), Numbers: len(numbers), Grid: grid}}, nil
}

// numbersOf are the numbers of an answer in their order; 0 each without one.
func numbersOf(p *study.Plan, kind string, body []byte) ([]float64, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	form, err := exact.Form(s, kind)
	if err != nil {
		return nil, err
	}
	answer, err := exact.Form(s, kind)
	if err == nil && body != nil {
		err = wire.Unmarshal(body, answer)
	}
	if err != nil {
		return nil, err
	}
	if m, ok := answer.(*options.ScaleAnswer); ok {
		m.Sum()
	}
	return method.Flatten(form, answer)
}

// Numbers implements [method.Additive].
func (Method) Numbers(p *study.Plan, t method.Task, body []byte) (map[string][]float64, error) {
	numbers, err := numbersOf(p, t.Kind, body)
	return map[string][]float64{sumName(t.Kind): numbers}, err
}

// Answer implements [method.Additive].
func (Method) Answer(p *study.Plan, kind string, sums map[string][]float64) ([]byte, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	answer, err := exact.Form(s, kind)
	if err == nil {
		err = method.Unflatten(answer, sums[sumName(kind)])
	}
	if err != nil {
		return nil, err
	}
	if m, ok := answer.(*options.ScaleAnswer); ok {
		m.Centre()
	}
	return wire.Marshal(answer)
}
