package judge

import (
	"math"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/graffl"
	"parley/privacy/account"
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
