//go:build long

package judge

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/methods/published/graffl"
)

// What the documentation claims, in simulation: rows follow from the exact answers of graffl-abc.
func TestAttacksOnGraffl(t *testing.T) {
	r := testkit.Get(Attack(t.Context(), AttackConfig{Method: graffl.Method{}, Seed: 2}))(t)
	if !r.OK {
		t.Errorf("not as documented: %+v", r.Attacks)
	}
	seen := map[string]bool{}
	for _, o := range r.Attacks {
		seen[o.Name] = true
		if o.Needs == "" || o.Of == "" || o.Answers < 1 {
			t.Errorf("%s does not say what it takes: %+v", o.Name, o)
		}
		if x := o.Recovered; x == nil || x.Expected < x.Rows/2 || x.Found < x.Expected {
			t.Errorf("%s: %+v", o.Name, x)
		}
	}
	if !seen["trilateration"] {
		t.Errorf("of the attacks only %v", seen)
	}

	var text, data bytes.Buffer
	testkit.Do(t, r.Print(&text))
	testkit.Do(t, json.NewEncoder(&data).Encode(r))
	if !strings.Contains(text.String(), "300 of 300 rows within 0.001 sd") ||
		strings.Contains(text.String(), "NOT AS DOCUMENTED") {
		t.Errorf("the table:\n%s", text.String())
	}
	for _, key := range []string{`"ok":true`, `"attack":"trilateration"`} {
		if !strings.Contains(data.String(), key) {
			t.Errorf("no %s in %s", key, data.String())
		}
	}
}
