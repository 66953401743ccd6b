package judge_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/judge"
	"parley/judge/evaluate"
	"parley/study"
)

// ownData is a plan of three sites with a folder each. All use the same ids;
// the second lacks a view, and at the third a feature does not vary.
func ownData(t *testing.T) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 {
		draw(t, filepath.Join(dir, fmt.Sprint("data", i)), uint64(i+1), 30, i == 2)
	}
	testkit.Do(t, os.Remove(filepath.Join(dir, "data1", "view_v.csv")))
	return parse(t, dir, `{parley: 1, name: own, sites: [one, two, three], views: `+threeViews+`, subjects: [group],
		method: {name: factors, latent: 2, rounds: 1}, privacy: {protection: none}, local: {sites: {one: data0, two: data1, three: data2}}}`)
}

func TestSitesWithTheirOwnData(t *testing.T) {
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: ownData(t), Methods: methods,
		Folds: 3, Repeats: 2, Dir: t.TempDir()}))(t)
	if len(ev.Notes) > 0 {
		t.Errorf("notes: %v", ev.Notes)
	}
	if ev.Subjects != 90 || ev.Label != "group" {
		t.Errorf("%d subjects, label %q", ev.Subjects, ev.Label)
	}
	if s := ev.Find("folds", "column", judge.Federated, judge.ErrorTest, ""); s == nil || s.N != 6 {
		t.Errorf("folds within sites: %+v", s)
	}
	// Real sites are left out once, however many repeats.
	s := ev.Find("sites", "column", judge.Federated, judge.ErrorTest, "")
	if s == nil || s.N != 3 {
		t.Errorf("sites left out: %+v", s)
	}
	// Nobody at the second site can be asked about the view that it lacks.
	views := map[string]int{}
	for _, s := range ev.Results {
		if s.Part == "sites" && s.Site == "two" && s.Fit == judge.Federated && s.Measure == judge.ErrorHidden {
			views[s.View]++
			if s.SD != nil {
				t.Errorf("one experiment has a standard deviation: %+v", s)
			}
		}
	}
	if fmt.Sprint(views) != "map[:1 u:1 w:1]" {
		t.Errorf("hidden views at the second site: %v", views)
	}
	// The mean of the site is a rival where the site of those held out is known.
	if s := ev.Find("folds", "column", judge.SiteMean, judge.ErrorTest, ""); s == nil || s.N != 6 ||
		ev.Find("sites", "column", judge.SiteMean, judge.ErrorTest, "") != nil {
		t.Errorf("means of sites: %+v", s)
	}
	if s := ev.Find("folds", "column", judge.Alone, judge.ErrorTest, "w"); s == nil || s.N != 6 {
		t.Errorf("one site alone: %+v", s)
	}
}

// A subject of whom only a view was measured that nobody else at the site has is no reason
// to leave the sites' own fits out.
func TestSubjectsOfWhomTheirSiteKnowsNothing(t *testing.T) {
	p := ownData(t)
	for _, view := range []string{"u", "w"} { // at the second site, which has no v either, nobody but the first has w
		path := filepath.Join(filepath.Dir(p.Local.Sites["two"]), "data1", "view_"+view+".csv")
		b := testkit.Get(os.ReadFile(path))(t)
		lines := strings.SplitAfter(string(b), "\n")
		if view == "w" {
			lines = lines[:2]
		} else {
			lines = append(lines[:1], lines[2:]...)
		}
		testkit.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o666))
	}
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 30,
		Repeats: 1, Dir: t.TempDir()}))(t)
	if s := ev.Find("folds", "column", judge.Alone, judge.ErrorTest, ""); s == nil || s.N != 30 {
		t.Errorf("one site alone: %+v, %v", s, ev.Notes)
	}
}

