package factors_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/study"
)

// Central factor analysis and principal components are plans of one site and one view, with
// a noise variance for each feature or one for all.
func TestPlansOfOneSiteAreCentralBaselines(t *testing.T) {
	const d, q = 8, 2
	r := rand.New(rand.NewPCG(6, 1))
	var w [d][q]float64
	for j := range w {
		w[j] = [q]float64{r.NormFloat64(), r.NormFloat64()}
	}
	var rows []dataset.Row
	for i := range 200 {
		x, v := [q]float64{r.NormFloat64(), r.NormFloat64()}, make([]float64, d)
		for j := range v {
			v[j] = w[j][0]*x[0] + w[j][1]*x[1] + 0.2*float64(j+1)*r.NormFloat64()
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{v}})
	}
	for _, noise := range []string{"feature", "view"} {
		p, err := study.Parse("plan", fmt.Appendf(nil, `{parley: 1, name: central, sites: [all], views: [{name: v, features: [a, b, c, d, e, f, g, h]}],
			method: {name: mvppca, latent: %d, noise: %s, scaling: none}, privacy: {protection: none}}`, q, noise), method.Registry{factors.Method{}})
		if err != nil {
			t.Fatal(err)
		}
		table, err := dataset.NewTable(p.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := factors.Method{}.Evaluator(p, federated(t, p, map[string]dataset.Source{"all": table}), false)
		if err != nil {
			t.Fatal(err)
		}
		factors, err := factors.Method{}.Central(t.Context(), p, table)
		if err != nil {
			t.Fatal(err)
		}
		components, err := evaluate.FitPCA(t.Context(), q, table)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for _, row := range rows {
			ours, theirs := reconstruct(t, got, row.Views), reconstruct(t, factors, row.Views)
			if noise == "view" { // what it reconstructs lies in the plane of the components
				theirs = reconstruct(t, components, ours)
			}
			for j := range d {
				worst = max(worst, math.Abs(ours[0][j]-theirs[0][j]))
			}
		}
		if !(worst < 1e-9) {
			t.Errorf("noise by %s: a reconstruction differs by %.2g", noise, worst)
		}
	}
}

// reconstruct is what a model expects of a row's features.
func reconstruct(t *testing.T, m evaluate.Model, views [][]float64) [][]float64 {
	t.Helper()
	var post evaluate.Posterior
	post.Resize(2, []int{len(views[0])})
	if err := m.Infer(&dataset.Row{Views: views}, &post); err != nil {
		t.Fatal(err)
	}
	return post.Mean
}
