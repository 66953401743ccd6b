package factors

import (
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

// Every second row of each site is another visit of the person before, and the report says so; it says nothing
// of rows as they were drawn (the seed is fixed).
func TestVisitsOfOnePersonAreNamed(t *testing.T) {
	const says = "Subjects whose ids follow each other are alike: "
	for _, visits := range []bool{false, true} {
		s := shape{dims: []int{8, 9, 6}, sites: 3, rows: 80, seed: 12, options: "  latent: 2\n  rounds: 0\n"}.study(t)
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				if !visits {
					return table.Row(i).Views
				}
				var views [][]float64
				for k, first := range table.Row(i - i%2).Views { // half of the second visit is the first again
					again := slices.Clone(first)
					for j, x := range table.Row(i).Views[k] {
						again[j] = (again[j] + x) / 2
					}
					views = append(views, again)
				}
				return views
			})
		}
		said := factorstest.Must(newPlay(t, s).run())(t).Verdicts()
		if named := slices.ContainsFunc(said, func(v string) bool { return strings.HasPrefix(v, says) }); named != visits {
			t.Errorf("visits: %v; said %q", visits, said)
		}
	}
}
