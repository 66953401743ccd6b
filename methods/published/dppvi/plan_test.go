package dppvi

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method/methodtest"
	"parley/privacy"
	"parley/problem"
	"parley/study"
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
		"published":              {twoLevels + "" + publishedRows, protected, 0, 0.4}, // its accountant wastes half
		"published, diagnostics": {twoLevels + "" + publishedRows, withDiagnostics, 0, 0.3},
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
		list := testkit.Get(Method{}.Requests(p, "a"))(t)
		asked := map[string]int{}
		for _, task := range methodtest.Tasks(t, Method{}, p, config(t, drawn(13, 60, 2, yesNo), p).Data)["a"] {
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
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+""+publishedRows, strings.Replace(protected, "epsilon: 2", "epsilon: 0.1", 1))
	_, err := methods.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.total" {
		t.Errorf("got %v", err)
	}
}

// With delta_by_rows a site makes as many updates as the published accountant allows at its own
// δ, all of them keep the promise of the plan, and a promise of less than a site's δ is refused.
func TestPublishedDeltaByRows(t *testing.T) {
	options := twoLevels + "update: {steps: 25}\n" + publishedRows
	updates := func(options, delta, site string) int {
		p := planOf(t, 2, []string{"a", "b"}, options, strings.Replace(protected, "1e-5", delta, 1))
		list := testkit.Get(Method{}.Requests(p, site))(t)
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
	cost := testkit.Get(methods.Cost(p))(t)
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

// The published variant asks each site for as many updates as its own total allows,
// however often the others are asked.
func TestPublishedSitesRunToTheirOwnLimits(t *testing.T) {
	s := drawn(14, 120, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"rows: [{site: a, rows: 4000}, {site: b, rows: 400}]\nupdate: {noise: 8, steps: 5, draws: 4}", strings.Replace(protected, "epsilon: 2", "epsilon: 1", 1))
	charges := map[string]int{}
	for _, site := range p.Sites {
		list := testkit.Get(Method{}.Requests(p, site))(t)
		charges[site] = list[0].Times
	}
	m, _ := run(t, config(t, s, p))
	for _, site := range m.Sites {
		if site.Updates != charges[site.Name] {
			t.Errorf("site %s made %d updates of %d", site.Name, site.Updates, charges[site.Name])
		}
	}
	if charges["a"] <= charges["b"] {
		t.Errorf("a small rate allows %v updates, a large one %v", charges["a"], charges["b"])
	}
}

// Where the plan declares numbers of rows, another size of its study has others; else
// it stays as it is.
func TestDeclaredRowsAreThoseOfTheStudy(t *testing.T) {
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+""+publishedRows, protected)
	before := slices.Clone(p.Method.Options.(*Options).Rows)
	own := *p
	own.Sites = []string{"b", "c"}
	sized := Method{}.Sized(&own, map[string]int{"b": 77, "c": 0})
	if rows := sized.Method.Options.(*Options).Rows; !slices.Equal(rows, []SiteRows{{Site: "b", Rows: 77}, {Site: "c", Rows: 1}}) {
		t.Errorf("%+v", rows)
	}
	if !reflect.DeepEqual(p.Method.Options.(*Options).Rows, before) {
		t.Error("the plan itself was changed")
	}
	if p := planOf(t, 2, []string{"a", "b"}, twoLevels, unprotected); (Method{}).Sized(p, map[string]int{"a": 3}) != p {
		t.Error("a plan that declares no rows was changed")
	}
}

// Every mistake is told by key, with what would be right.
func TestOptionsThatContradictThePlan(t *testing.T) {
	rows := "rows: [{site: a, rows: 100}, {site: b, rows: 900}]\n"
	globally, exactly := twoLevels+"algorithm: global\n", twoLevels+"algorithm: exact\n"
	for name, c := range map[string]struct{ options, privacy, want string }{
		"unknown algorithm":      {twoLevels + "algorithm: other", unprotected, `"other" is not known`},
		"unknown schedule":       {twoLevels + "schedule: other", unprotected, `"other" is not known`},
		"rows of a stranger":     {twoLevels + "rows: [{site: z, rows: 1}]", unprotected, "not a site of the plan"},
		"rows of some":           {twoLevels + "rows: [{site: a, rows: 1}]", unprotected, "site b has no entry"},
		"rows twice":             {twoLevels + "rows: [{site: a, rows: 1}, {site: a, rows: 1}, {site: b, rows: 1}]", unprotected, "named twice"},
		"no row":                 {twoLevels + "rows: [{site: a, rows: 0}, {site: b, rows: 1}]", unprotected, "0 rows"},
		"global without rows":    {twoLevels + "algorithm: global", unprotected, "method.rows: missing"},
		"global in order":        {globally + "schedule: sequential\n" + rows, unprotected, "is not one of algorithm: global"},
		"global with tolerance":  {globally + "tolerance: 1\n" + rows, unprotected, "never settle"},
		"global batch":           {globally + "global: {batch_share: 2}\n" + rows, unprotected, "cannot be in a minibatch"},
		"global steps":           {globally + "global: {steps: 2}\n" + rows, unprotected, "takes one step"},
		"global draws":           {globally + "global: {draws: 0}\n" + rows, unprotected, "method.global.draws"},
		"global elsewhere":       {twoLevels + "global: {batch_share: 0.1}", unprotected, "belong to algorithm: global"},
		"update elsewhere":       {exactly + "update: {steps: 2}", unprotected, "belong to algorithm: pvi"},
		"update both batches":    {twoLevels + "update: {batch: 10, batch_share: 0.1}", unprotected, "one of batch and"},
		"update no batch":        {twoLevels + "update: {batch: -1}", unprotected, "method.update.batch"},
		"noise without privacy":  {twoLevels + "update: {noise: 5}", unprotected, "mean nothing with protection: none"},
		"clip without privacy":   {twoLevels + "clip: 5", unprotected, "means nothing with protection: none"},
		"exact in private":       {exactly + rows, protected, "no differentially private form"},
		"tolerance of steps":     {twoLevels + "tolerance: 0.1", unprotected, "algorithm: exact"},
		"global in private":      {twoLevels + "algorithm: global\n" + rows, protected, "no differentially private form"},
		"published without rows": {twoLevels + "variant: published", protected, "method.rows: missing"},
		"published by sites":     {twoLevels + "" + rows, strings.Replace(protected, "unit: subject", "unit: site", 1), "one subject more or less"},
		"published noise":        {twoLevels + "variant: published\nupdate: {noise: 0}\n" + rows, protected, "method.update.noise"},
		"published steps":        {twoLevels + "variant: published\nupdate: {steps: 0}\n" + rows, protected, "method.update.steps"},
		"published draws":        {twoLevels + "variant: published\nupdate: {draws: 0}\n" + rows, protected, "method.update.draws"},
		"counts":                 {"outcome: {column: y}\nlikelihood: poisson", unprotected, `"poisson" is not known`},
		"variant":                {twoLevels + "variant: global", unprotected, "unknown key"},
	} {
		_, err := study.Parse("plan.yaml", []byte(planText(2, []string{"a", "b"}, c.options, c.privacy)), methods)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
