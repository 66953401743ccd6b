package regression_test

import (
	"parley/internal/testkit"
	"regexp"
	"strings"
	"testing"
)

// Noise is no more than the plan's total takes, with constants or with units that histograms tell.
func TestChargesUseTheTotal(t *testing.T) {
	learned := strings.Replace(planText(2, []string{"a", "b"}, twoLevels,
		strings.Replace(protected, "add-remove", "replace-one", 1)), "[x0, x1]",
		"[{name: x0, range: [-4, 4]}, {name: x1, range: [-9, 9]}]", 1)
	for _, text := range []string{planText(2, []string{"a", "b"}, twoLevels, protected),
		regexp.MustCompile("  constants: .*\n").ReplaceAllString(learned, "")} {
		p := parse(t, text)
		cost := testkit.Get(methods.Cost(p))(t)
		for _, l := range cost.Sites[0].Losses {
			if e := *l.Epsilon / p.Privacy.Total.Epsilon; l.Adjacency == p.Privacy.Adjacency && (e > 1 || e < 0.999) {
				t.Errorf("%s: uses %v of the total", l.Adjacency, e)
			}
		}
	}
}
