package options

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
	"parley/study"
)

// tableOf is rows, with NaN for what is missing, as a site's data.
func tableOf(t testing.TB, l ppca.Layout, subjects [][]float64) *dataset.Table {
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
		list = append(list, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: factorstest.Split(l, x)})
	}
	return testkit.Get(dataset.NewTable(schema, list))(t)
}

// found lists the outliers as row and view.
func found(t testing.TB, l ppca.Layout, rows [][]float64, chance float64) (out [][2]int) {
	t.Helper()
	o := testkit.Get(findOutliers(t.Context(), l, tableOf(t, l, rows), chance))(t)
	for i, x := range rows {
		for _, k := range o.of(factorstest.Split(l, x)) {
			out = append(out, [2]int{i, k})
		}
	}
	return out
}

// Of normal values, a view has any outlier with at most the probability that was asked
// for, whatever the factors and the number of subjects. (With 300 draws of a rate of .05,
// 30 are exceeded by chance once in 8 000 times; by any of 24 cases, once in 300.)
func TestCleanRowsHaveHardlyAnyOutliers(t *testing.T) {
	for _, q := range []int{1, 4} {
		for _, d := range []int{1, 3, 25} {
			for _, n := range []int{3, 5, 11, 80} {
				l := factorstest.Shape(t, ppca.NoisePerView, d)
				alarms := 0
				for seed := range uint64(300) {
					r := rand.New(rand.NewPCG(seed, uint64(n)))
					truth := factorstest.NewTruth(r, l, min(q, d), 0.4)
					if len(found(t, l, truth.Subjects(r, n), 0.05)) > 0 {
						alarms++
					}
				}
				if alarms > 30 {
					t.Errorf("%d factors, %d features, %d subjects: %d of 300 draws have an outlier, want at most "+
						"about 15", q, d, n, alarms)
				}
			}
		}
	}
}

// Outliers are found in the views where they are, however many are alike, and beside
// features of which most values are the same.
func TestOutliersAreFoundViewByView(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	l := factorstest.Shape(t, ppca.NoisePerView, 6, 4, 3)
	rows := factorstest.NewTruth(r, l, 2, 0.4).Subjects(r, 60)
	for i, row := range rows {
		row[10], row[11] = float64(i%30/29), float64(i%2) // rarely 1, and half of the time
	}
	var want [][2]int
	for _, i := range []int{7, 8, 9, 10} {
		for j := 6; j < 10; j++ {
			rows[i][j] = 500
		}
		want = append(want, [2]int{i, 1})
	}
	rows[20][2] = 1e12
	rows[21] = slices.Repeat([]float64{math.NaN()}, l.Features())
	rows[21][4] = -1e12
	want = append(want, [2]int{20, 0}, [2]int{21, 0})
	if got := found(t, l, rows, 0.01); !slices.Equal(got, want) {
		t.Errorf("outliers (row, view): %v, want %v", got, want)
	}
	o := testkit.Get(findOutliers(t.Context(), l, tableOf(t, l, rows), 0.01))(t)
	sums := testkit.Get(ppca.Read(t.Context(), l, o.Without(tableOf(t, l, rows))))(t)
	for range o.Without(tableOf(t, l, rows)).Rows(t.Context()) { // a second reading finds nobody twice
	}
	if len(o.Found) != 6 || o.Found[5].ID != "000021" || !slices.Equal(o.Found[5].Views, []int{0}) {
		t.Errorf("left out: %v", o.Found)
	}
	if top := slices.Max(sums.Extremes.B); top > 100 || sums.Extremes.N[6] != 55 || sums.Extremes.N[0] != 58 {
		t.Errorf("the rows that are left have values up to %v, and %v and %v of two features", top, sums.Extremes.N[6],
			sums.Extremes.N[0])
	}
}

// Of many rows a selection decides, and every row is judged.
func TestOutliersOfManyRows(t *testing.T) {
	d := 1200
	most := 2 * (sampledValues / d / 2)
	l := factorstest.Shape(t, ppca.NoisePerView, d)
	r := rand.New(rand.NewPCG(6, 6))
	row := make([]float64, d)
	rows := make([][]float64, most+501)
	for i := range rows {
		for j := range row {
			row[j] = r.NormFloat64()
		}
		rows[i] = slices.Clone(row)
	}
	at := []int{1, most, most + 500}
	var want [][2]int
	for _, i := range at {
		rows[i][3] = 1e6
		want = append(want, [2]int{i, 0})
	}
	if got := found(t, l, rows, 0.01); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// A site leaves the same subjects out whether its sums are secure or plain: the chance is that of all sites.
func TestOutliersOfTotals(t *testing.T) {
	l, p := factorstest.Shape(t, ppca.NoisePerView, 1), &study.Plan{Sites: []string{"a", "b", "c"}}
	data := tableOf(t, l, [][]float64{{0}, {1}, {3}, {7}, {15}})
	limit := func(p *study.Plan) float64 {
		set := Setup{Frame: ppca.Frame{Plan: p, Layout: l}, Options: &Options{Outliers: excludeOutliers}}
		return testkit.Get(Excluded(t.Context(), set, data))(t).limit[0]
	}
	if plain, secure := limit(p), limit(p.Cohort("all")); plain != secure {
		t.Errorf("limits of %v, and with a secure sum of %v", plain, secure)
	}
}
