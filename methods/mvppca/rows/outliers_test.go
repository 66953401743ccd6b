package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
)

func tableOf(t *testing.T, l ppca.Layout, subjects [][]float64) *dataset.Table {
	t.Helper()
	var schema dataset.Schema
	for k, d := range l.Dims {
		v := dataset.View{Name: fmt.Sprint("v", k)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprint("f", k, "_", j)})
		}
		schema.Views = append(schema.Views, v)
	}
	var list []dataset.Row
	for i, x := range subjects {
		list = append(list, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: synthetic.Split(l, x)})
	}
	return synthetic.Must(dataset.NewTable(schema, list))(t)
}

func testProbe(t *testing.T) {
	for _, q := range []int{1, 3} {
		for _, dims := range [][]int{{1, 1}, {3, 2}, {10, 10, 10}, {70, 63, 13}} {
			d := 0
			for _, n := range dims {
				d += n
			}
			l := synthetic.Shape(t, ppca.NoisePerView, dims...)
			for _, n := range []int{3, 4, 5, 6, 7, 8, 11, 15, 30, 100} {
				runs := 400
				if n*d > 10000 {
					runs = 40
				}
				alarms := 0
				for seed := range runs {
					r := rand.New(rand.NewPCG(uint64(seed), 7))
					tr := synthetic.NewTruth(r, l, min(q, d), 0.4)
					o := synthetic.Must(FindOutliers(t.Context(), l, tableOf(t, l, tr.Subjects(r, n)), 0.1))(t)
					hit := false
					r = rand.New(rand.NewPCG(uint64(seed), 7))
					tr = synthetic.NewTruth(r, l, min(q, d), 0.4)
					for _, x := range tr.Subjects(r, n) {
						hit = hit || len(o.Of(synthetic.Split(l, x))) > 0
					}
					if hit {
						alarms++
					}
				}
				t.Logf("q %d dims %v n %d: %.3f (nominal %.2f)", q, dims, n, float64(alarms)/float64(runs), 0.1*float64(len(dims)))
			}
		}
	}
	_ = math.Inf
}
