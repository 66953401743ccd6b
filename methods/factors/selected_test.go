package factors

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

// Values that are missing because they are low are named with what that would do, and those that are
// missing by chance are not.
func TestValuesMissingBecauseOfWhatTheyAreAreNamed(t *testing.T) {
	for low, want := range map[bool]string{true: "Values may be missing because of what they are: f1_2 (more often where it is predicted ", false: ""} {
		s := shape{dims: []int{6, 5}, sites: 3, rows: 90, seed: 9, options: "  latent: 1\n  rounds: 0\n"}.study(t)
		rng := rand.New(rand.NewPCG(9, 1))
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 { // half of the variance is noise
				v := slices.Clone(table.Row(i).Views)
				v[1] = slices.Clone(v[1])
				v[1][2] += 3 * rng.NormFloat64()
				return v
			})
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				v := slices.Clone(table.Row(i).Views)
				v[1] = slices.Clone(v[1])
				missing := i%4 == 0
				if low {
					below := 0
					for k := range table.Len() {
						if table.Row(k).Views[1][2] < v[1][2] {
							below++
						}
					}
					missing = below < table.Len()/4
				}
				if missing {
					v[1][2] = math.NaN()
				}
				return v
			})
		}
		got := ""
		for _, v := range factorstest.Must(newPlay(t, s).run())(t).Verdicts() {
			if strings.HasPrefix(v, "Values may be missing") {
				got = v
			}
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want) || !strings.Contains(got, "low; if because it is, its mean here is ")) {
			t.Errorf("low %t: %q", low, got)
		}
	}
}
