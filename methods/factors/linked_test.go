package factors

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
)

// Where nobody has both of two views, and each has a factor that the view between them does not
// show, two factors make one of the two: the report says so, and imputing either repeats it.
// Nothing is said if the view between shows the factors, or if one site has all views. It is the same under
// differential privacy. That four
// draws of a direction pass for shown, or that one which is shown does not, has a probability of
// about 0.01 each, and the seeds are fixed.
func TestLinksThatNothingSupportsAreNamed(t *testing.T) {
	const says = "The model links views in a way that nothing observed supports: v0 and v2 ("
	lacking := map[[2]int]bool{{0, 2}: true, {1, 2}: true, {2, 0}: true, {3, 0}: true}
	for _, c := range []struct {
		name    string
		lacks   map[[2]int]bool
		own     bool // factors of v0 and of v2, in place of one that all views have
		private bool
		want    bool
	}{
		{"a factor of each end", lacking, true, false, true},
		{"a factor that all views show", lacking, false, false, false},
		{"a factor of each end, noised", lacking, true, true, true},
		{"a factor that all views show, noised", lacking, false, true, false},
		{"a site with all views", map[[2]int]bool{{1, 2}: true, {2, 0}: true, {3, 0}: true}, true, false, false},
	} {
		for seed := range uint64(4) {
			of := shape{dims: []int{7, 7, 7}, sites: 4, rows: 60, seed: seed, lacks: c.lacks, options: "  latent: 2\n  rounds: 0\n"}
			if c.private {
				of.rows, of.privacy = 2000, "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 30, delta: 1e-5}}"
				of.options = "  latent: 2\n  patterns: [{views: [v0, v1]}, {site: site-2, views: [v1, v2]}, {site: site-3, views: [v1, v2]}]\n"
			}
			s := of.study(t)
			rng := rand.New(rand.NewPCG(seed, 3))
			loadings := make([]float64, 21)
			for j := range loadings {
				loadings[j] = 1.5 * rng.NormFloat64()
			}
			for _, site := range s.plan.Sites {
				dealt(t, s, site, func(table *dataset.Table, i int) (views [][]float64) {
					factor := []float64{rng.NormFloat64(), 0, rng.NormFloat64()}
					if !c.own {
						factor[1], factor[2] = factor[0], factor[0]
					}
					for k, values := range table.Row(i).Views {
						var moved []float64
						for j, x := range values {
							moved = append(moved, x+factor[k]*loadings[7*k+j])
						}
						views = append(views, moved)
					}
					return views
				})
			}
			r := factorstest.Must(newPlay(t, s).seeded().run())(t)
			if said := strings.Contains(strings.Join(r.Verdicts(), "\n"), says); said != c.want {
				t.Errorf("%s, seed %d: %q", c.name, seed, r.Verdicts())
			}
			m := factorstest.Must(fitted.LoadModel(r.Files[0].Data))(t)
			for view, concerned := range map[string]bool{"v0": c.want, "v1": false, "v2": c.want} {
				_, notes, err := m.Impute(t.Context(), s.data[s.plan.Sites[3]], &bytes.Buffer{}, method.ImputeOptions{Level: 0.9, Views: []string{view}})
				if err != nil || (len(notes) > 0 && strings.Contains(notes.Error(), says)) != concerned {
					t.Errorf("%s, seed %d: imputing %s says %v, %v", c.name, seed, view, notes, err)
				}
			}
		}
	}
}
