package factors

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

// One measurement by three names, in two units and rounded, takes a factor for itself, and the
// report says so. Of features that go together as others do nothing is said. Seeds are fixed.
func TestOneMeasurementByThreeNamesIsNamed(t *testing.T) {
	const says = "Features say the same as each other: f0_4 and f0_5 and f0_6"
	for _, thrice := range []bool{true, false} {
		for seed := range uint64(4) {
			s := shape{dims: []int{7, 7}, sites: 3, rows: 80, seed: seed, options: "  latent: 2\n  rounds: 0\n"}.study(t)
			rng := rand.New(rand.NewPCG(seed, 5))
			loadings := make([]float64, 14)
			for j := range loadings {
				loadings[j] = 0.8 * rng.NormFloat64()
			}
			for _, site := range s.plan.Sites {
				dealt(t, s, site, func(table *dataset.Table, i int) (views [][]float64) {
					factor := rng.NormFloat64()
					for k, values := range table.Row(i).Views {
						var moved []float64
						for j := range values {
							moved = append(moved, rng.NormFloat64()+factor*loadings[7*k+j])
						}
						if k == 0 && thrice {
							moved[5], moved[6] = 2.54*moved[4], 10+math.Round(20*moved[4])/20
						}
						views = append(views, moved)
					}
					return views
				})
			}
			r := factorstest.Must(newPlay(t, s).run())(t)
			if said := strings.Contains(strings.Join(r.Verdicts(), "\n"), says); said != thrice {
				t.Errorf("by three names: %t, seed %d: %q", thrice, seed, r.Verdicts())
			}
		}
	}
}
