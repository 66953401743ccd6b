package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	oneshot "parley/methods/factors/federated"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
	"parley/papers/deal"
	"parley/papers/experiment"
)

// waicOf is the criterion of the rows at three sites by dimension, from draws of the posterior
// under flat priors begun at the default's fit in one exchange, and what held-out rows choose.
func waicOf(ctx context.Context, data source, at experiment.Data, repeat, largest int, noise string) (experiment.Values, error) {
	c := condition{data: data, scenario: evaluate.IID, sites: 3}
	d, err := c.first(ctx, at, repeat)
	if err != nil {
		return nil, err
	}
	m, _ := byDefault(c, d)
	m["noise"] = noise
	p, err := plan(d.sites, m, nil, uint64(repeat))
	if err != nil {
		return nil, err
	}
	config := method.SelectConfig{Folds: folds, Repeats: 1}
	for q := 2; q <= largest; q++ {
		config.Values = append(config.Values, q)
	}
	chosen, err := factors.Method{}.Select(ctx, p, deal.BySite(d.sites), config)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for _, k := range chosen.Choices {
		v["choice: "+k.Rule] = []float64{float64(k.Value)}
	}
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, set, d.sites)
	if err != nil {
		return nil, err
	}
	least := math.Inf(1)
	for _, q := range config.Values {
		w, err := rows.criterion(ctx, set, q)
		if err != nil {
			return nil, fmt.Errorf("%d dimensions: %w", q, err)
		}
		v[fmt.Sprintf("q%d", q)] = []float64{w}
		if w < least {
			least, v["choice: smallest WAIC"] = w, []float64{float64(q)}
		}
	}
	return v, nil
}

// rowsAt are the subjects of every site as a study's one exchange has them.
type rowsAt struct {
	tables []*dataset.Table
	sums   []*options.RowSums
	scale  *ppca.Scale
}

func rowsOf(ctx context.Context, set options.Setup, sites []dataset.Source) (*rowsAt, error) {
	r := new(rowsAt)
	for _, src := range sites {
		outliers, err := options.Excluded(ctx, set, src)
		if err != nil {
			return nil, err
		}
		table, err := dataset.Collect(ctx, outliers.Without(src))
		if err != nil {
			return nil, err
		}
		sums, err := options.Read(ctx, set.Layout, table, nil)
		if err != nil {
			return nil, err
		}
		r.tables, r.sums = append(r.tables, table), append(r.sums, sums)
	}
	var err error
	r.scale, err = options.Common(set, set.Options.Scaling, r.sums...)
	return r, err
}

// criterion is WAIC of a model of q dimensions.
func (r *rowsAt) criterion(ctx context.Context, set options.Setup, q int) (float64, error) {
	opts := *set.Options
	opts.Latent = options.Factors(q)
	set.Options = &opts
	names := make([]string, len(r.sums))
	for i := range names {
		names[i] = fmt.Sprint("site", i)
	}
	fit, means, err := oneshot.FitRows(ctx, set, r.scale, names, r.sums)
	if err != nil {
		return 0, err
	}
	var features [][]int
	var values [][]float64
	for i, table := range r.tables {
		mean := make([]float64, set.Layout.Features())
		if means != nil {
			mean = means.At(names[i]).Mean
		}
		for n := range table.Len() {
			var f []int
			var t []float64
			for j, x := range slices.Concat(filled(set.Layout, table.Row(n).Views)...) {
				if !math.IsNaN(x) {
					f, t = append(f, j), append(t, (x-r.scale.Shift[j])*r.scale.Factor[j]-mean[j])
				}
			}
			if len(f) > 0 {
				features, values = append(features, f), append(values, t)
			}
		}
	}
	w, err := fedmvppca.Draw(ctx, set.Layout, features, values, fit, options.Draws(set.Plan.Seed, "selection: gibbs", q))
	return w.WAIC, err
}

// filled returns a subject's views, with nothing known of those that it lacks.
func filled(l ppca.Layout, views [][]float64) [][]float64 {
	out := slices.Clone(views)
	for k, v := range out {
		if v == nil {
			out[k] = slices.Repeat([]float64{math.NaN()}, l.Dims[k])
		}
	}
	return out
}
