package regression

import (
	"context"
	"maps"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/papers/deal"
	"parley/privacy/account"
)

// study runs a plan for a problem through the engine, in memory, with these options of the
// method; an ε of 0 is no privacy.
func (p *problem) study(ctx context.Context, options map[string]any, data map[string]dataset.Source,
	total account.Budget) (*fitted.Model, *local.Outcome, error) {
	with := deal.Keys{"name": regression.Method{}.Name(), "constants": p.Constants}
	maps.Copy(with, options)
	_, out, err := deal.Run(ctx, method.Registry{regression.Method{}, dppvi.Method{}}, deal.Keys{"name": "case",
		"sites": slices.Sorted(maps.Keys(data)), "views": p.Views, "subjects": p.Subjects, "method": with,
		"privacy": deal.Protected(total.Epsilon, total.Delta)}, data)
	if err != nil {
		return nil, nil, err
	}
	m, err := modelOf(out.Result)
	return m, out, err
}

// modelOf reads the model of a study.
func modelOf(r *method.Result) (*fitted.Model, error) {
	data, err := method.ModelJSON(r.Files)
	if err != nil {
		return nil, err
	}
	return fitted.LoadModel(data)
}
