package between

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// BenchmarkHierarchicalRound is one round at three sites and the pooling, with
// noise per feature: the costly case.
func BenchmarkHierarchicalRound(b *testing.B) {
	for name, noise := range map[string]ppca.Noise{"PerView": ppca.NoisePerView, "PerFeature": ppca.NoisePerFeature} {
		b.Run(name, func(b *testing.B) {
			l := factorstest.Shape(b, noise, 7, 41, 41, 42)
			r := rand.New(rand.NewPCG(1, 1))
			tr := factorstest.NewTruth(r, l, 6, 0.1)
			var sites [][]ppca.Block
			for range 3 {
				sites = append(sites, factorstest.BlocksOf(b, l, tr.Subjects(r, 200)))
			}
			prior := factorstest.Must(ppca.Weak(l, &tr.P))(b)
			b.ReportAllocs()
			for b.Loop() {
				round(b, l, sites, prior, nil, 5)
			}
		})
	}
}

// round runs one hierarchical round at all sites.
func round(t testing.TB, l ppca.Layout, sites [][]ppca.Block, prior *ppca.Prior, states []State, steps int) (*ppca.Prior, []State) {
	t.Helper()
	var messages []Message
	for i, blocks := range sites {
		var start *State
		if states != nil {
			start = &states[i]
		}
		h := factorstest.Must(NewSite(l, blocks, prior, start))(t)
		for range steps {
			if err := h.Step(); err != nil {
				t.Fatal(err)
			}
		}
		messages = append(messages, *factorstest.Must(h.Message())(t))
	}
	p, s, err := Pool(l, messages)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}
