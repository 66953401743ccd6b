package private

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/engine/local"
	"parley/experiment/deal"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mvppca"
	"parley/methods/mvppca/options"
	"parley/study"
)

const (
	delta = 1e-5
	sites = 3
	level = 0.9 // of intervals
)

// score is how well a model does on the test rows, in parts of the training range.
type score struct{ error, coverage float64 }

// scores are those of one draw: by ε, and of what they are compared with.
type scores struct {
	private    []score
	open, mean score
}

// measure runs whole studies on one draw, one for each ε.
func (e *experiment) measure(ctx context.Context, seed uint64) (*scores, error) {
	x, err := e.draw(rand.New(rand.NewPCG(seed, 1)), e.subjects)
	if err != nil {
		return nil, err
	}
	unit, err := evaluate.FitMinMax(ctx, x.train)
	if err != nil {
		return nil, err
	}
	spread, err := deal.Spread(ctx, x.train, "group", e.scenario, sites, seed)
	if err != nil {
		return nil, err
	}
	lacking, err := evaluate.Lacking(e.scenario, sites, len(x.train.Schema().Views))
	if err != nil {
		return nil, err
	}
	judge := func(m evaluate.Model, err error) (s score, _ error) {
		if err != nil {
			return s, err
		}
		own, err := evaluate.EvaluateIn(ctx, unit, m, x.test)
		if err != nil {
			return s, err
		}
		hidden, err := evaluate.Impute(ctx, unit, m, x.test, level)
		return score{own.MAE, hidden.Coverage}, err
	}
	var out scores
	for _, epsilon := range epsilons {
		p, err := x.plan(epsilon, lacking, seed)
		if err != nil {
			return nil, err
		}
		result, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(spread)})
		if err != nil {
			return nil, err
		}
		s, err := judge(mvppca.Method{}.Evaluator(p, result.Result.Files, false))
		if err != nil {
			return nil, err
		}
		out.private = append(out.private, s)
		if out.open.error == 0 {
			if out.open, err = judge(mvppca.Method{}.Central(ctx, p, x.train)); err != nil {
				return nil, err
			}
		}
	}
	out.mean, err = judge(evaluate.FitMean(ctx, x.train))
	return &out, err
}

var methods = method.Registry{mvppca.Method{}}

// plan is the study of a draw that keeps a total, at sites that lack these views.
func (x *data) plan(epsilon float64, lacking [][]int, seed uint64) (*study.Plan, error) {
	type feature struct {
		Name  string     `json:"name"`
		Range [2]float64 `json:"range"`
	}
	type view struct {
		Name     string    `json:"name"`
		Features []feature `json:"features"`
	}
	var views []view
	j := 0
	for _, v := range x.train.Schema().Views {
		own := view{Name: v.Name}
		for _, c := range v.Columns {
			own.Features = append(own.Features, feature{c.Name, x.ranges[j]})
			j++
		}
		views = append(views, own)
	}
	names := evaluate.SiteNames(len(lacking))
	var patterns []options.Pattern
	for i, gone := range lacking {
		pattern := options.Pattern{Site: names[i]}
		for k, v := range views {
			if !slices.Contains(gone, k) {
				pattern.Views = append(pattern.Views, v.Name)
			}
		}
		patterns = append(patterns, pattern)
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "private", "seed": seed, "sites": names, "views": views,
		"method": map[string]any{"name": mvppca.Method{}.Name(), "latent": x.q, "scaling": options.ScaleRange, "mechanism": options.MechanismStatistics, "patterns": patterns},
		"privacy": map[string]any{
			"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": "add-remove",
			"total": map[string]any{"epsilon": epsilon, "delta": delta},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the plan: %w", err)
	}
	return study.Parse("plan", text, methods)
}
