package factors

import (
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
)

// What the order of rows, the absence of views and the sum of a view's features show is named. Of rows as they were
// drawn something is said with a probability of 0.01 for each of four verdicts: more than seven in 60 studies, in one of
// 500 suites.
func TestOrderAbsenceAndSumsAreNamed(t *testing.T) {
	const (
		visits = "Subjects whose ids follow each other are alike: "
		slow   = "Scores change slowly along the rows of the sites' files: "
		absent = "Values may be missing because of what they are: all of "
		whole  = "The features of a view add up to the same in every subject: "
	)
	add := func(x []float64, by float64) []float64 {
		out := slices.Clone(x)
		for j := range out {
			out[j] += by
		}
		return out
	}
	first := func(by func(i int) float64) func(*dataset.Table, int) [][]float64 {
		return func(table *dataset.Table, i int) [][]float64 {
			views := slices.Clone(table.Row(i).Views)
			views[0] = add(views[0], by(i))
			return views
		}
	}
	for _, c := range []struct {
		name, says string
		views      func(table *dataset.Table, i int) [][]float64
	}{
		{"as drawn", "", func(table *dataset.Table, i int) [][]float64 { return table.Row(i).Views }},
		{"visits", visits, func(table *dataset.Table, i int) [][]float64 { // half of the second visit is the first again
			var views [][]float64
			for k, first := range table.Row(i - i%2).Views {
				again := slices.Clone(first)
				for j, x := range table.Row(i).Views[k] {
					again[j] = (again[j] + x) / 2
				}
				views = append(views, again)
			}
			return views
		}},
		{"seasons", slow, first(func(i int) float64 { return 1.4 * math.Sin(2*math.Pi*float64(i)/50) })},
		{"drift", slow, first(func(i int) float64 { return float64(i) / 25 })},
		{"batches of 40", slow, first(func(i int) float64 { return 1.5 * float64([]int{1, -1, 0}[i/40]) })},
		{"another kit", slow, first(func(i int) float64 { return 2 * float64(i/60) })},
		{"absence", absent, func(table *dataset.Table, i int) [][]float64 {
			views := slices.Clone(table.Row(i).Views)
			if sum := views[1][0] + views[1][1] + views[1][2]; sum > 1 {
				views[1] = nil
			}
			return views
		}},
		{"composition", whole, func(table *dataset.Table, i int) [][]float64 {
			views := slices.Clone(table.Row(i).Views)
			parts, sum := make([]float64, len(views[0])), 0.0
			for j, x := range views[0] {
				parts[j] = math.Exp(x / 4)
				sum += parts[j]
			}
			for j := range parts {
				parts[j] = math.Round(1e4*parts[j]/sum) / 100
			}
			views[0] = parts
			return views
		}},
	} {
		seeds, wrong := 1, 0
		if c.says == "" {
			seeds = testkit.Sized(6, 60)
		}
		for seed := range seeds {
			s := shape{dims: []int{8, 9, 6}, sites: 3, rows: 120, seed: uint64(12 + seed), options: "  latent: 3\n"}.study(t)
			for _, site := range s.plan.Sites {
				dealt(t, s, site, c.views)
			}
			said := factorstest.Must(newPlay(t, s).run())(t).Verdicts()
			for _, says := range []string{visits, slow, absent, whole} {
				if named := slices.ContainsFunc(said, func(v string) bool { return strings.HasPrefix(v, says) }); named != (says == c.says) {
					wrong++
					t.Logf("%s, seed %d: named %v of %q; said %q", c.name, seed, named, says, said)
				}
			}
		}
		if wrong > 7*seeds/60 {
			t.Errorf("%s: wrong %d times in %d studies", c.name, wrong, seeds)
		}
	}
}
