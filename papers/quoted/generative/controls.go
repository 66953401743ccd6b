package generative

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/mixture"
	"parley/methods/mixture/scarce"
	experiments "parley/papers/graffl"
	"parley/study"
)

var scarceControls = []scarce.Arm{experiments.RidgeAtSite, experiments.PVIOverSites, experiments.RidgeAllRows}

// controls are AUCs by site and control.
func controls(ctx context.Context, p *study.Plan, data map[string]dataset.Source) (map[string]map[scarce.Arm]float64, error) {
	s, err := mixture.NewSetup(p, p.Method.Options.(*mixture.Options))
	if err != nil {
		return nil, err
	}
	own, held := map[string]scarce.Labelled{}, map[string]scarce.Labelled{}
	learned := map[string]dataset.Source{}
	var all scarce.Labelled
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
				all.Rows, all.Labels = append(all.Rows, x), append(all.Labels, scarce)
			}
			t := to[site]
			t.Rows, t.Labels = append(t.Rows, x), append(t.Labels, scarce)
			to[site] = t
		}
		if learned[site], err = dataset.NewTable(p.Schema(), keep); err != nil {
			return nil, err
		}
	}
	out := map[string]map[scarce.Arm]float64{}
	for _, site := range p.Sites {
		out[site] = map[scarce.Arm]float64{}
		for name, train := range map[scarce.Arm]scarce.Labelled{experiments.RidgeAtSite: own[site], experiments.RidgeAllRows: all} {
			probability, err := experiments.Ridge(train, held[site].Rows, experiments.RidgePenalty)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", name, site, err)
			}
			out[site][name] = evaluate.AUC(probability, held[site].Labels)
		}
	}
	m, err := overSites(ctx, p, s, learned)
	if err != nil {
		return nil, err
	}
	for _, site := range p.Sites {
		var probability []float64
		var labels []bool
		for row, err := range data[site].Rows(ctx) {
			if err != nil {
				return nil, err
			}
			if scarce, known := s.Known(row); known && s.Held(row.ID) {
				x, err := m.Probability(row)
				if err != nil {
					return nil, err
				}
				probability, labels = append(probability, x), append(labels, scarce)
			}
		}
		out[site][experiments.PVIOverSites] = evaluate.AUC(probability, labels)
	}
	return out, nil
}

// overSites fits pvi with its defaults to rows that may be learned from, under the same
// protection as the plan's.
func overSites(ctx context.Context, p *study.Plan, s *mixture.Setup, data map[string]dataset.Source) (*experiments.Regression, error) {
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
	return experiments.FitPVI(ctx, map[string]any{"seed": p.Seed, "sites": p.Sites, "views": views, "subjects": p.Subjects, "privacy": privacy}, y.Column, y.Levels, s.Options.Scarce.Class, data)
}
