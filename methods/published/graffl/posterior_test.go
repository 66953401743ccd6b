package graffl

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/figure"
	"parley/internal/testkit"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
	"parley/study"
)

// Parameters are drawn in pairs together where that can be read, else by component.
func TestCornersCanBeRead(t *testing.T) {
	for _, c := range []struct{ k, corners int }{{1, 1}, {3, 1}, {8, 4}} {
		p := testkit.Get(study.Parse("plan.yaml", fmt.Appendf(nil, "parley: 1\nname: corners\nsites: [a]\nviews: [{name: v, features: [{name: x, range: [-8, 8]}, {name: z, range: [-8, 8]}]}]\nmethod: {name: graffl-abc, components: %d}\nprivacy: {protection: none}\n", c.k), methods))(t)
		r, post := rand.New(rand.NewPCG(1, 1)), &gmm.Posterior{}
		s := testkit.Get(setUp(p))(t)
		for range 50 {
			m := gmm.NewMixture(c.k, 2)
			s.Prior.Sampler().Draw(r, m)
			post.Draws, post.Weights = append(post.Draws, m), append(post.Weights, 1./50)
		}
		v, corners := mixture.NewView(s.Setup, post), 0
		for _, item := range posteriorSection(&v).Items {
			if item.Figure == nil {
				continue
			}
			corners++
			if n := len(item.Figure.Chart.(figure.Corner).Parameters); n > 9 {
				t.Errorf("%d components: %d parameters in one corner plot", c.k, n)
			}
		}
		if corners != c.corners {
			t.Errorf("%d components: %d corner plots, want %d", c.k, corners, c.corners)
		}
	}
}
