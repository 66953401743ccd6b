package damage

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
)

// The shape of every draw: views, factors, sites and subjects, as far as a case does not
// say otherwise.
var dims = []int{10, 8, 12}

const (
	trueFactors = 3
	sites       = 3
	subjects    = 100 // at each site
	held        = 300 // test rows, always clean
)

// truth is a factor model whose features have variance 1 on average.
type truth struct {
	w     [][]float64 // by feature and factor
	noise []float64   // variances
}

func newTruth(rng *rand.Rand) *truth {
	t := &truth{}
	for range dims[0] + dims[1] + dims[2] {
		row := make([]float64, trueFactors)
		for a := range row {
			row[a] = math.Sqrt(0.6/trueFactors) * rng.NormFloat64()
		}
		t.w, t.noise = append(t.w, row), append(t.noise, 0.2+0.4*rng.Float64())
	}
	return t
}

// row draws a subject, whose noise comes from the given law of variance 1.
func (t *truth) row(rng *rand.Rand, law func() float64) []float64 {
	x := make([]float64, trueFactors)
	for a := range x {
		x[a] = rng.NormFloat64()
	}
	row := make([]float64, len(t.w))
	for j, w := range t.w {
		row[j] = math.Sqrt(t.noise[j]) * law()
		for a, y := range x {
			row[j] += w[a] * y
		}
	}
	return row
}

// excluded is said of outliers.
const excluded = "so far from all others"

// rows are those of each site.
type rows = [][][]float64

// damage is a way in which real data are not what the model thinks.
type damage struct {
	name  string
	sites int // 0: three
	rows  int // at each site; 0: a hundred
	spare int // factors of the fit beyond the true ones
	truth func(*truth)
	law   func(*rand.Rand) float64               // of the noise; nil: normal
	apply func(rng *rand.Rand, t *truth, x rows) // to the rows of each site
	// want is a part of the verdict that should be said; empty where the damage does no
	// harm. Often says that it is not said of every draw.
	want  string
	often bool
	// all says that the truth's own rows are damaged in the same way: test rows are too.
	all bool
}

var damages = []damage{
	{name: "none"},
	{name: "3 rows of 300, ten times as large", want: excluded, apply: func(_ *rand.Rand, _ *truth, x rows) {
		for _, row := range x[0][:3] {
			for j := range row {
				row[j] *= 10
			}
		}
	}},
	{name: "3 equal rows at 10 sd, one site", want: excluded, apply: equal(10, 0, 0, 0)},
	{name: "3 equal rows at 100 sd, one site", want: excluded, apply: equal(100, 0, 0, 0)},
	{name: "3 equal rows at 10 sd, one a site", want: excluded, apply: equal(10, 0, 1, 2)},
	{name: "3 equal rows at 5 sd, one site", want: excluded, apply: equal(5, 0, 0, 0)},
	{name: "3 cells at 1e12", want: excluded, apply: func(_ *rand.Rand, _ *truth, x rows) {
		for i := range 3 {
			x[i][i][7*i] = 1e12
		}
	}},
	{name: "a view offset by 1e12 at one site", want: "nothing in common", apply: func(_ *rand.Rand, _ *truth, x rows) {
		for _, row := range x[1] {
			for j := range dims[0] {
				row[j] += 1e12
			}
		}
	}},
	{name: "1 % of cells at −999", want: excluded, apply: func(rng *rand.Rand, _ *truth, x rows) {
		each(x, func(v *float64) {
			if rng.Float64() < 0.01 {
				*v = -999
			}
		})
	}},
	{name: "noise variance × 9 at one site", want: "noisier", apply: func(rng *rand.Rand, t *truth, x rows) {
		for _, row := range x[2] {
			for j := range row {
				row[j] += math.Sqrt(8*t.noise[j]) * rng.NormFloat64()
			}
		}
	}},
	{name: "sites shifted by 2 sd", apply: func(rng *rand.Rand, _ *truth, x rows) {
		for _, site := range x {
			for j := range site[0] {
				by := 2 * rng.NormFloat64()
				for _, row := range site {
					row[j] += by
				}
			}
		}
	}},
	{name: "loadings of one site drawn anew", want: "site3",
		often: true, apply: func(rng *rand.Rand, t *truth, x rows) {
			other := newTruth(rng)
			for i := range x[2] {
				x[2][i] = other.row(rng, rng.NormFloat64)
			}
		}},
	{name: "a view turned round at one site",
		want: "Views do not go together", apply: func(_ *rand.Rand, _ *truth, x rows) {
			for _, row := range x[2] {
				for j := range dims[0] {
					row[j] = -row[j]
				}
			}
		}},
	{name: "a view of other subjects at one site",
		want: "Views do not go together", apply: func(rng *rand.Rand, _ *truth, x rows) {
			rng.Shuffle(len(x[2]), func(a, b int) {
				for j := range dims[0] {
					x[2][a][j], x[2][b][j] = x[2][b][j], x[2][a][j]
				}
			})
		}},
	{name: "two features swapped at one site", want: "Features go with the others",
		often: true, apply: func(_ *rand.Rand, _ *truth, x rows) {
			for _, row := range x[2] {
				row[0], row[1] = row[1], row[0]
			}
		}},
	{name: "5 factors too many, 40 rows a site", spare: 5, rows: 40},
	{name: "2 features nearly equal", truth: func(t *truth) {
		t.w[4], t.noise[4], t.noise[5] = t.w[5], 0.001, 0.001
	}},
	{name: "cells above 1 removed", want: "single values are missing",
		all: true, apply: func(_ *rand.Rand, _ *truth, x rows) {
			each(x, func(v *float64) {
				if *v > 1 {
					*v = math.NaN()
				}
			})
		}},
	{name: "binary features", all: true, apply: func(_ *rand.Rand, _ *truth, x rows) {
		each(x, func(v *float64) {
			if *v > 0.5 {
				*v = 1
			} else {
				*v = 0
			}
		})
	}},
	{name: "skewed features (exponentials)", want: "wide", all: true, apply: func(_ *rand.Rand, _ *truth, x rows) {
		each(x, func(v *float64) { *v = math.Exp(*v) })
	}},
	{name: "t noise of 3 degrees of freedom", all: true, law: func(rng *rand.Rand) float64 {
		s := 0.0
		for range 3 {
			z := rng.NormFloat64()
			s += z * z
		}
		return rng.NormFloat64() / math.Sqrt(s)
	}},
	{name: "30 % of cells missing", want: "single values are missing", apply: func(rng *rand.Rand, _ *truth, x rows) {
		each(x, func(v *float64) {
			if rng.Float64() < 0.3 {
				*v = math.NaN()
			}
		})
	}},
	{name: "a view of noise alone", want: "no better than by its mean", truth: func(t *truth) {
		for j := 18; j < 30; j++ {
			t.w[j] = make([]float64, trueFactors)
		}
	}},
	{name: "33 sites of 3 rows", sites: 33, rows: 3},
	{name: "100 sites of 1 row", sites: 100, rows: 1},
	{name: "100 sites of 1 row, 1 outlier", want: "does not describe site1", sites: 100,
		rows: 1, apply: func(_ *rand.Rand, _ *truth, x rows) {
			for j := range x[0][0] {
				x[0][0][j] *= 30
			}
		}},
	{name: "10 sites of 11 rows, 1 outlier", sites: 10, rows: 11,
		want: excluded, apply: func(_ *rand.Rand, _ *truth, x rows) {
			for j := range x[0][0] {
				x[0][0][j] *= 30
			}
		}},
}

