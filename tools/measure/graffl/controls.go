package graffl

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/graffl/augment"
	"parley/methods/graffl/setup"
	"parley/methods/graffl/suffiae"
	"parley/methods/pvi"
	"parley/methods/pvi/use"
	"parley/study"
)

// What any site should be held against before anything is made up for it: regressions on the
// features themselves, judged on the same held rows as the arms of the study.
const (
	controlRidge augment.Arm = "ridge at the site"
	controlAll   augment.Arm = "ridge on all rows"
	controlPVI   augment.Arm = "pvi over all sites"
)

var scarceControls = []augment.Arm{controlRidge, controlPVI, controlAll}

// ridgePenalty is C = 0.01, as in the table of package applied; nothing is tuned on held rows.
const ridgePenalty = 100

// controls are AUCs by site and control.
func controls(ctx context.Context, p *study.Plan, data map[string]dataset.Source) (map[string]map[augment.Arm]float64, error) {
	s, err := setup.New(p)
	if err != nil {
		return nil, err
	}
	own, held := map[string]table{}, map[string]table{}
	learned := map[string]dataset.Source{}
	var all table
	for _, site := range p.Sites {
		var keep []dataset.Row
		for row, err := range data[site].Rows(ctx) {
			if err != nil {
				return nil, err
			}
			scarce, known := s.Known(row)
			if !known {
				continue
			}
			var x []float64
			for _, v := range row.Views {
				x = append(x, v...)
			}
			to := own
			if s.Held(row.ID) {
				to = held
			} else {
				r := dataset.Row{ID: row.ID, Subject: slices.Clone(row.Subject)}
				for _, v := range row.Views {
					r.Views = append(r.Views, slices.Clone(v))
				}
				keep = append(keep, r)
				all.rows, all.labels = append(all.rows, x), append(all.labels, scarce)
			}
			t := to[site]
			t.rows, t.labels = append(t.rows, x), append(t.labels, scarce)
			to[site] = t
		}
		if learned[site], err = dataset.NewTable(p.Schema(), keep); err != nil {
			return nil, err
		}
	}
	out := map[string]map[augment.Arm]float64{}
	for _, site := range p.Sites {
		out[site] = map[augment.Arm]float64{}
		for name, train := range map[augment.Arm]table{controlRidge: own[site], controlAll: all} {
			in, err := suffiae.FitInputs(train.rows, inputLimit)
			if err != nil {
				return nil, err
			}
			t := standardised(in, train)
			c, err := augment.FitLinear(t.rows, t.labels, ridgePenalty)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", name, site, err)
			}
			probability, err := c.Probability(standardised(in, held[site]).rows)
			if err != nil {
				return nil, err
			}
			score, err := augment.ScoreClassifier(probability, held[site].labels)
			if err != nil {
				return nil, err
			}
			out[site][name] = score.AUC
		}
	}
	m, err := pviModel(ctx, p, s, learned)
	if err != nil {
		return nil, err
	}
	f, err := m.Forecaster(p.Schema())
	if err != nil {
		return nil, err
	}
	class := slices.Index(s.Options.Scarce.Outcome.Levels, s.Options.Scarce.Class)
	for _, site := range p.Sites {
		var probability []float64
		var labels []bool
		for row, err := range data[site].Rows(ctx) {
			if err != nil {
				return nil, err
			}
			if scarce, known := s.Known(row); known && s.Held(row.ID) {
				var forecast evaluate.Posterior
				if err := f.Infer(row, &forecast); err != nil {
					return nil, err
				}
				probability, labels = append(probability, math.Exp(forecast.Outcome.LogP[class])), append(labels, scarce)
			}
		}
		score, err := augment.ScoreClassifier(probability, labels)
		if err != nil {
			return nil, err
		}
		out[site][controlPVI] = score.AUC
	}
	return out, nil
}

// pviModel fits pvi with its defaults to rows that may be learned from, under the same
// protection as the plan's.
func pviModel(ctx context.Context, p *study.Plan, s *setup.Setup, data map[string]dataset.Source) (*use.Model, error) {
	var views []map[string]any
	for _, v := range p.Views {
		var features []map[string]any
		for _, f := range v.Features {
			x := map[string]any{"name": f.Name}
			if f.Range != nil {
				x["range"] = f.Range
			}
			features = append(features, x)
		}
		views = append(views, map[string]any{"name": v.Name, "features": features})
	}
	privacy := map[string]any{"protection": p.Privacy.Protection}
	if p.Privacy.Differential() {
		privacy = map[string]any{"protection": p.Privacy.Protection, "unit": p.Privacy.Unit, "adjacency": p.Privacy.Adjacency, "total": p.Privacy.Total}
	}
	y := s.Options.Scarce.Outcome
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"parley": study.Version, "name": "control", "seed": p.Seed, "sites": p.Sites, "views": views, "subjects": p.Subjects, "privacy": privacy,
		"method": map[string]any{"name": pvi.Method{}.Name(), "outcome": map[string]any{"column": y.Column, "levels": y.Levels}},
	})
	if err != nil {
		return nil, err
	}
	config := local.Config{Methods: method.Registry{pvi.Method{}}, Data: data}
	if config.Plan, err = study.Parse("control", text, config.Methods); err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	model, err := fitted.JSON(out.Result.Files)
	if err != nil {
		return nil, err
	}
	return use.LoadModel(model)
}