// One site alone is asked about its own subjects, who are unlike those of other sites, and
// the shared fit about the same values. What is far off is said in words.
func TestOneSiteAloneIsAskedAboutItsOwnSubjects(t *testing.T) {
	dir := t.TempDir()
	for i, n := range []int{40, 40, 12} {
		draw(t, filepath.Join(dir, fmt.Sprint("data", i)), uint64(i+1), n, false)
	}
	path := filepath.Join(dir, "data1", "view_u.csv") // of the second site, in other units
	b := testkit.Get(os.ReadFile(path))(t)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, line := range lines[1:] {
		var id string
		var x [3]float64
		fields := strings.Split(line, ",")
		id = fields[0]
		for j := range x {
			testkit.Get(fmt.Sscan(fields[j+1], &x[j]))(t)
		}
		lines[i+1] = fmt.Sprintf("%s,%v,%v,%v", id, x[0]+500, x[1]-700, x[2]+900)
	}
	testkit.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666))
	p := parse(t, dir, `{parley: 1, name: own, sites: [one, two, three], views: `+threeViews+`,
		method: {name: factors, latent: 2, rounds: 0, site_means: pooled}, privacy: {protection: none}, local: {sites: {one: data0, two: data1, three: data2}}}`)
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 3,
		Repeats: 2, Dir: t.TempDir()}))(t)
	type key struct{ site, fit, measure string }
	got := map[key]judge.Summary{}
	for _, s := range ev.Results {
		if s.Part == "folds" && s.View == "" {
			got[key{s.Site, s.Fit, s.Measure}] = s
		}
	}
	// About everybody's subjects a site alone would err by half a range.
	for _, site := range []string{"one", "two", "all sites"} {
		if s, ok := got[key{site, judge.Alone, judge.ErrorTest}]; !ok || s.Mean > 0.15 || s.N != 6 ||
			s.Difference == nil {
			t.Errorf("site %s alone: %+v", site, s)
		}
		if s, ok := got[key{site, judge.Federated, judge.ErrorTest}]; !ok || s.N != 6 {
			t.Errorf("the shared fit at site %s: %+v", site, s)
		}
	}
	all, own := got[key{"", judge.Federated, judge.ErrorTest}], got[key{"all sites", judge.Federated, judge.ErrorTest}]
	if d := all.Mean - own.Mean; d > 1e-12 || d < -1e-12 { // every site could be fitted
		t.Errorf("the shared fit errs by %v, and by %v on every site's own subjects", all.Mean, own.Mean)
	}
	left := ev.Find("sites", "column", judge.Federated, judge.LogLik, "")
	if left == nil || !left.FarOff || left.Mean > -1000 {
		t.Errorf("the second site, from the others: %+v", left)
	}
	var text strings.Builder
	testkit.Do(t, ev.Print(&text))
	if !regexp.MustCompile(`(?m)^two  +far off .* 0\.0 %$`).MatchString(text.String()) ||
		!strings.Contains(text.String(), "Taking part pays at 0 of 3 sites and costs at 2") ||
		!strings.Contains(text.String(), "Far off: below −1000 nats") {
		t.Error(text.String())
	}
}

