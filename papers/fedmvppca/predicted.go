package fedmvppca

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/papers/experiment"
)

// shownViews are those of adcsf.
var shownViews = []string{"clinic", "immune", "metabolic", "vascular"}

// predicted is Figure 5 (b): mean and covariance of the first two features of every view at
// each site, as the model has its subjects, and as they are.
func predicted(ctx context.Context, m evaluate.Model, out *local.Outcome, d *division, v experiment.Values) error {
	model, err := modelOf(out)
	if err != nil {
		return err
	}
	unit, err := evaluate.FitMinMax(ctx, d.whole)
	if err != nil {
		return err
	}
	for i, site := range d.sites {
		spread, err := uncertain(model, d.lacking[i])
		if err != nil {
			return err
		}
		guess, err := firstTwo(ctx, site, func(row *dataset.Row) ([][]float64, error) {
			var post evaluate.Posterior
			err := m.Infer(row, &post)
			return post.Mean, err
		})
		if err != nil {
			return err
		}
		real, err := firstTwo(ctx, unit.Apply(d.full[i]),
			func(row *dataset.Row) ([][]float64, error) { return row.Views, nil })
		if err != nil {
			return err
		}
		for k, name := range shownViews {
			for j, x := range spread[k] {
				guess[k][2+j] += x
			}
			v[fmt.Sprintf("predicted %s %d", name, i+1)] = guess[k]
			v[fmt.Sprintf("real %s %d", name, i+1)] = real[k]
		}
	}
	return nil
}

// modelOf opens the model of a study.
func modelOf(out *local.Outcome) (*fitted.Model, error) {
	file, err := method.ModelJSON(out.Result.Files)
	if err != nil {
		return nil, err
	}
	return fitted.LoadModel(file)
}

// firstTwo returns for each view the means of its first two features, the variance of the
// first, their covariance, and the variance of the second.
func firstTwo(ctx context.Context, rows dataset.Source,
	of func(*dataset.Row) ([][]float64, error)) (all [][]float64, err error) {
	views := len(rows.Schema().Views)
	x, y := make([][]float64, views), make([][]float64, views)
	for row, err := range rows.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		values, err := of(row)
		if err != nil {
			return nil, err
		}
		for k := range views {
			x[k], y[k] = append(x[k], values[k][0]), append(y[k], values[k][1])
		}
	}
	for k := range views {
		mx, vx := stat.MeanVariance(x[k], nil)
		my, vy := stat.MeanVariance(y[k], nil)
		all = append(all, []float64{mx, my, vx, stat.Covariance(x[k], y[k], nil), vy})
	}
	return all, nil
}

// uncertain is for each view the covariance of its first two features given a row that lacks
// these views, W P Wᵀ + Ψ with P = (I + Σ WᵀΨ⁻¹W)⁻¹ over the views that it has, times what the
// sampling of subjects multiplies variances by.
func uncertain(m *fitted.Model, lacking []int) (all [][]float64, err error) {
	q := len(m.Factors)
	precision := mat.NewSymDense(q, nil)
	for a := range q {
		precision.SetSym(a, a, 1)
	}
	for k, view := range m.Views {
		if slices.Contains(lacking, k) {
			continue
		}
		for _, f := range view.Features {
			precision.SymRankOne(precision, 1/f.Noise, mat.NewVecDense(q, f.Loadings))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(precision) {
		return nil, errors.New("the posterior of the factors has no covariance")
	}
	var cov mat.SymDense
	if err := chol.InverseTo(&cov); err != nil {
		return nil, err
	}
	for _, view := range m.Views {
		f, g := view.Features[0], view.Features[1]
		between := func(a, b fitted.ModelFeature) float64 {
			return mat.Inner(mat.NewVecDense(q, a.Loadings), &cov,
				mat.NewVecDense(q, b.Loadings)) / (a.Factor * b.Factor)
		}
		times := max(1, view.SamplingTimes)
		all = append(all, []float64{times * (between(f, f) + f.Noise/(f.Factor*f.Factor)), times * between(f, g),
			times * (between(g, g) + g.Noise/(g.Factor*g.Factor))})
	}
	return all, nil
}

// againstReal draws a view of Figure 5 (b) at a site, from 1.
func againstReal(v experiment.Values, view string, site int) figure.Figure {
	var chart figure.Scatter
	chart.X.Label, chart.Y.Label = "first feature, scaled", "second feature, scaled"
	for _, what := range []string{"real", "predicted"} {
		if x := v[fmt.Sprintf("%s %s %d", what, view, site)]; len(x) == 5 {
			chart.Groups = append(chart.Groups, figure.Group{Name: what, Mean: x[:2], Cov: x[2:]})
		}
	}
	lacks := ""
	if view == lackedBy[site] {
		lacks = ", which the site lacks"
	}
	return figure.Figure{ID: fmt.Sprintf("predicted-%s-%d", view, site),
		Title:   fmt.Sprintf("Predicted and real: %s, site %d", view, site),
		Caption: fmt.Sprintf("Figure 5 (b): the first two features of view %s at site %d%s.", view, site, lacks),
		Alt:     fmt.Sprintf("Ellipses of real and predicted values of view %s at site %d.", view, site), Chart: chart}
}
