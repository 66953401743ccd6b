package ppca_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// federation draws some sites of one population, each with means of its own, in which
// each subject lacks each view with some probability, but never all.
func federation(t testing.TB, l ppca.Layout, q int, lacks float64, subjects ...int) [][]ppca.Block {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(l.Features())))
	tr := factorstest.NewTruth(r, l, q, 1)
	var sites [][]ppca.Block
	for _, n := range subjects {
		rows := factorstest.Shifted(tr, tr.Subjects(r, n), 0.2*r.NormFloat64())
		for i := range rows {
			for k := 1; k < l.Views(); k++ {
				if r.Float64() < lacks {
					factorstest.Lacking(l, rows[i:i+1], k)
				}
			}
		}
		sites = append(sites, factorstest.BlocksOf(t, l, rows))
	}
	return sites
}

// hospitals is the sizes of 34 sites: most small, the largest of 184 subjects.
func hospitals() []int {
	out := make([]int, 34)
	for i := range out {
		x := float64(i) / 33
		out[i] = 11 + int(173*x*x*x*x*x*x*x*x)
	}
	return out
}

// BenchmarkStart is where a fit of ten factors begins.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name  string
		dims  []int
		n     int
		lacks float64
	}{{"300x1000", []int{600, 400}, 300, 0}, {"300x1000gaps", []int{600, 400}, 300, 0.3}, {"120x10000", []int{6000, 4000}, 120, 0}, {"120x10000gaps", []int{6000, 4000}, 120, 0.3}} {
		b.Run(c.name, func(b *testing.B) {
			l := factorstest.Shape(b, ppca.NoisePerView, c.dims...)
			blocks := federation(b, l, 5, c.lacks, c.n)[0]
			b.ReportAllocs()
			for b.Loop() {
				factorstest.Must(ppca.Start(l, blocks, 10))(b)
			}
		})
	}
}

// sized are studies of the sizes that are promised to run soon.
var sized = []struct {
	name     string
	dims     []int
	q        int
	lacks    float64
	subjects []int
}{
	{"300x1000", []int{600, 400}, 5, 0, []int{300}},
	{"3x40x10000", []int{6000, 4000}, 5, 0, []int{40, 40, 40}},
	{"34sites", []int{80, 60, 40, 36}, 10, 0.25, hospitals()},
	{"200sites", []int{30, 30}, 4, 0, slices.Repeat([]int{50}, 200)},
}

// BenchmarkSums is the one exchange: what every site says of
// its subjects, and the fit of one model to all of it.
func BenchmarkSums(b *testing.B) {
	for _, c := range sized {
		b.Run(c.name, func(b *testing.B) {
			l := factorstest.Shape(b, ppca.NoisePerFeature, c.dims...)
			sites := federation(b, l, c.q, c.lacks, c.subjects...)
			b.ReportAllocs()
			for b.Loop() {
				var all []ppca.Block
				for _, blocks := range sites {
					all = append(all, factorstest.Said(b, l, blocks, c.q)...)
				}
				f := factorstest.Must(ppca.FitBest(l, ppca.Merge(all), c.q, ppca.FitOptions{}))(b)
				b.ReportMetric(float64(f.Iterations), "iterations")
			}
		})
	}
}

// BenchmarkPooled is the fit to everybody's rows in one place, which the exchanges are
// to be held against.
func BenchmarkPooled(b *testing.B) {
	for _, c := range sized {
		b.Run(c.name, func(b *testing.B) {
			l := factorstest.Shape(b, ppca.NoisePerFeature, c.dims...)
			var all []ppca.Block
			for _, blocks := range federation(b, l, c.q, c.lacks, c.subjects...) {
				all = append(all, blocks...)
			}
			all = ppca.Merge(all)
			b.ReportAllocs()
			for b.Loop() {
				f := factorstest.Must(ppca.Fit(l, all, c.q, nil, ppca.FitOptions{}))(b)
				b.ReportMetric(float64(f.Iterations), "iterations")
			}
		})
	}
}

// BenchmarkExplained is a site's part of the assessment: variance explained, and each
// view predicted from the others.
func BenchmarkExplained(b *testing.B) {
	l := factorstest.Shape(b, ppca.NoisePerView, 6000, 4000)
	blocks := federation(b, l, 5, 0, 40)[0]
	fit := factorstest.Must(ppca.Fit(l, blocks, 5, nil, ppca.FitOptions{MaxIter: 20}))(b)
	b.ReportAllocs()
	for b.Loop() {
		factorstest.Must(ppca.NewExplained(l, &fit.Params, blocks))(b)
	}
}
