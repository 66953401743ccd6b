package assess_test

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/assess"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

func TestRelevanceKeepsWhatIsThere(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		r := rand.New(rand.NewPCG(2, 3))
		l := factorstest.Shape(t, noise, 6, 5)
		tr := factorstest.NewTruth(r, l, 2, 0.1)
		blocks := factorstest.BlocksOf(t, l, factorstest.Lacking(l, tr.Subjects(r, 60), 1))
		blocks = append(blocks, factorstest.BlocksOf(t, l, tr.Subjects(r, 200))...)
		start := factorstest.Must(ppca.Start(l, blocks, 5))(t)
		strength := factorstest.Must(assess.Strengths(l, blocks, start))(t)
		if len(strength) != 5 || !(strength[1] > 20 && strength[2] < 0.5) {
			t.Errorf("noise %d: strengths %.3g, want two large ones", noise, strength)
		}
	}
}
