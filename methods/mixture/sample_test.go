package mixture

import (
	"math"
	"testing"

	"parley/methods/mixture/gmm"
)

// What a sampler found its draws to be worth is kept where their weights do not tell it.
func TestASampleKeepsItsEffectiveSize(t *testing.T) {
	one := gmm.NewMixture(1, 1)
	one.Weights[0], one.Covs[0] = 1, 1
	p := &gmm.Posterior{Draws: []gmm.Mixture{one, one, one, one}, Weights: []float64{.25, .25, .25, .25}}
	for size, kept := range map[float64]float64{4: 0, 1.5: 1.5} {
		p.Size = size
		s := packSample(p)
		back, err := s.Posterior(1, 1)
		if err != nil || s.Size != kept || back.Size != size {
			t.Errorf("of %v are kept %v, and read %+v (%v)", size, s.Size, back, err)
		}
	}
	for _, size := range []float64{-1, 4.1, math.NaN()} {
		s := packSample(p)
		s.Size = size
		if _, err := s.Posterior(1, 1); err == nil {
			t.Errorf("a size of %v was taken", size)
		}
	}
}
