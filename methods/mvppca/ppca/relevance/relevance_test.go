package relevance_test

import (
	"math/rand/v2"
	"testing"

	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/relevance"
)

func TestRelevanceKeepsWhatIsThere(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		r := rand.New(rand.NewPCG(2, 3))
		l := synthetic.Shape(t, noise, 6, 5)
		tr := synthetic.NewTruth(r, l, 2, 0.1)
		blocks := synthetic.BlocksOf(t, l, synthetic.Lacking(l, tr.Subjects(r, 60), 1))
		blocks = append(blocks, synthetic.BlocksOf(t, l, tr.Subjects(r, 200))...)
		start := synthetic.Must(ppca.Fit(l, blocks, 5, nil, ppca.FitOptions{}))(t)
		strength := synthetic.Must(relevance.Strengths(l, blocks, &start.Params))(t)
		if len(strength) != 5 || !(strength[1] > 20 && strength[2] < 0.5) {
			t.Errorf("noise %d: strengths %.3g, want two large ones", noise, strength)
		}
	}
}
