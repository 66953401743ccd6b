package regression_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"parley/method/methodtest"
	"parley/methods/regression"
	"parley/methods/regression/partitioned"
	"parley/privacy"
	"parley/problem"
)

const publishedRows = "rows: [{site: a, rows: 2000}, {site: b, rows: 400}]\n"

// What a site is asked for is what was said beforehand, and keeps the total; noise is
// no more than it takes.
func TestChargesKeepTheTotal(t *testing.T) {
	withDiagnostics := strings.Replace(protected, "total", "diagnostics: 0.1, total", 1)
	for name, c := range map[string]struct {
		options, privacy string
		sums             int     // of site a
		least            float64 // of the total that is used
	}{
		"natural":                {twoLevels + "rounds: 7", protected, 7, 0.999},
		"natural, replace one":   {twoLevels + "rounds: 7", strings.Replace(protected, "add-remove", "replace-one", 1), 7, 0.999},
		"natural, diagnostics":   {twoLevels + "rounds: 7", withDiagnostics, 8, 0.999},
		"whole sites":            {twoLevels + "rounds: 3\nclip: 100", strings.Replace(protected, "unit: subject", "unit: site", 1), 3, 0.999},
		"published":              {twoLevels + "variant: published\n" + publishedRows, protected, 0, 0.4}, // its accountant wastes half
		"published, diagnostics": {twoLevels + "variant: published\n" + publishedRows, withDiagnostics, 0, 0.3},
	} {
		p := planOf(t, 2, []string{"a", "b"}, c.options, c.privacy)
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
		for _, task := range methodtest.Tasks(t, regression.Method{}, p, drawn(13, 60, 2, yesNo).config(t, p).Data)["a"] {
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

// Where the published accountant allows not one update, the plan is refused.
func TestPublishedTotalThatAllowsNothing(t *testing.T) {
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"variant: published\n"+publishedRows, strings.Replace(protected, "epsilon: 2", "epsilon: 0.1", 1))
	_, err := methods.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.total" {
		t.Errorf("got %v", err)
	}
}

// With delta_by_rows a site makes as many updates as the published accountant allows at its own
// δ, all of them keep the promise of the plan, and a promise of less than a site's δ is refused.
func TestPublishedDeltaByRows(t *testing.T) {
	options := twoLevels + "variant: published\npublished: {steps: 25}\n" + publishedRows
	updates := func(options, delta, site string) int {
		p := planOf(t, 2, []string{"a", "b"}, options, strings.Replace(protected, "1e-5", delta, 1))
		list, err := regression.Method{}.Requests(p, site)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Times
	}
	byRows := strings.Replace(options, "steps: 25", "steps: 25, delta_by_rows: true", 1)
	for site, delta := range map[string]string{"a": "1e-4", "b": "1e-3"} { // of 2000 and 400 rows
		got, want, other := updates(byRows, "1e-3", site), updates(options, delta, site), updates(options, "1e-5", site)
		if got != want || got <= other {
			t.Errorf("site %s: %d updates, %d at a δ of %s and %d at less", site, got, want, delta, other)
		}
	}
	p := planOf(t, 2, []string{"a", "b"}, byRows, strings.Replace(protected, "1e-5", "1e-3", 1))
	cost, err := methods.Cost(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range cost.Sites {
		for _, l := range site.Losses {
			if l.Adjacency == p.Privacy.Adjacency && (l.Delta != 1e-3 || *l.Epsilon > p.Privacy.Total.Epsilon) {
				t.Errorf("%+v spends %v at δ %v", site, *l.Epsilon, l.Delta)
			}
		}
	}
	p = planOf(t, 2, []string{"a", "b"}, byRows, strings.Replace(protected, "1e-5", "1e-4", 1))
	wrong := problem.Problem{}
	if _, err := methods.Cost(p); !errors.As(err, &wrong) || wrong.Where != "privacy.total.delta" || !strings.Contains(wrong.What, "site b with 400 rows, 0.001") {
		t.Errorf("got %v", err)
	}
}

// With a total beyond all use the noise is small: then a private study ends where
// central inference does, by every schedule, and the noised quality is right.
func TestPrivateStudiesLearn(t *testing.T) {
	s := drawn(13, 400, 3, yesNo)
	loose := strings.Replace(protected, "{epsilon: 2, delta: 1e-5}", "{epsilon: 1e6, delta: 1e-5}", 1)
	for name, options := range map[string]string{
		"synchronous":  "rounds: 150\ndamping: 0.5\nclip: 20",
		"sequential":   "rounds: 150\ndamping: 0.5\nclip: 20\nschedule: sequential",
		"asynchronous": "rounds: 150\ndamping: 0.4\nclip: 20\nschedule: asynchronous",
		"random":       "rounds: 150\ndamping: 0.5\nclip: 20\nschedule: random",
	} {
		p := planOf(t, 3, []string{"a", "b"}, twoLevels+options, strings.Replace(loose, "total", "diagnostics: 0.2, total", 1))
		m, out := run(t, s.config(t, p))
		central, err := partitioned.Central(t.Context(), p, s.table(t, p, nil))
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

// The published variant asks each site for as many updates as its own total allows,
// however often the others are asked.
func TestPublishedSitesRunToTheirOwnLimits(t *testing.T) {
	s := drawn(14, 120, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"variant: published\nrows: [{site: a, rows: 4000}, {site: b, rows: 400}]\npublished: {noise: 8, steps: 5, draws: 4}", strings.Replace(protected, "epsilon: 2", "epsilon: 1", 1))
	charges := map[string]int{}
	for _, site := range p.Sites {
		list, err := regression.Method{}.Requests(p, site)
		if err != nil {
			t.Fatal(err)
		}
		charges[site] = list[0].Times
	}
	m, _ := run(t, s.config(t, p))
	for _, site := range m.Sites {
		if site.Updates != charges[site.Name] {
			t.Errorf("site %s made %d updates of %d", site.Name, site.Updates, charges[site.Name])
		}
	}
	if charges["a"] <= charges["b"] {
		t.Errorf("a small rate allows %v updates, a large one %v", charges["a"], charges["b"])
	}
}
