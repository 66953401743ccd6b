package graffl

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression"
	"parley/papers/deal"
	"parley/papers/graffl/scarce"
	"parley/papers/graffl/suffiae"
	"parley/papers/melba"
)

// What any site should be held against before anything is made up for it: regressions on
// the features themselves.
const (
	ridgeAtSite  = "ridge at the site"
	ridgeAllRows = "ridge on all rows"
	pviOverSites = "regression over all sites"
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

// overSites fits regression with its defaults to the rows of all sites, and returns probabilities of held ones.
func overSites(ctx context.Context, sites []scarce.Labelled, held [][]float64, seed uint64) ([]float64, error) {
	schema := melba.Schema([]int{len(held[0])})
	schema.Subject = []dataset.Column{{Name: "class"}}
	levels := []string{"no", "yes"}
	var data []dataset.Source
	for _, site := range sites {
		var rows []dataset.Row
		for i, x := range site.Rows {
			level := levels[0]
			if site.Labels[i] {
				level = levels[1]
			}
			rows = append(rows,
				dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{x}, Subject: []string{level}})
		}
		t, err := dataset.NewTable(schema, rows)
		if err != nil {
			return nil, err
		}
		data = append(data, t)
	}
	regression := regression.Method{}
	p, out, err := deal.Run(ctx, method.Registry{regression}, deal.Keys{"name": "control", "seed": seed,
		"sites": evaluate.SiteNames(len(sites)), "subjects": []string{"class"}, "views": deal.Views(schema, nil),
		"method": deal.Keys{"name": regression.Name(), "outcome": deal.Keys{"column": "class", "levels": levels}}},
		deal.BySite(data))
	if err != nil {
		return nil, err
	}
	m, err := regression.Evaluator(p, out.Result.Files, false)
	if err != nil {
		return nil, err
	}
	var post evaluate.Posterior
	probability := make([]float64, len(held))
	for i, x := range held {
		if err := m.Infer(&dataset.Row{Views: [][]float64{x}}, &post); err != nil {
			return nil, err
		}
		probability[i] = math.Exp(post.Outcome.LogP[1])
	}
	return probability, nil
}
