//go:build long

package judge

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/published/graffl"
	"parley/privacy"
	"parley/privacy/privacytest"
)

// What the documentation claims, in simulation: rows follow from the exact answers of
// graffl-abc, and nothing better than ε allows from what is private.
func TestAttacksOnGraffl(t *testing.T) {
	r, abc := example(t, mixture.Method{}, 1000), example(t, graffl.Method{}, 1000)
	if !r.OK || !abc.OK {
		t.Errorf("not as documented: %+v, %+v", r.Attacks, abc.Attacks)
	}
	r.Attacks = append(abc.Attacks, r.Attacks...)
	seen := map[string]AttackOutcome{}
	for _, o := range r.Attacks {
		seen[o.Variant+" "+o.Name[:1]] = o
		if o.Needs == "" || o.Of == "" || o.Answers < 1 {
			t.Errorf("%s does not say what it takes: %+v", o.Name, o)
		}
		exact := !strings.Contains(o.Variant, "ε")
		if x := o.Recovered; x != nil {
			if exact && (x.Expected < x.Rows/2 || x.Found < x.Expected) {
				t.Errorf("%s, %s: %d of %d rows, %d expected", o.Variant, o.Name, x.Found, x.Rows, x.Expected)
			}
		}
		if told := o.ToldApart; (told != nil) != (!exact && o.Recovered == nil) {
			t.Errorf("%s, %s: %+v", o.Variant, o.Name, o)
		} else if told != nil {
			// The attacker is as good as one can be, so that a release with too little
			// noise would be found out: five standard errors of a share.
			if told.Trials != 2000 || math.Abs(o.Accuracy-told.Mechanism) > 5*0.5/math.Sqrt(2000) || o.High > told.Allowed || told.Mechanism >= told.Allowed {
				t.Errorf("%s: %+v", o.Variant, o)
			}
		}
	}
	for _, want := range []string{"rows A", "sets B", "sums, ε 1 t", "sums, ε 5 t"} {
		if _, ok := seen[want]; !ok {
			t.Errorf("no attack %q", want)
		}
	}

	var text, data bytes.Buffer
	testkit.Do(t, r.Print(&text))
	testkit.Do(t, json.NewEncoder(&data).Encode(r))
	if !strings.Contains(text.String(), "300 of 300 rows within 0.001 sd") || strings.Contains(text.String(), "NOT AS DOCUMENTED") {
		t.Errorf("the table:\n%s", text.String())
	}
	for _, key := range []string{`"ok":true`, `"attack":"A: trilateration"`, `"told_apart":{"epsilon":1,`} {
		if !strings.Contains(data.String(), key) {
			t.Errorf("no %s in %s", key, data.String())
		}
	}
}

// example attacks a method's example. The noise of what is asked of single sites
// comes from a seed, so that the test always has the same outcome. At another seed it
// would fail falsely with a probability of 2e-6, for which [falseFailure] is added up
// over two budgets.
func example(t *testing.T, m method.Method, releases int) *AttackReport {
	t.Helper()
	r, err := Attack(t.Context(), AttackConfig{Method: m, Seed: 2, Epsilons: []float64{5, 1}, Releases: releases,
		options: []privacy.Option{privacytest.Seeded(11)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
