package number

import (
	"testing"

	"parley/method"
)

// The recommendation finds the true number of factors where the scaling lets
// it, and not where every feature is scaled by itself with one noise variance
// per view, which is warned of. The experiment has two seeds.
func TestRecommendation(t *testing.T) {
	c := method.SelectConfig{Values: []int{1, 2, 3, 4, 5, 6, 7}}
	for _, s := range settings {
		for q := 3; q <= 6; q++ {
			if s.name == "noise per feature, min-max" || s.name == "one scale per view, noise × 10" ||
				!s.kept && q != 4 {
				continue // left to the experiment
			}
			out, err := choose(t.Context(), s, 1, q, c)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: q}[s.kept]; out.Recommended != want {
				t.Errorf("%s: %d recommended, want %d", s.name, out.Recommended, want)
			}
			warned := false
			for _, w := range out.Warnings {
				warned = warned || w.Where == "method.scaling"
			}
			if warned == s.kept {
				t.Errorf("%s: warnings %v", s.name, out.Warnings)
			}
		}
	}
}