func TestWhatCannotBeEvaluatedIsSaid(t *testing.T) {
	own, split, none := ownData(t), plan(t, simulated), plan(t, simulated)
	none.Local = nil
	twoViews := plan(t, simulated)
	pair := filepath.Dir(twoViews.Local.Data)
	twoViews = parse(t, pair, `{parley: 1, name: pair, sites: [one, two], views: [{name: u, features: [a, b, c]}, {name: v, features: [d, e, f]}],
		method: {name: factors, latent: 1}, privacy: {protection: none}, local: {data: data, split: {scenario: IID}}}`)
	testkit.Do(t, os.Remove(filepath.Join(pair, "data", "view_w.csv")))
	for _, c := range []struct {
		want string
		plan *study.Plan
		edit func(*judge.EvaluationConfig)
	}{
		{"local: the plan does not say where this process finds data\n  hint: add a local section", none, nil},
		{"--label: \"sex\" is not a subject column of the plan\n  hint: the plan names: group", split,
			func(c *judge.EvaluationConfig) { c.Label = "sex" }},
		{"--label: \"group\" is not a subject column of the plan\n  hint: the plan names none", twoViews,
			func(c *judge.EvaluationConfig) { c.Label = "group" }},
		{"--folds: 61 folds of 60 subjects\n  hint: from 2 to 60", split, func(c *judge.EvaluationConfig) {
			c.Folds = 61
		}},
		{"--folds: 1 folds of 60", split, func(c *judge.EvaluationConfig) { c.Folds = 1 }},
		{"--repeats: 0 repeats", split, func(c *judge.EvaluationConfig) { c.Repeats = 0 }},
		{"--sites: -1 sites", split, func(c *judge.EvaluationConfig) { c.Sites = -1 }},
		{"--scenarios: scenario K: no subject for site site41", split, func(c *judge.EvaluationConfig) {
			c.Sites, c.Scenarios = 100, []evaluate.Scenario{evaluate.K}
		}},
		{"there are only 2 views", twoViews, func(c *judge.EvaluationConfig) {
			c.Scenarios = []evaluate.Scenario{evaluate.K}
		}},
		{"scenario G: there is no column that says which groups", twoViews, func(c *judge.EvaluationConfig) {
			c.Scenarios = []evaluate.Scenario{evaluate.G}
		}},
		{"sites that have their own data are not simulated\n  hint: leave out --scenarios", own,
			func(c *judge.EvaluationConfig) { c.Scenarios = []evaluate.Scenario{evaluate.IID} }},
		{"scenario unequal: the plan does not say how far sites differ", split, func(c *judge.EvaluationConfig) {
			c.Scenarios = []evaluate.Scenario{evaluate.Unequal}
		}},
		{"--scenarios: scenario unequal: 3 sites: want an even number", unequal(t, "rho: 0.5"),
			func(c *judge.EvaluationConfig) { c.Sites, c.Scenarios = 3, []evaluate.Scenario{evaluate.Unequal} }},
		{"the plan does not say at which site a subject is", split, func(c *judge.EvaluationConfig) {
			c.Scenarios = []evaluate.Scenario{evaluate.Column}
		}},
	} {
		config := judge.EvaluationConfig{Plan: c.plan, Methods: methods, Folds: 3, Repeats: 1,
			Dir: filepath.Join(t.TempDir(), "out")}
		if c.edit != nil {
			c.edit(&config)
		}
		_, err := judge.Evaluate(context.Background(), config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if _, err := os.Stat(config.Dir); err == nil {
			t.Errorf("%s: a directory was made all the same", c.want)
		}
	}
	// By default what the data do not allow is left out, and said.
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: twoViews, Methods: methods,
		Folds: 3, Repeats: 1, Dir: t.TempDir()}))(t)
	if len(ev.Notes) != 3 || ev.Find("folds", "iid", judge.Federated, judge.ErrorTest, "") == nil || ev.Label != "" {
		t.Errorf("label %q, notes %q", ev.Label, ev.Notes)
	}
}

// A data set with a column of sites is one whose sites are known.
func TestSitesByColumn(t *testing.T) {
	dir := t.TempDir()
	draw(t, filepath.Join(dir, "data"), 1, 60, false)
	p := parse(t, dir, `{parley: 1, name: columns, sites: [f, m], views: `+threeViews+`, subjects: [group],
		method: {name: factors, latent: 2, rounds: 1}, privacy: {protection: none}, local: {data: data, split: {scenario: column, by: group}}}`)
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 2,
		Repeats: 1, Dir: t.TempDir()}))(t)
	at := map[string]bool{}
	for _, s := range ev.Results {
		if s.Site != "" && s.Site != "all sites" {
			at[s.Scenario+" "+s.Site] = true
		}
	}
	if fmt.Sprint(at) != "map[column f:true column m:true]" {
		t.Errorf("sites left out: %v", at)
	}
}

