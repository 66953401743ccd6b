package factors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/study"
)

// awkward draws a study of data that hospitals have on bad days: few subjects, features that
// are constant, rounded, nearly without noise, or many orders of magnitude apart, single values
// of another unit, shifts, subjects who are there twice, and views and values that are missing.
func awkward(t testing.TB, r *rand.Rand) (*study.Plan, map[string]dataset.Source) {
	t.Helper()
	of := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	dims, d := make([]int, 1+r.IntN(3)), 0
	var b strings.Builder
	names := []string{"s0", "s1", "s2", "s3"}[:1+r.IntN(4)]
	fmt.Fprintf(&b, "parley: 1\nname: awkward\nsites: [%s]\nviews:\n", strings.Join(names, ", "))
	var schema dataset.Schema
	for k := range dims {
		dims[k] = 2 + r.IntN(9)
		d += dims[k]
		view := dataset.View{Name: fmt.Sprintf("v%d", k)}
		var features []string
		for j := range dims[k] {
			features = append(features, fmt.Sprintf("f%d_%d", k, j))
			view.Columns = append(view.Columns, dataset.Column{Name: features[j]})
		}
		fmt.Fprintf(&b, "  - {name: %s, features: [%s]}\n", view.Name, strings.Join(features, ", "))
		schema.Views = append(schema.Views, view)
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: %s, noise: %s, scaling: %s, outliers: %s, site_means: %s, rounds: %d}\nprivacy: {protection: none}\n",
		of(fmt.Sprint(1+r.IntN(min(3, d-1))), "select"), of("feature", "view"), of("standard", "view", "none"), of("exclude", "keep"), of("auto", "pooled"), r.IntN(3))
	plan, err := study.Parse("plan", []byte(b.String()), method.Registry{Method{}})
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}

	pick := func(xs ...float64) float64 { return xs[r.IntN(len(xs))] }
	factors, noise, orders, gaps, lacks := r.IntN(5), pick(0, 1e-9, 1e-3, 1, 1), pick(0, 1, 6, 20), pick(0, 0.02, 0.3), pick(0, 0.2, 0.6)
	loadings, scale := make([]float64, d*factors), make([]float64, d)
	for i := range loadings {
		loadings[i] = r.NormFloat64()
	}
	for j := range scale {
		if scale[j] = math.Pow(10, orders*(r.Float64()-0.5)); r.IntN(40) == 0 {
			scale[j] = 0
		}
	}
	data := map[string]dataset.Source{}
	for _, name := range names {
		shift, without, rows := pick(0, 1, 1e6), r.IntN(2*len(dims)), []dataset.Row(nil)
		for i := range int(pick(1, 2, 3, 8, 30, 100)) {
			x, row, j := make([]float64, factors), make([][]float64, len(dims)), 0
			for a := range x {
				x[a] = r.NormFloat64()
			}
			for k, n := range dims {
				row[k] = make([]float64, n)
				for c := range row[k] {
					y := noise*r.NormFloat64() + shift
					for a, v := range x {
						y += loadings[j*factors+a] * v
					}
					if y *= scale[j]; r.IntN(400) == 0 {
						y *= 1e6
					}
					if orders == 1 && r.IntN(3) == 0 {
						y = math.Round(y)
					}
					if r.Float64() < gaps {
						y = math.NaN()
					}
					row[k][c] = y
					j++
				}
				if k > 0 && (k == without || r.Float64() < lacks) {
					row[k] = nil
				}
			}
			if i > 0 && r.IntN(6) == 0 {
				row = rows[0].Views
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("p%05d", i), Views: row})
		}
		if data[name], err = dataset.NewTable(schema, rows); err != nil {
			t.Fatal(err)
		}
	}
	return plan, data
}