func each(x rows, do func(*float64)) {
	for _, site := range x {
		for _, row := range site {
			for j := range row {
				do(&row[j])
			}
		}
	}
}

// equal puts one row, whose values lie so many standard deviations off in directions that
// are drawn, in the place of the first rows of some sites.
func equal(by float64, at ...int) func(*rand.Rand, *truth, rows) {
	return func(rng *rand.Rand, t *truth, x rows) {
		row := make([]float64, len(t.w))
		for j := range row {
			row[j] = by * float64(2*rng.IntN(2)-1)
		}
		for i, s := range at {
			copy(x[s][i], row)
		}
	}
}

// draw makes the rows of each site, and the test rows.
func (m *damage) draw(seed uint64) (t *truth, x rows, test [][]float64) {
	rng := rand.New(rand.NewPCG(seed, 14))
	t = newTruth(rng)
	if m.truth != nil {
		m.truth(t)
	}
	law := rng.NormFloat64
	if m.law != nil {
		law = func() float64 { return m.law(rng) }
	}
	x = make(rows, max(m.sites, sites))
	for s := range x {
		n := subjects
		if m.rows > 0 {
			n = m.rows
		}
		for range n {
			x[s] = append(x[s], t.row(rng, law))
		}
	}
	for range held {
		test = append(test, t.row(rng, law))
	}
	if m.apply != nil {
		m.apply(rng, t, x)
		if m.all {
			m.apply(rng, t, rows{test})
		}
	}
	return t, x, test
}

// table puts rows into the form of a site's data.
func table(name string, subjects [][]float64) (*dataset.Table, error) {
	var schema dataset.Schema
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprintf("view-%d", k+1)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("x%d-%d", k+1, j+1)})
		}
		schema.Views = append(schema.Views, v)
	}
	var list []dataset.Row
	for i, x := range subjects {
		row := dataset.Row{ID: fmt.Sprintf("%s-%04d", name, i), Views: make([][]float64, len(dims))}
		for k, d := range dims {
			for _, v := range x[:d] {
				if !math.IsNaN(v) {
					row.Views[k] = x[:d]
				}
			}
			x = x[d:]
		}
		list = append(list, row)
	}
	return dataset.NewTable(schema, list)
}
