package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/papers/experiment"
)

// waicOf is the criterion of the rows at three sites by dimension, from draws of the posterior
// under flat priors begun at the likeliest fit to all of them.
func waicOf(ctx context.Context, c condition, d *division, seed uint64, largest int,
	noise string) (experiment.Values, error) {
	m, _ := byDefault(c, d)
	m["noise"] = noise
	p, err := plan(d.sites, m, nil, seed)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, set, d.sites)
	if err != nil {
		return nil, err
	}
	for q := 2; q <= largest; q++ {
		w, err := rows.criterion(ctx, set, q)
		if err != nil {
			return nil, fmt.Errorf("%d dimensions: %w", q, err)
		}
		v[fmt.Sprintf("q%d", q)] = []float64{w}
	}
	return v, nil
}

// rowsAt are the subjects of every site as a study has them.
type rowsAt struct {
	tables []*dataset.Table
	sums   []*ppca.RowSums
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
		sums, err := ppca.Read(ctx, set.Layout, table)
		if err != nil {
			return nil, err
		}
		r.tables, r.sums = append(r.tables, table), append(r.sums, sums)
	}
	var err error
	r.scale, err = ppca.Common(set.Frame, set.Options.Scaling, r.sums...)
	return r, err
}

// criterion is WAIC of a model of q dimensions.
func (r *rowsAt) criterion(ctx context.Context, set options.Setup, q int) (float64, error) {
	var all []ppca.Block
	for _, sums := range r.sums {
		all = append(all, sums.In(r.scale)...)
	}
	fit, err := ppca.FitBest(set.Layout, all, q, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
	if err != nil {
		return 0, err
	}
	var features [][]int
	var values [][]float64
	for _, table := range r.tables {
		for n := range table.Len() {
			var f []int
			var t []float64
			for j, x := range slices.Concat(filled(set.Layout, table.Row(n).Views)...) {
				if !math.IsNaN(x) {
					f, t = append(f, j), append(t, (x-r.scale.Shift[j])*r.scale.Factor[j])
				}
			}
			if len(f) > 0 {
				features, values = append(features, f), append(values, t)
			}
		}
	}
	w, err := drawn(ctx, set.Layout, features, values, &fit.Params, options.Draws(set.Plan.Seed, "selection: gibbs", q))
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
