package dppvi

import (
	"slices"
	"testing"

	"parley/papers/experiment"
)

// On distribution C a run that is judged on its way is the run itself, PVI rises, and Global VI fails
// by its published settings.
func TestRunsAreJudgedOnTheirWay(t *testing.T) {
	c, err := open(t.Context(), experiment.Data{Clone: "../.."})
	if err != nil {
		t.Fatal(err)
	}
	scores := func(r rival) experiment.Values {
		v, err := c.scores(t.Context(), r, c.spread("C"), 1)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, r := range []rival{exact, dpPVI(1), today(1)} {
		if _, err := c.study(r, c.spread("C"), 1); err != nil {
			t.Errorf("%s has no plan: %v", r.name, err)
		}
	}
	short := pvi.with("rounds", 10)
	plain, seen := scores(short), scores(short.watch())
	if n := seen[updates]; len(n) != 1 || n[0] != 100 || !slices.Equal(plain[accuracy], seen[accuracy]) ||
		!slices.Equal(seen[after(accuracy, 100)], seen[accuracy]) ||
		!slices.Equal(seen[after(logLik, 5000)], seen[logLik]) {
		t.Errorf("a run is not its own: %v, %v", plain, seen)
	}
	if first, end := seen[after(accuracy, 10)][0], seen[accuracy][0]; end < 70 || first > end {
		t.Errorf("PVI predicts %v %% after 10 updates and %v %% after 100", first, end)
	}
	if x := scores(globalVI.with("rounds", 100))[accuracy][0]; x > 58 {
		t.Errorf("Global VI predicts %v %%, where 54 are published", x)
	}
	if l := path("PVI", seen, accuracy); len(l.X) != 10 || l.X[9] != 100 {
		t.Errorf("the curve is %+v", l)
	}
}

// Claims are read off curves: one that falls by more than its runs differ falls, and nearness begins
// with the last stretch that is near.
func TestClaimsAreReadOffCurves(t *testing.T) {
	v := experiment.Values{updates: {30, 30, 30}, traffic: {9e6, 9e6, 9e6}, accuracy: {80, 80.1, 80.2},
		logLik: {-1, -1.1, -1.2}}
	for n, x := range map[int][]float64{10: {84, 84.2, 84.1}, 20: {80.3, 80.2, 80.4}, 30: v[accuracy]} {
		v[after(accuracy, n)], v[after(logLik, n)] = x, v[logLik]
	}
	o := experiment.Outcomes{id("C", dpPVI(1)): v, id("A", pvi): v}
	t1, t2 := risen(o, []rival{dpPVI(1), pvi}), communications(o, []rival{pvi})
	for i, want := range []string{"C", "DP-PVI, ε 1", accuracy, "10", "84.10 ± 0.10", "80.10 ± 0.10"} {
		if got := t1.Columns[i].Text[0]; got != want {
			t.Errorf("risen: %q, want %q", got, want)
		}
	}
	if says := t1.Columns[7].Text; t1.Len() != 2 || says[0] != "falls" || says[1] != "does not fall" {
		t.Errorf("risen: %q", says)
	}
	for i, want := range []string{"A", "PVI", "30", "9.0", "300.0", "20", "6.00", "80.10 ± 0.10"} {
		if got := t2.Columns[i].Text[0]; got != want {
			t.Errorf("communications: %q, want %q", got, want)
		}
	}
}
