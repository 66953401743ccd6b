package factors

import (
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

// A site that has standardised a view by itself is named with it; nothing is said where no site has,
// or all have, since these have one scale.
func TestAViewThatOneSiteStandardisedIsNamed(t *testing.T) {
	const says = "Values seem to have been standardised at single sites: v1 at site-1"
	for _, scaling := range []string{"standard", "view"} {
		for _, sites := range [][]string{nil, {"site-1"}, {"site-0", "site-1", "site-2"}} {
			s := shape{dims: []int{5, 5}, sites: 3, rows: 60, seed: 4, options: "  latent: 2\n  rounds: 0\n  scaling: " + scaling + "\n"}.study(t)
			for _, site := range sites {
				data := s.data[site]
				dealt(t, s, site, func(_ *dataset.Table, i int) (views [][]float64) {
					own := append([]float64(nil), data.Row(i).Views[1]...)
					for j := range own {
						n, mean, squares := float64(data.Len()), 0.0, 0.0
						for k := range data.Len() {
							mean += data.Row(k).Views[1][j] / n
						}
						for k := range data.Len() {
							squares += math.Pow(data.Row(k).Views[1][j]-mean, 2)
						}
						own[j] = (own[j] - mean) / math.Sqrt(squares/(n-1))
					}
					return [][]float64{data.Row(i).Views[0], own}
				})
			}
			r := factorstest.Must(newPlay(t, s).run())(t)
			if said := strings.Contains(strings.Join(r.Verdicts(), "\n")+"\n", says+"\n"); said != (len(sites) == 1) {
				t.Errorf("scaling %s, standardised at %v: %q", scaling, sites, r.Verdicts())
			}
		}
	}
}
