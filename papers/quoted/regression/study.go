package regression

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/privacy/account"
	"parley/study"
)

// study runs a plan for a problem through the engine, in memory, with these options of the
// method; no total is no privacy.
func (p *problem) study(ctx context.Context, options map[string]any, data map[string]dataset.Source, total *account.Budget) (*fitted.Model, *local.Outcome, error) {
	with := map[string]any{"name": regression.Method{}.Name(), "constants": p.Constants}
	maps.Copy(with, options)
	protection := map[string]any{"protection": study.ProtectionNone}
	if total != nil {
		protection = map[string]any{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove, "total": total}
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{"parley": study.Version, "name": "case", "sites": slices.Sorted(maps.Keys(data)), "views": p.Views, "subjects": p.Subjects,
		"method": with, "privacy": protection})
	if err != nil {
		return nil, nil, err
	}
	methods := method.Registry{regression.Method{}, dppvi.Method{}}
	plan, err := study.Parse("plan", text, methods)
	if err != nil {
		return nil, nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: data})
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
