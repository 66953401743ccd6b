package judge

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/graffl"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/privacytest"
	"parley/study"
)

// An attack that does worse than its demonstration, or better than its bound, is
// found out, and said.
func TestJudge(t *testing.T) {
	told := func(right int) method.Attack {
		return method.Attack{ToldApart: &method.ToldApart{Epsilon: 1, Delta: 1e-5, Adjacency: account.AddRemove, Trials: 8000, Right: right, Allowed: 0.731, Mechanism: 0.553}}
	}
	for name, c := range map[string]struct {
		attack method.Attack
		failed string
	}{
		"all rows":     {method.Attack{Recovered: &method.Recovered{Rows: 9, Found: 9, Expected: 9}}, ""},
		"too few rows": {method.Attack{Recovered: &method.Recovered{Rows: 9, Found: 8, Expected: 9}}, "8 of 9 rows were found"},
		"no claim":     {method.Attack{Recovered: &method.Recovered{Rows: 9}}, ""},
		"as allowed":   {told(4424), ""},
		// With half the noise Φ(0.268) = 60.6 % would be right.
		"half the noise": {told(4848), "the noise allows 0.5530"},
		"no noise":       {told(8000), "(ε, δ) allows 0.7310"},
	} {
		o := outcomeOfAttack(c.attack)
		if o.OK != (c.failed == "") || !strings.Contains(o.Failed, c.failed) {
			t.Errorf("%s: %+v", name, o)
		}
		if !o.OK && !strings.Contains(o.found(), "NOT AS DOCUMENTED") {
			t.Errorf("%s is not said: %s", name, o.found())
		}
	}
}

// By the definition: at the limit, so many or more (fewer) come with a probability of
// exactly the level. At the ends it has a closed form.
func TestClopperPearson(t *testing.T) {
	// 7 of 20 at 95 % in all: Clopper and Pearson's tables have .154 and .592.
	if low, high := clopperPearson(7, 20, 0.025); math.Abs(low-0.1539) > 1e-4 || math.Abs(high-0.5922) > 1e-4 {
		t.Errorf("7 of 20: %v to %v", low, high)
	}
	if low, high := clopperPearson(0, 50, 0.01); low != 0 || math.Abs(high-(1-math.Pow(0.01, 1./50))) > 1e-12 {
		t.Errorf("0 of 50: %v to %v", low, high)
	}
	if low, high := clopperPearson(50, 50, 0.01); high != 1 || math.Abs(low-math.Pow(0.01, 1./50)) > 1e-12 {
		t.Errorf("50 of 50: %v to %v", low, high)
	}
}

func attackPlan(t *testing.T, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{mixture.Method{}, graffl.Method{}, factors.Method{}}))(t)
}

func TestRunRefuses(t *testing.T) {
	other := attackPlan(t, "{parley: 1, name: a, sites: [x, y], views: [{name: v, features: [p, q]}], method: {name: mvppca, latent: 1}, privacy: {protection: none}}")
	for name, c := range map[string]struct {
		config AttackConfig
		want   string
	}{
		"a method without attacks": {AttackConfig{Method: factors.Method{}, Releases: minReleases}, "knows no attacks"},
		"another method's plan":    {AttackConfig{Method: mixture.Method{}, Plan: other, Releases: minReleases}, "the plan is of method mvppca, and graffl is to be attacked"},
		"few releases":             {AttackConfig{Method: mixture.Method{}, Releases: 3}, "3 releases"},
		"no ε":                     {AttackConfig{Method: mixture.Method{}, Releases: minReleases, Epsilons: []float64{-1}}, "-1 is not positive"},
	} {
		if _, err := Attack(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := AttackTargets(method.Registry{factors.Method{}, mixture.Method{}}); len(got) != 1 || got[0] != "graffl" {
		t.Errorf("targets %v", got)
	}
}

const small = "{parley: 1, name: small, sites: [a, b], views: [{name: v, features: [{name: x, range: [-8, 8]}]}], method: {name: %s, components: 1, %s}, privacy: %s}"

// smallStudy is of two sites with a few rows.
func smallStudy(t *testing.T, name, options, protection string) (*study.Plan, map[string]dataset.Source) {
	t.Helper()
	p := attackPlan(t, fmt.Sprintf(small, name, options, protection))
	data := map[string]dataset.Source{}
	for j, site := range p.Sites {
		var rows []dataset.Row
		for i := range 5 {
			rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{float64(i - j)}}})
		}
		table := testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
		data[site] = table
	}
	return p, data
}

const (
	unprotected = "{protection: none}"
	protected   = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 1, delta: 1e-5}}"
)

// The laboratory shows every task with its answer, and a site that is asked the same
// by itself answers the same.
func TestLaboratoryShowsWhatPasses(t *testing.T) {
	p, data := smallStudy(t, graffl.Name, "algorithm: sets, set: {particles: 100, proposals: 200, rows: 5}", unprotected)
	lab := laboratory{graffl.Method{}, nil}
	seen := testkit.Get(lab.Study(t.Context(), p, data))(t)
	if len(seen) < 4 || len(seen)%2 != 0 {
		t.Fatalf("%d exchanges of 2 sites in some batches", len(seen))
	}
	for i, e := range seen {
		if want := p.Sites[i%2]; e.Task.Site != want || e.Answer.Site != want || e.Task.Kind != e.Answer.Kind || len(e.Task.Body) == 0 {
			t.Errorf("exchange %d: %+v", i, e)
		}
	}
	if bytes.Equal(seen[0].Task.Body, seen[2].Task.Body) {
		t.Error("two batches have one task")
	}
	again := testkit.Get(lab.Ask(t.Context(), p, "b", data["b"], seen[1].Task, seen[3].Task))(t)
	if len(again) != 2 || !bytes.Equal(again[0].Body, seen[1].Answer.Body) || !bytes.Equal(again[1].Body, seen[3].Answer.Body) {
		t.Error("a site that is asked by itself answers otherwise")
	}
	if _, err := lab.Ask(t.Context(), p, "b", data["b"], method.Task{Site: "b", Kind: "rows"}); err == nil {
		t.Error("a task that the plan does not have was answered")
	}
}

// noised is the one noised sum of an answer, which is all that it holds.
func noised(t *testing.T, c method.Contribution) string {
	t.Helper()
	if len(c.Sums) != 1 || len(c.Body) > 0 {
		t.Fatalf("%d sums and %d bytes beside them", len(c.Sums), len(c.Body))
	}
	for name := range c.Sums {
		n := testkit.Get(c.Sum(name))(t)
		return fmt.Sprint(n.Floats(0))
	}
	return ""
}

// Every release has noise of its own, although one site would make no second one
// within its total.
func TestLaboratoryReleasesAgain(t *testing.T) {
	p, data := smallStudy(t, "graffl", "draws: 64", protected)
	for name, options := range map[string][]privacy.Option{"real noise": nil, "seeded": {privacytest.Seeded(4)}} {
		lab := laboratory{mixture.Method{}, options}
		seen := testkit.Get(lab.Study(t.Context(), p, data))(t)
		if _, err := lab.Ask(t.Context(), p, "a", data["a"], seen[0].Task, seen[0].Task); err == nil {
			t.Errorf("%s: a site released twice what its total allows once", name)
		}
		different := map[string]bool{}
		n := 0
		for c, err := range lab.Again(t.Context(), p, "a", data["a"], seen[0].Task) {
			if err != nil {
				t.Fatal(err)
			}
			different[noised(t, c)] = true
			if n++; n == 20 {
				break
			}
		}
		if len(different) != 20 {
			t.Errorf("%s: %d different releases of 20", name, len(different))
		}
	}
}
