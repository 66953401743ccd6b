package private

import (
	"context"
	"math"
	"math/rand/v2"

	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/ppca"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/study"
)

const (
	delta = 1e-5
	sites = 3
	level = 0.9 // of intervals
)

// measure runs whole studies on one draw, one for each ε.
func (k *kind) measure(ctx context.Context, seed uint64) (experiment.Values, error) {
	x, err := k.draw(rand.New(rand.NewPCG(seed, 1)), k.subjects)
	if err != nil {
		return nil, err
	}
	unit, err := evaluate.FitMinMax(ctx, x.train)
	if err != nil {
		return nil, err
	}
	spread, err := deal.Spread(ctx, x.train, "group", k.scenario, sites, seed)
	if err != nil {
		return nil, err
	}
	lacking, err := evaluate.Lacking(k.scenario, sites, len(x.train.Schema().Views))
	if err != nil {
		return nil, err
	}
	out := experiment.Values{}
	judge := func(name string, m evaluate.Model, err error) error {
		if err != nil {
			return err
		}
		own, err := evaluate.EvaluateIn(ctx, unit, m, x.test)
		if err != nil {
			return err
		}
		hidden, err := evaluate.Impute(ctx, unit, m, x.test, level)
		set(out, name, own.MAE, hidden.Coverage)
		return err
	}
	for i, epsilon := range epsilons {
		p, err := x.plan(epsilon, lacking, seed)
		if err != nil {
			return nil, err
		}
		result, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(spread)})
		if err != nil {
			return nil, err
		}
		m, err := factors.Method{}.Evaluator(p, result.Result.Files, false)
		if err := judge(under(epsilon), m, err); err != nil {
			return nil, err
		}
		if i == 0 {
			m, err := factors.Method{}.Central(ctx, p, x.train)
			if err := judge(openly, m, err); err != nil {
				return nil, err
			}
		}
	}
	m, err := evaluate.FitMean(ctx, x.train)
	return out, judge(theMean, m, err)
}

// set keeps what came of a fit; held is NaN where there are no intervals.
func set(v experiment.Values, name string, error, held float64) {
	v[missed+name] = []float64{error}
	if !math.IsNaN(held) {
		v[coverage+name] = []float64{held}
	}
}

var methods = method.Registry{factors.Method{}}

// plan is the study of a draw that keeps a total, at sites that lack these views.
func (x *data) plan(epsilon float64, lacking [][]int, seed uint64) (*study.Plan, error) {
	schema := x.train.Schema()
	return deal.Plan(methods, deal.Keys{"name": "private", "seed": seed, "sites": evaluate.SiteNames(len(lacking)),
		"views":   deal.Views(schema, func(j int) [2]float64 { return x.ranges[j] }),
		"privacy": deal.Protected(epsilon, delta),
		"method": deal.Keys{"name": factors.Method{}.Name(), "latent": x.q, "scaling": ppca.ScaleRange,
			"patterns": deal.Patterns(schema, lacking)}})
}
