package judge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/graffl"
	"parley/study"
)

// An attack that does worse than its demonstration is found out, and said.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		attack method.Attack
		failed string
	}{
		"all rows": {method.Attack{Recovered: &method.Recovered{Rows: 9, Found: 9, Expected: 9}}, ""},
		"too few rows": {method.Attack{Recovered: &method.Recovered{Rows: 9, Found: 8, Expected: 9}},
			"8 of 9 rows were found"},
		"no claim": {method.Attack{Recovered: &method.Recovered{Rows: 9}}, ""},
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

func attackPlan(t *testing.T, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{mixture.Method{}, graffl.Method{},
		factors.Method{}}))(t)
}

func TestRunRefuses(t *testing.T) {
	other := attackPlan(t, "{parley: 1, name: a, sites: [x, y], views: [{name: v, features: [p, q]}], method: {name: "+
		"factors, latent: 1}, privacy: {protection: none}}")
	for name, c := range map[string]struct {
		config AttackConfig
		want   string
	}{
		"a method without attacks": {AttackConfig{Method: factors.Method{}}, "knows no attacks"},
		"another method's plan": {AttackConfig{Method: graffl.Method{}, Plan: other},
			"the plan is of method factors, and graffl-abc is to be attacked"},
	} {
		if _, err := Attack(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := AttackTargets(method.Registry{factors.Method{}, graffl.Method{}}); len(got) != 1 ||
		got[0] != "graffl-abc" {
		t.Errorf("targets %v", got)
	}
}

const small = "{parley: 1, name: small, sites: [a, b], views: [{name: v, features: [{name: x, range: [-8, 8]}]}], " +
	"method: {name: %s, components: 1, %s}, privacy: %s}"

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

// The laboratory shows every task with its answer.
func TestLaboratoryShowsWhatPasses(t *testing.T) {
	p, data := smallStudy(t, graffl.Name, "algorithm: sets, set: {particles: 100, proposals: 200, rows: 5}",
		"{protection: none}")
	lab := laboratory{graffl.Method{}}
	seen := testkit.Get(lab.Study(t.Context(), p, data))(t)
	if len(seen) < 4 || len(seen)%2 != 0 {
		t.Fatalf("%d exchanges of 2 sites in some batches", len(seen))
	}
	for i, e := range seen {
		if want := p.Sites[i%2]; e.Task.Site != want || e.Answer.Site != want || e.Task.Kind != e.Answer.Kind ||
			len(e.Task.Body) == 0 {
			t.Errorf("exchange %d: %+v", i, e)
		}
	}
	if bytes.Equal(seen[0].Task.Body, seen[2].Task.Body) {
		t.Error("two batches have one task")
	}
}
