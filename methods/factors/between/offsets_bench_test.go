package between

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// BenchmarkFit34x216 is 34 sites of 8 to 101 subjects with four views of 216
// features, who lack views, condensed to 20 factors: most sites say something of ten
// sets of views or more.
func BenchmarkFit34x216(b *testing.B) {
	sizes := make([]int, 34)
	for i := range sizes {
		sizes[i] = 8 + i*i/12
	}
	l := ppca.Layout{Dims: []int{70, 70, 63, 13}, Noise: ppca.NoisePerFeature}
	var sites [][]ppca.Block
	for _, rows := range factorstest.Gappy(1, l.Dims, 5, sizes, 0) {
		sites = append(sites, factorstest.Said(b, l, factorstest.Gather(b, l, rows...), 5))
	}
	b.ReportAllocs()
	for b.Loop() {
		fit, _, err := Fit(l, sites, 5, nil, ppca.FitOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(fit.Iterations), "cycles")
	}
}

// BenchmarkFit4x10000 is four sites of 30 rows with 10 000 features: memory stays
// far below that of a d × d matrix, which is 800 MB.
func BenchmarkFit4x10000(b *testing.B) {
	l := factorstest.Shape(b, ppca.NoisePerFeature, 6000, 4000)
	r := rand.New(rand.NewPCG(1, 1))
	rows, _ := shifted(r, factorstest.NewTruth(r, l, 3, 0.5), []int{30, 30, 30, 30}, 0.2, 0)
	var sites [][]ppca.Block
	for i := range rows {
		sites = append(sites, siteOfRows(l, rows[i]))
	}
	b.ReportAllocs()
	for b.Loop() {
		fit, _, err := Fit(l, sites, 3, nil, ppca.FitOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(fit.Iterations), "cycles")
	}
}

// siteOfRows is one block of complete rows.
func siteOfRows(l ppca.Layout, rows [][]float64) []ppca.Block {
	out := ppca.Block{Features: l.AllFeatures(), N: float64(len(rows)), Mean: make([]float64, l.Features())}
	for _, row := range rows {
		for j, x := range row {
			out.Mean[j] += x / out.N
		}
	}
	for _, row := range rows {
		for j, x := range row {
			out.Factor = append(out.Factor, x-out.Mean[j])
		}
	}
	return []ppca.Block{out}
}
