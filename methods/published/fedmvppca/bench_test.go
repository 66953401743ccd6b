package fedmvppca

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// BenchmarkMAPIteration130x6 is one MAP iteration at a complete site, d = 130,
// q = 6: its cost does not depend on the number of subjects.
func BenchmarkMAPIteration130x6(b *testing.B) {
	l := factorstest.Shape(b, ppca.NoisePerView, 7, 41, 41, 41)
	r := rand.New(rand.NewPCG(1, 1))
	tr := factorstest.NewTruth(r, l, 6, 0.5)
	blocks := factorstest.BlocksOf(b, l, tr.Subjects(r, 300))
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(b)
	s := factorstest.Must(newEM(l, blocks, 6, tr.P.W, tr.P.Noise))(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.step(prior); err != nil {
			b.Fatal(err)
		}
	}
}

// publishedRun is the whole of the paper's algorithm: 100 rounds of 15
// iterations at 3 sites, with the updates of the coordinator.
func publishedRun(b *testing.B, q, subjects int, dims ...int) {
	l := factorstest.Shape(b, ppca.NoisePerView, dims...)
	r := rand.New(rand.NewPCG(1, 1))
	tr := factorstest.NewTruth(r, l, q, 0.1)
	var sites [][]ppca.Block
	for range 3 {
		sites = append(sites, factorstest.BlocksOf(b, l, tr.Subjects(r, subjects)))
	}
	b.ReportAllocs()
	for b.Loop() {
		w, noise := tr.P.W, tr.P.Noise
		var prior *ppca.Prior
		for range 100 {
			var local []ppca.Params
			for _, blocks := range sites {
				s := factorstest.Must(newEM(l, blocks, q, w, noise))(b)
				for range 15 {
					if err := s.step(prior); err != nil {
						b.Fatal(err)
					}
				}
				local = append(local, s.params())
			}
			var err error
			if prior, _, err = updateMaster(l, local); err != nil {
				b.Fatal(err)
			}
			w, noise = prior.W, prior.Noise
		}
	}
}

func BenchmarkPublishedRunSynthetic(b *testing.B) { publishedRun(b, 5, 89, 15, 8, 10) }

func BenchmarkPublishedRunADCSF(b *testing.B) { publishedRun(b, 6, 200, 7, 41, 41, 42) }
