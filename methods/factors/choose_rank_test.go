package factors

import (
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// A study that chooses its number of factors finds as many as its subjects were drawn with in nine of ten, and is off
// by one at most. parley select chooses the same.
func TestAStudyChoosesItsNumberOfFactors(t *testing.T) {
	right, n := 0, 0
	for _, c := range testkit.Sized([]struct{ d, sites, n, shared int }{{40, 3, 300, 1}, {60, 12, 600, 2}},
		[]struct{ d, sites, n, shared int }{{40, 3, 300, 1}, {60, 12, 600, 2}, {24, 1, 200, 1}, {100, 2, 150, 2}, {300, 3, 120, 2}, {12, 5, 1000, 0}}) {
		for seed := range testkit.Sized[uint64](2, 10) {
			s, _ := viewsOf(t, seed+40, c.d, c.sites, c.n, c.shared, 1, false)
			s.plan.Method.Options.(*options.Options).Latent = options.Select
			m := factorstest.Must(fitted.LoadModel(fileOf(t, factorstest.Must(newPlay(t, s).run())(t), "model/model.json")))(t)
			found, truth := len(m.Factors), c.shared+4
			t.Logf("%+v: %d factors, drawn with %d", c, found, truth)
			if seed == 0 {
				candidates := method.SelectConfig{Values: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}}
				chosen := factorstest.Must(Method{}.Select(t.Context(), s.plan, sources(s), candidates))(t)
				if got := chosen.Choices[0].Value; got != found || chosen.Recommended != found {
					t.Errorf("%+v: the study takes %d factors, parley select %d", c, found, got)
				}
			}
			if n++; found == truth {
				right++
			}
			if found > truth+1 || found < truth-1 {
				t.Errorf("%+v, seed %d: %d factors, drawn with %d", c, seed, found, truth)
			}
		}
	}
	if t.Logf("right in %d of %d", right, n); 10*right < 9*n {
		t.Errorf("right in %d of %d", right, n)
	}
}
