package ppca_test

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// BenchmarkAccumulate100000x130 is the one pass over rows in memory.
func BenchmarkAccumulate100000x130(b *testing.B) {
	l := factorstest.Shape(b, ppca.NoisePerView, 7, 41, 41, 41)
	r := rand.New(rand.NewPCG(1, 1))
	rows := factorstest.NewTruth(r, l, 6, 0.5).Subjects(r, 1000)
	var views [][][]float64
	for _, row := range rows {
		views = append(views, factorstest.Split(l, row))
	}
	b.ReportAllocs()
	for b.Loop() {
		a := factorstest.Must(ppca.NewAccumulator(l, nil))(b)
		for i := range 100_000 {
			if err := a.Add(views[i%1000]); err != nil {
				b.Fatal(err)
			}
		}
		a.Blocks()
	}
}

// BenchmarkFitMissingCells is one site of 300 subjects with 10 % of the cells
// missing, nearly every subject with a pattern of their own.
func BenchmarkFitMissingCells(b *testing.B) {
	l := factorstest.Shape(b, ppca.NoisePerView, 15, 8, 10)
	r := rand.New(rand.NewPCG(1, 1))
	tr := factorstest.NewTruth(r, l, 5, 0.1)
	blocks := factorstest.BlocksOf(b, l, factorstest.Hole(r, tr.Subjects(r, 300), 0.1))
	b.ReportAllocs()
	for b.Loop() {
		f := factorstest.Must(ppca.Fit(l, blocks, 5, nil, ppca.FitOptions{}))(b)
		b.ReportMetric(float64(f.Iterations), "iterations")
	}
}
