package methodtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/study"
)

// Sample is rows of features with outcomes as written.
type Sample struct {
	X [][]float64
	Y []string
}

// Drawn draws a sample whose outcomes follow from f = w·x.
func Drawn(seed uint64, rows, columns int, outcome func(r *rand.Rand, f float64) string) Sample {
	r := rand.New(rand.NewPCG(seed, 77))
	w := make([]float64, columns)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	var s Sample
	for range rows {
		x, f := make([]float64, columns), 0.0
		for j := range x {
			x[j] = r.NormFloat64()
			f += w[j] * x[j]
		}
		s.X, s.Y = append(s.X, x), append(s.Y, outcome(r, f))
	}
	return s
}

// YesNo is an outcome of two levels, whose log odds are f.
func YesNo(r *rand.Rand, f float64) string {
	if r.Float64() < 1/(1+math.Exp(-f)) {
		return "yes"
	}
	return "no"
}

// Table makes a data set of the rows that are wanted; nil for all.
func (s Sample) Table(t testing.TB, p *study.Plan, wanted func(i int) bool) *dataset.Table {
	t.Helper()
	var rows []dataset.Row
	for i := range s.X {
		if wanted == nil || wanted(i) {
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{s.X[i]},
				Subject: []string{s.Y[i]}})
		}
	}
	table, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Divided is the sample's rows divided unevenly among the sites.
func (s Sample) Divided(t testing.TB, p *study.Plan) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for m, site := range p.Sites {
		data[site] = s.Table(t, p, func(i int) bool { return min(i*i%7, len(p.Sites)-1) == m })
	}
	return data
}
