package regression_test

import (
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method/methodtest"
	"parley/methods/regression"
	"parley/privacy"
)

// What a site is asked for is what was said beforehand, and keeps the total; noise is
// no more than it takes.
func TestChargesKeepTheTotal(t *testing.T) {
	withDiagnostics := strings.Replace(protected, "total", "diagnostics: 0.1, total", 1)
	for name, c := range map[string]struct {
		options, privacy string
		sums             int     // of site a
		least            float64 // of the total that is used
	}{
		"constants":     {twoLevels, protected, 22, 0.999},
		"learned units": {twoLevels, strings.Replace(withDiagnostics, "add-remove", "replace-one", 1), 25, 0.999},
	} {
		text := planText(2, []string{"a", "b"}, c.options, c.privacy)
		if name == "learned units" {
			text = strings.Replace(text, "[x0, x1]", "[{name: x0, range: [-4, 4]}, {name: x1, range: [-9, 9]}]", 1)
			text = regexp.MustCompile("  constants: .*\n").ReplaceAllString(text, "")
		}
		p := parse(t, text)
		cost, err := methods.Cost(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		site := cost.Sites[0]
		for _, l := range site.Losses {
			if l.Adjacency != p.Privacy.Adjacency {
				continue
			}
			if e := *l.Epsilon / p.Privacy.Total.Epsilon; e > 1 || e < c.least {
				t.Errorf("%s: uses %v of the total", name, e)
			}
		}
		if site.Unprotected > 0 || c.sums > 0 && site.Sums != c.sums {
			t.Errorf("%s: %d sums, %d releases without noise", name, site.Sums, site.Unprotected)
		}
		list := testkit.Get(regression.Method{}.Requests(p, "a"))(t)
		asked := map[string]int{}
		for _, task := range methodtest.Tasks(t, regression.Method{}, p, config(t, drawn(13, 60, 2, yesNo), p).Data)["a"] {
			asked[task.Kind]++
		}
		for _, l := range list {
			if asked[l.Kind] != l.Times || l.Request.Protection != privacy.Differential {
				t.Errorf("%s: task %q is listed %d times with protection %q, and was given %d times", name, l.Kind, l.Times, l.Request.Protection, asked[l.Kind])
			}
			delete(asked, l.Kind)
		}
		if len(asked) > 0 {
			t.Errorf("%s: given and not listed: %v", name, asked)
		}
	}
}