// unequal is a plan of two unequal sites, and a third group of ten subjects that
// are at neither.
func unequal(t *testing.T, how string) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	draw(t, filepath.Join(dir, "data"), 1, 70, false)
	path := filepath.Join(dir, "data", "subjects.csv")
	b := testkit.Get(os.ReadFile(path))(t)
	lines := strings.Split(string(b), "\n")
	for i := 1; i <= 10; i++ {
		lines[i] = strings.TrimRight(lines[i], "fm") + "x"
	}
	testkit.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666))
	return parse(t, dir, `{parley: 1, name: small, sites: [one, two], views: `+threeViews+`, subjects: [group],
		method: {name: factors, latent: 2, rounds: 1}, privacy: {protection: none},
		local: {data: data, split: {scenario: unequal, by: group, unused: [x], `+how+`}}}`)
}

func TestUnequalSites(t *testing.T) {
	config := judge.EvaluationConfig{Plan: unequal(t, "rho: 0.5, kappa: 0.5"), Methods: methods, Folds: 2, Repeats: 1,
		Dir: t.TempDir()}
	ev := testkit.Get(judge.Evaluate(context.Background(), config))(t)
	if ev.Subjects != 60 {
		t.Errorf("%d subjects", ev.Subjects)
	}
	for _, sc := range []string{"iid", "unequal"} {
		if s := ev.Find("folds", sc, judge.Federated, judge.ErrorTest, ""); s == nil || s.N != 2 {
			t.Errorf("scenario %s: %+v", sc, s)
		}
	}
	if s := ev.Find("sites", "unequal", judge.Federated, judge.ErrorTest, ""); s == nil || s.N != 2 {
		t.Errorf("sites left out: %+v", s)
	}
	config.Plan.Local.Split.Kappa = 0.25
	_, err := judge.Evaluate(context.Background(), config)
	if want := "local.split of unequal sites rho 0.5, kappa 0.5, not rho 0.5, kappa 0.25"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// shiftedData is a plan of three sites whose means differ.
func shiftedData(t *testing.T, options string) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 {
		site := filepath.Join(dir, fmt.Sprint("data", i))
		draw(t, site, uint64(i+1), 40, false)
		for _, view := range []string{"u", "v", "w"} {
			shift(t, filepath.Join(site, "view_"+view+".csv"), float64(i))
		}
	}
	return parse(t, dir, `{parley: 1, name: own, sites: [one, two, three], views: `+threeViews+`, subjects: [group],
		method: {name: factors, latent: 2, rounds: 0`+options+`}, privacy: {protection: none}, local: {sites: {one: data0, two: data1, three: data2}}}`)
}

// shift adds to the columns of a table, up and down in turn.
func shift(t *testing.T, file string, by float64) {
	t.Helper()
	f := testkit.Get(os.Open(file))(t)
	records, err := csv.NewReader(f).ReadAll()
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	for i, r := range records {
		for j := 1; i > 0 && j < len(r); j++ {
			x := testkit.Get(strconv.ParseFloat(r[j], 64))(t)
			r[j] = fmt.Sprint(x + 2*by*float64(1-2*(j%2)))
		}
		testkit.Do(t, w.Write(r))
	}
	w.Flush()
	testkit.Do(t, os.WriteFile(file, []byte(b.String()), 0o666))
}

// Subjects held out of a site that took part are predicted as subjects of that site.
func TestSubjectsHeldOutAreAtHome(t *testing.T) {
	got := map[string]float64{}
	for _, options := range []string{"", ", site_means: pooled", ", site_means: separate"} {
		ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: shiftedData(t, options),
			Methods: methods, Folds: 3, Repeats: 1, Dir: t.TempDir()}))(t)
		s := ev.Find("folds", "column", judge.Federated, judge.LogLik, "")
		if s == nil {
			t.Fatal("no log-likelihood")
		}
		got[options] = s.Mean
		if c := ev.Find("folds", "column", judge.Federated, judge.Coverage, ""); !(c.Mean > 0.8 && c.Mean < 0.98) {
			t.Errorf("%q: intervals of 90 %% cover %.3f", options, c.Mean)
		}
	}
	t.Logf("%v", got)
	if own, pooled := got[", site_means: separate"], got[", site_means: pooled"]; own < pooled+1 || got[""] != own {
		t.Errorf("%.2f nats with sites' own means, %.2f without, %.2f where the data decide", own, pooled, got[""])
	}
}
