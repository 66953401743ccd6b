package fitted

import (
	"parley/judge/evaluate"
	"parley/method"
	"parley/study"
)

// Evaluator opens the model of a study for predictions of rows of a plan's schema.
func Evaluator(p *study.Plan, files []method.File) (evaluate.Model, error) {
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := LoadModel(data)
	if err != nil {
		return nil, err
	}
	return m.Forecaster(p.Schema())
}
