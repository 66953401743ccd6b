package number

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/ppca"
	"parley/papers/deal"
	"parley/papers/melba"
	"parley/study"
)

var methods = method.Registry{factors.Method{}}

const (
	subjects = 400
	sites    = 3
)

// unequal draws one data set of q factors whose views differ in size, and whose features
// differ in unit and in how much of them is noise: a standard deviation from .6 to 4.5 where
// the factors' is √q.
func unequal(seed uint64, q, n int) (*dataset.Table, error) {
	rng := rand.New(rand.NewPCG(seed, 100+uint64(q)))
	var f melba.Features
	for _, d := range unequalDims {
		for range d {
			unit := math.Exp(3 * rng.NormFloat64())
			w := make([]float64, q)
			for a := range w {
				w[a] = unit * rng.NormFloat64()
			}
			f.W, f.Mu, f.SD = append(f.W, w), append(f.Mu, unit*rng.NormFloat64()),
				append(f.SD, unit*math.Exp(2*rng.Float64()-0.5))
		}
	}
	rows := make([]dataset.Row, n)
	for i := range rows {
		rows[i] = dataset.Row{ID: fmt.Sprintf("s%04d", i),
			Views: melba.Views(unequalDims, f.Subject(rng, make([]float64, q)))}
	}
	return dataset.NewTable(melba.Schema(unequalDims), rows)
}

var unequalDims = []int{40, 12, 4}

// generate draws one data set of n subjects with q factors. The noise variances are
// those of the paper times a factor.
func generate(seed uint64, q, n int, noise float64) (*dataset.Table, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(q)))
	features, shift := melba.Draw(rng, q, noise), melba.Shift(rng, q)
	rows := make([]dataset.Row, n)
	for i := range rows {
		move := shift
		if !melba.Moved(i, n) {
			move = make([]float64, q)
		}
		rows[i] = dataset.Row{ID: fmt.Sprintf("s%0*d", len(fmt.Sprint(n-1)), i),
			Views: melba.Views(melba.Dims, features.Subject(rng, move))}
	}
	return dataset.NewTable(melba.Schema(melba.Dims), rows)
}

// setting is one way to prepare and model the same data.
type setting struct {
	name, scaling, noise string
	variance             float64 // times the paper's noise variances; 0 for views and noise that are unequal
	kept                 bool    // whether the promise is made for it
}

// Without a scaling and noise a plan has those of its defaults.
var settings = []setting{
	{"defaults", "", "", 1, true},
	{"defaults, unequal views and noise", "", "", 0, true},
	{"one scale per view", ppca.ScaleView, "view", 1, true},
	{"one scale per view, noise × 10", ppca.ScaleView, "view", 10, true},
	{"noise per feature, min-max", ppca.ScaleMinMax, "feature", 1, true},
	{"each feature scaled, noise per view", ppca.ScaleStandard, "view", 1, false},
	{"min-max, noise per view", ppca.ScaleMinMax, "view", 1, false},
}

// plan is the study of one data set.
func plan(s setting, schema dataset.Schema, seed uint64) (*study.Plan, error) {
	m := deal.Keys{"name": factors.Method{}.Name(), "latent": 1}
	if s.scaling != "" {
		m["scaling"], m["noise"] = s.scaling, s.noise
	}
	return deal.Plan(methods, deal.Keys{"name": "selection", "seed": seed, "sites": evaluate.SiteNames(sites),
		"views": deal.Views(schema, nil), "method": m})
}

// choose runs one selection.
func choose(ctx context.Context, s setting, seed uint64, q int, c method.SelectConfig) (*method.Selection, error) {
	draw := unequal
	if s.variance > 0 {
		draw = func(seed uint64, q, n int) (*dataset.Table, error) { return generate(seed, q, n, s.variance) }
	}
	all, err := draw(seed, q, subjects)
	if err != nil {
		return nil, err
	}
	rows, err := deal.Spread(ctx, all, "", evaluate.IID, sites, seed)
	if err != nil {
		return nil, err
	}
	p, err := plan(s, all.Schema(), seed)
	if err != nil {
		return nil, err
	}
	return factors.Method{}.Select(ctx, p, deal.BySite(rows), c)
}
