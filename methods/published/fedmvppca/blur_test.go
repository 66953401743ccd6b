package fedmvppca

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Sites can compute with whatever the published update makes of what they say,
// even where noise variances are next to nothing beside the loadings.
func TestSitesCanComputeWithAnyPublishedModel(t *testing.T) {
	c := coordinator{setup: setup{Setup: options.Setup{Layout: factorstest.Shape(t, ppca.NoisePerView, 3, 2)}}}
	r := rand.New(rand.NewPCG(82, 1))
	tr := factorstest.NewTruth(r, c.Layout, 2, 0.3)
	blocks := factorstest.BlocksOf(t, c.Layout, tr.Subjects(r, 20))
	for _, factor := range []float64{1, 1e6, 1e12, 1e30} {
		prior := factorstest.Must(ppca.Weak(c.Layout, &tr.P))(t)
		for i := range prior.W {
			prior.W[i] *= factor
			if i%2 == 1 && factor > 1 { // two factors alike: only noise tells them apart
				prior.W[i] = prior.W[i-1]
			}
		}
		if before := slices.Clone(prior.Noise); factor == 1 {
			if c.blur(prior); !slices.Equal(before, prior.Noise) {
				t.Errorf("an honest model was blurred: %v became %v", before, prior.Noise)
			}
		}
		c.blur(prior)
		it := factorstest.Must(newEM(c.Layout, blocks, 2, prior.W, prior.Noise))(t)
		for range 3 {
			if err := it.step(prior); err != nil {
				t.Errorf("loadings times %g: %v", factor, err)
				break
			}
		}
	}
}
