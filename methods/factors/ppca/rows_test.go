package ppca_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// The one pass over the rows gives the sums that the scale needs, and scaling
// the statistics is scaling the rows.
func TestScaledStatisticsAreThoseOfScaledRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.4)
	schema := dataset.Schema{Views: []dataset.View{{Name: "v", Columns: []dataset.Column{{Name: "a"}, {Name: "b"},
		{Name: "c"}}}, {Name: "w", Columns: []dataset.Column{{Name: "d"}, {Name: "e"}}}}}
	var list []dataset.Row
	for n, x := range factorstest.Hole(r, tr.Subjects(r, 40), 0.1) {
		row := dataset.Row{ID: fmt.Sprintf("%02d", n), Views: factorstest.Split(tr.L, x)}
		if n%5 > 3 {
			row.Views[n%2] = nil
		}
		list = append(list, row)
	}
	table := testkit.Get(dataset.NewTable(schema, list))(t)
	sums := testkit.Get(ppca.Read(t.Context(), tr.L, table))(t)
	values := make([][]float64, 5)
	scale := &ppca.Scale{Shift: []float64{1, -2, 0, 3, 0.5}, Factor: []float64{2, 0.1, 1, 3, 7}}
	scaled := ppca.NewAccumulator(tr.L)
	for row, err := range table.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for j, x := range tr.L.Values(row.Views, nil) {
			values[j] = append(values[j], x)
		}
		j, views := 0, [][]float64(nil)
		for k, own := range row.Views {
			own = slices.Clone(own)
			for i := range own {
				own[i] = (own[i] - scale.Shift[j+i]) * scale.Factor[j+i]
			}
			j, views = j+tr.L.Dims[k], append(views, own)
		}
		testkit.Do(t, scaled.Add(views))
	}
	moments := sums.Moments(5)
	for j, x := range values {
		n, mean := float64(len(x)), stat.Mean(x, nil)
		if w := factorstest.Worst([]float64{n, mean, n * stat.MomentAbout(2, x, mean, nil)},
			[]float64{moments.N[j], moments.A[j], moments.B[j]}); w > 1e-12 {
			t.Errorf("sums of feature %d differ by %.1e", j, w)
		}
	}
	want := scaled.Blocks()
	for i := range sums.Blocks {
		got := sums.Blocks[i].Scaled(scale)
		dense, other := factorstest.Moments(got), factorstest.Moments(want[i]) // in one form, whatever theirs is
		if w := max(factorstest.Worst(dense[0].Mean, other[0].Mean),
			factorstest.Worst(dense[0].Scatter, other[0].Scatter)); w > 1e-12 || got.N != want[i].N {
			t.Errorf("block %d differs by %.1e", i, w)
		}
	}
}
