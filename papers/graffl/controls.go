package graffl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/papers/graffl/scarce"
	"parley/papers/graffl/suffiae"
	"parley/study"
)

// What any site should be held against before anything is made up for it: regressions on
// the features themselves.
const (
	ridgeAtSite  = "ridge at the site"
	ridgeAllRows = "ridge on all rows"
	pviOverSites = "pvi over all sites"
)

// ridgePenalty is C = 0.01; nothing is tuned on held rows.
const ridgePenalty = 100

// inputLimit is where standardised features end.
const inputLimit = 4

// ridge fits a penalised logistic regression to rows, standardised by themselves, and
// returns the probabilities of the class of held rows. What is missing, NaN, is as the
// centre of its feature.
func ridge(train scarce.Labelled, held [][]float64, penalty float64) ([]float64, error) {
	in, err := suffiae.FitInputs(train.Rows, inputLimit)
	if err != nil {
		return nil, err
	}
	own, err := standardised(in, train.Rows)
	if err != nil {
		return nil, err
	}
	c, err := scarce.FitLinear(own, train.Labels, penalty)
	if err != nil {
		return nil, err
	}
	rows, err := standardised(in, held)
	if err != nil {
		return nil, err
	}
	return c.Probability(rows)
}

// standardised brings rows to the units of an encoder's inputs; what is missing becomes 0.
func standardised(in *suffiae.Inputs, rows [][]float64) (out [][]float64, err error) {
	for _, row := range rows {
		x, err := in.Apply(row)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// Regression is a fit of pvi.
type Regression struct {
	forecaster *fitted.Forecaster
	class      int // its level of the outcome
}

// fitPVI fits pvi with its defaults to the sites' rows. plan has what a plan must say
// beside its name and method: seed, sites, views, subjects, privacy. levels are those of the
// outcome, of which the class is one.
func fitPVI(ctx context.Context, plan map[string]any, outcome string, levels []string, class string, data map[string]dataset.Source) (*Regression, error) {
	plan = maps.Clone(plan)
	plan["parley"], plan["name"] = study.Version, "control"
	plan["method"] = map[string]any{"name": regression.Method{}.Name(), "outcome": map[string]any{"column": outcome, "levels": levels}}
	text, err := json.Marshal(plan) // JSON is YAML
	if err != nil {
		return nil, err
	}
	config := local.Config{Methods: method.Registry{regression.Method{}}, Data: data}
	if config.Plan, err = study.Parse("control", text, config.Methods); err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	file, err := method.ModelJSON(out.Result.Files)
	if err != nil {
		return nil, err
	}
	model, err := fitted.LoadModel(file)
	if err != nil {
		return nil, err
	}
	f, err := model.Forecaster(config.Plan.Schema())
	return &Regression{f, slices.Index(levels, class)}, err
}

// Probability is that of the class.
func (r *Regression) Probability(row *dataset.Row) (float64, error) {
	var p evaluate.Posterior
	if err := r.forecaster.Infer(row, &p); err != nil {
		return 0, err
	}
	return math.Exp(p.Outcome.LogP[r.class]), nil
}

// overSites fits pvi to the rows of all sites, and returns probabilities of held ones.
func overSites(ctx context.Context, sites []scarce.Labelled, held [][]float64, seed uint64) ([]float64, error) {
	view, features := dataset.View{Name: "x"}, []map[string]any{}
	for j := range held[0] {
		name := fmt.Sprintf("x%d", j+1)
		view.Columns = append(view.Columns, dataset.Column{Name: name})
		features = append(features, map[string]any{"name": name})
	}
	schema := dataset.Schema{Views: []dataset.View{view}, Subject: []dataset.Column{{Name: "class"}}}
	levels := []string{"no", "yes"}
	data, names := map[string]dataset.Source{}, []string{}
	for k, site := range sites {
		var rows []dataset.Row
		for i, x := range site.Rows {
			level := levels[0]
			if site.Labels[i] {
				level = levels[1]
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{x}, Subject: []string{level}})
		}
		names = append(names, fmt.Sprintf("site%d", k+1))
		var err error
		if data[names[k]], err = dataset.NewTable(schema, rows); err != nil {
			return nil, err
		}
	}
	m, err := fitPVI(ctx, map[string]any{"seed": seed, "sites": names, "subjects": []string{"class"}, "views": []map[string]any{{"name": view.Name, "features": features}},
		"privacy": map[string]any{"protection": study.ProtectionNone}}, "class", levels, levels[1], data)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(held))
	for i, x := range held {
		if out[i], err = m.Probability(&dataset.Row{Views: [][]float64{x}}); err != nil {
			return nil, err
		}
	}
	return out, nil
}
