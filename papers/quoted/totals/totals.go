// Package totals measures what secure sums leave of private models at few and many sites.
package totals

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/papers/melba"
	"parley/study"
)

// kind is a method with drawn rows.
type kind struct {
	name    string
	m       method.Method
	rows    int
	draws   int // of rows, for each line
	draw    func(r *rand.Rand, x []float64) (label string)
	options deal.Keys
}

const features = 6

var methods = method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}

var kinds = []kind{
	{"factors", factors.Method{}, 2000, 48, func(r *rand.Rand, x []float64) string {
		f, g := r.NormFloat64(), r.NormFloat64()
		for j := range x {
			x[j] = 0.8*f*float64(1-j%2) + 0.8*g*float64(j%2) + 0.2*f + 0.7*r.NormFloat64()
		}
		return "no"
	}, deal.Keys{"latent": 2}},
	{"regression", regression.Method{}, 4000, 16, func(r *rand.Rand, x []float64) string {
		a := -0.5
		f := r.NormFloat64()
		for j := range x {
			x[j] = 0.5*f + 0.8*r.NormFloat64()
			a += x[j] * []float64{1, -0.7, 0.5, 0.3, 0, -0.2}[j]
		}
		if r.Float64() < 1/(1+math.Exp(-a)) {
			return "yes"
		}
		return "no"
	}, deal.Keys{"outcome": deal.Keys{"column": "ill", "levels": []string{"no", "yes"}}}},
	{"mixture", mixture.Method{}, 4000, 16, func(r *rand.Rand, x []float64) string {
		at := 2.0
		if r.Float64() < 0.4 {
			at = -2
		}
		for j := range x {
			x[j] = at + 0.7*r.NormFloat64()
		}
		return "no"
	}, deal.Keys{"components": 2, "draws": 128}},
}

var (
	cohorts  = []int{3, 10, 34}
	epsilons = []float64{0.5, 1, 3}
)

// The names of values: nats a row of the fit that noise costs, times 1000. The fit without noise is the best for these
// rows, so that what noise costs is no matter of which rows are held out.
const (
	one  = "one noise"
	sum  = "secure sum"
	each = "noise at each site"
)

var ways = []string{one, sum, each}

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{totals()} }

func id(k kind, sites int, epsilon float64, draw int) string {
	return experiment.Slug(fmt.Sprintf("%s %d %v %d", k.name, sites, epsilon, draw))
}

func totals() experiment.Experiment {
	return experiment.Experiment{Name: "parley-totals",
		Cells: func(quick bool) (cells experiment.Cells) {
			for i, k := range kinds {
				for _, sites := range cohorts {
					for _, epsilon := range epsilons {
						for draw := range k.draws {
							if quick && (i+draw > 0 || sites > 3 || epsilon != 3) {
								continue
							}
							cells.Add(id(k, sites, epsilon, draw), func(ctx context.Context,
								_ experiment.Data) (experiment.Values, error) {
								return k.measure(ctx, sites, epsilon, uint64(draw))
							})
						}
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "excess", Title: "What noise costs",
				Columns: figure.TextColumns("method", "sites", "ε", "variance of the total's noise", one, sum, each),
				Caption: fmt.Sprintf("Nats a row of the fit, times 1000, medians of %d draws of factors and %d of the "+
					"others. One noise knows no sites, and is the median of all draws. The variance is that of the "+
					"secure sum, in units of one noise; at each site it is that of as many as there are sites.",
					kinds[0].draws, kinds[1].draws)}
			for _, k := range kinds {
				for _, sites := range cohorts {
					for _, epsilon := range epsilons {
						var ids, every []string
						for draw := range k.draws {
							ids = append(ids, id(k, sites, epsilon, draw))
							for _, c := range cohorts {
								every = append(every, id(k, c, epsilon, draw))
							}
						}
						if len(o.Gather(one, ids...)) == 0 {
							continue
						}
						p, err := k.plan(sites, epsilon, true)
						if err != nil {
							continue // it was run
						}
						row := []any{k.name, fmt.Sprint(sites), fmt.Sprint(epsilon),
							fmt.Sprintf("%.2f", float64(sites)/float64(p.Honest()))}
						for _, x := range [][]float64{o.Gather(one, every...), o.Gather(sum, ids...),
							o.Gather(each, ids...)} {
							slices.Sort(x)
							row = append(row, fmt.Sprintf("%.2f", stat.Quantile(0.5, stat.LinInterp, x, nil)))
						}
						t.Add(row...)
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// plan is a study of so many sites; without noise where ε is 0.
func (k kind) plan(sites int, epsilon float64, secure bool) (*study.Plan, error) {
	schema, with := melba.Schema([]int{features}), maps.Clone(k.options)
	with["name"] = k.m.Name()
	privacy := deal.Protected(epsilon, 1e-5)
	if secure {
		privacy["sum"] = "secure"
	}
	return deal.Plan(methods, deal.Keys{"name": "totals", "sites": evaluate.SiteNames(sites),
		"views": deal.Views(schema, deal.Within(6)), "subjects": []string{"ill"}, "method": with,
		"privacy": privacy})
}

// measure makes the three studies of one draw of rows, and the one without noise.
func (k kind) measure(ctx context.Context, sites int, epsilon float64, seed uint64) (experiment.Values, error) {
	r := rand.New(rand.NewPCG(seed, uint64(len(k.name))))
	var all []dataset.Row
	for i := range k.rows {
		x := make([]float64, features)
		label := k.draw(r, x)
		all = append(all, dataset.Row{ID: fmt.Sprintf("%08d", i), Subject: []string{label}, Views: [][]float64{x}})
	}
	exact, err := k.plan(1, 0, false)
	if err != nil {
		return nil, err
	}
	table, err := dataset.NewTable(exact.Schema(), all)
	if err != nil {
		return nil, err
	}
	best, err := k.logLik(ctx, exact, table, seed)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for _, way := range ways {
		n := sites
		if way == one {
			n = 1
		}
		p, err := k.plan(n, epsilon, way == sum)
		if err != nil {
			return nil, err
		}
		l, err := k.logLik(ctx, p, table, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way, err)
		}
		v[way] = []float64{1000 * (best - l)}
	}
	return v, nil
}

// logLik is that of a row by the model of a study of all rows.
func (k kind) logLik(ctx context.Context, p *study.Plan, table dataset.Source, seed uint64) (float64, error) {
	rows, err := deal.Spread(ctx, table, "", evaluate.IID, len(p.Sites), seed)
	if err != nil {
		return 0, err
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(rows)})
	if err != nil {
		return 0, err
	}
	judged := k.m.(method.Evaluable)
	m, err := judged.Evaluator(p, slices.Clone(out.Result.Files), false)
	if err != nil {
		return 0, err
	}
	if k.name != "regression" {
		score, err := evaluate.EvaluateIn(ctx, nil, m, table)
		return score.LogLik, err
	}
	j, err := evaluate.Outcome{Column: "ill", Levels: []string{"no", "yes"}}.Judge(ctx, m, table, 0.9)
	if err != nil {
		return 0, err
	}
	return j.Marks.Get(evaluate.MeasureLogLik), nil
}
