package regression_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"parley/method/methodtest"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
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
		"natural":              {twoLevels + "rounds: 7", protected, 7, 0.999},
		"joint, constants":     {twoLevels, protected, 22, 0.999},
		"joint":                {twoLevels, strings.Replace(withDiagnostics, "add-remove", "replace-one", 1), 25, 0.999},
		"natural, replace one": {twoLevels + "rounds: 7", strings.Replace(protected, "add-remove", "replace-one", 1), 7, 0.999},
		"natural, diagnostics": {twoLevels + "rounds: 7", withDiagnostics, 8, 0.999},
		"whole sites":          {twoLevels + "rounds: 3\nclip: 100", strings.Replace(protected, "unit: subject", "unit: site", 1), 3, 0.999},
	} {
		text := planText(2, []string{"a", "b"}, c.options, c.privacy)
		if strings.HasPrefix(name, "joint") {
			text = strings.Replace(text, "  intercept: false\n", "", 1)
		}
		if name == "joint" {
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
		list, err := regression.Method{}.Requests(p, "a")
		if err != nil {
			t.Fatal(err)
		}
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

// With a total beyond all use the noise is small: then a private study ends where
// central inference does, and the noised quality is right.
func TestPrivateStudiesLearn(t *testing.T) {
	s := drawn(13, 400, 3, yesNo)
	loose := strings.Replace(protected, "{epsilon: 2, delta: 1e-5}", "{epsilon: 1e6, delta: 1e-5}", 1)
	for name, says := range map[string]string{
		"synchronous": "rounds: 150\ndamping: 0.5\nclip: 20",
	} {
		p := planOf(t, 3, []string{"a", "b"}, twoLevels+says, strings.Replace(loose, "total", "diagnostics: 0.2, total", 1))
		m, out := run(t, config(t, s, p))
		setup, err := options.New(p)
		if err != nil {
			t.Fatal(err)
		}
		central, err := fitted.Central(t.Context(), setup, s.Table(t, p, nil))
		if err != nil {
			t.Fatal(err)
		}
		// The remaining distance is that of the falling steps, not of noise.
		if kl, err := m.Posterior.KL(central.Model.Posterior); err != nil || kl > 0.01 {
			t.Errorf("%s: %v nats from central inference, %v", name, kl, err)
		}
		// Noise of sd below 0.2 on sums over 400 rows: a count rounds to within a few.
		if n := out.Result.Metrics["subjects"]; math.Abs(n-400) > 3 {
			t.Errorf("%s: %v subjects", name, n)
		}
		if a := out.Result.Metrics["accuracy"]; a < 0.6 || a > 1 {
			t.Errorf("%s: accuracy %v", name, a)
		}
		for _, site := range m.Sites {
			if site.Updates != 150 {
				t.Errorf("%s: site %s made %d updates", name, site.Name, site.Updates)
			}
		}
	}
}
