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
)

// A view that lies apart is named with its site, however sites are scaled; sites that differ
// as sites do are not.
func TestFarApart(t *testing.T) {
	l := ppca.Layout{Dims: []int{2, 2}}
	site := func(n int, offset float64) *FeatureSums {
		s := newFeatureSums(4)
		for i := range n {
			x := float64(i%7) - 3
			for j := range 4 {
				by := x + 0.1*float64(j)
				if j >= 2 {
					by += offset
				}
				s.add(j, by, false)
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		sites []*FeatureSums
		want  []Apart
	}{
		"alike":       {[]*FeatureSums{site(30, 0), site(14, 3), site(7, -5)}, nil},
		"1e12 at one": {[]*FeatureSums{site(30, 0), site(14, 1e12), site(7, 3)}, []Apart{{Site: 1, View: 1}}},
		"two sites": {[]*FeatureSums{site(30, 0), site(14, 1e6)},
			[]Apart{{Site: 0, View: 1}, {Site: 1, View: 1}}},
		"one subject": {[]*FeatureSums{site(30, 0), site(1, 1e12), site(9, 0)}, []Apart{{Site: 1, View: 1}}},
		"nobody":      {[]*FeatureSums{site(0, 0), site(1, 0), site(1, 9)}, nil},
		"does not vary": {[]*FeatureSums{{N: []float64{5, 5, 5, 5}, A: []float64{1, 1, 1, 1},
			B: []float64{0, 0, 0, 0}}}, nil},
		"a site by itself": {[]*FeatureSums{site(30, 1e12)}, nil},
	} {
		got := liesApart(l, c.sites, false)
		for i := range got {
			if got[i].Times < farApart {
				t.Errorf("%s: %v", name, got[i])
			}
			got[i].Times = 0
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	ranges := func(low, high float64) *FeatureSums {
		return &FeatureSums{N: []float64{9, 9, 9, 9}, A: []float64{low, low, 0, 0}, B: []float64{high, high, 1, 1}}
	}
	if got := liesApart(l, []*FeatureSums{ranges(0, 1), ranges(100, 101), ranges(0, 2)}, true); len(got) != 1 ||
		got[0].Site != 1 || got[0].View != 0 {
		t.Errorf("ranges: %v", got)
	}
}

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
	table := factorstest.Must(dataset.NewTable(schema, list))(t)
	sums := factorstest.Must(Read(t.Context(), tr.L, table, nil))(t)
	direct := newFeatureSums(5)
	scale := &ppca.Scale{Shift: []float64{1, -2, 0, 3, 0.5}, Factor: []float64{2, 0.1, 1, 3, 7}}
	scaled := factorstest.Must(ppca.NewAccumulator(tr.L, scale))(t)
	for row, err := range table.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		direct.addRow(row.Views, tr.L.Dims, false)
		testkit.Do(t, scaled.Add(row.Views))
	}
	moments := sums.Moments(5)
	for name, x := range map[string][2][]float64{"counts": {direct.N, moments.N}, "means": {direct.A, moments.A},
		"squares": {direct.B, moments.B}} {
		if w := factorstest.Worst(x[0], x[1]); w > 1e-12 {
			t.Errorf("%s differ by %.1e", name, w)
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
	return factorstest.Must(dataset.NewTable(schema, list))(t)
}

// found lists the outliers as row and view.
func found(t testing.TB, l ppca.Layout, rows [][]float64, chance float64) (out [][2]int) {
	t.Helper()
	o := factorstest.Must(findOutliers(t.Context(), l, tableOf(t, l, rows), chance))(t)
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
	o := factorstest.Must(findOutliers(t.Context(), l, tableOf(t, l, rows), 0.01))(t)
	sums := factorstest.Must(Read(t.Context(), l, o.Without(tableOf(t, l, rows)), nil))(t)
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
