package study_test

import (
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/study"
)

const coded = `parley: 1
name: coded
sites: [north]
missing: [-9, "NK", 1e3]
views:
  - name: clinic
    missing: [unknown]
    features:
      - {name: age, missing: [999]}
      - {name: stage, kind: category, levels: [I, II]}
      - crp
method: {name: factors}
privacy: {protection: none}
`

// Codes of the study, the view and the feature add up; writing the plan and reading it
// again keeps them, whatever way they were quoted.
func TestCodesForMissingValues(t *testing.T) {
	p := testkit.Get(study.Parse("plan.yaml", []byte(coded), methods{}))(t)
	columns := p.Schema().Views[0].Columns
	for i, want := range [][]string{{"-9", "NK", "1e3", "unknown", "999"}, {"-9", "NK", "1e3", "unknown"},
		{"-9", "NK", "1e3", "unknown"}} {
		if !slices.Equal(columns[i].Missing, want) {
			t.Errorf("%s: %q, want %q", columns[i].Name, columns[i].Missing, want)
		}
	}
	text := testkit.Get(p.YAML())(t)
	again, err := study.Parse("again.yaml", text, methods{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	bytes := testkit.Get(p.Encode())(t)
	decoded := testkit.Get(study.Decode(bytes, methods{}))(t)
	want, _ := p.Digest()
	for _, q := range []*study.Plan{again, decoded} {
		if got, err := q.Digest(); err != nil || got != want {
			t.Errorf("the digest changed: %v\n%s", err, text)
		}
	}
}

func TestCodesForMissingValuesRefused(t *testing.T) {
	for from, c := range map[string][2]string{
		"missing: [999]":     {"missing: [1, 1]", "code 1 is named twice"},
		"missing: [unknown]": {"missing: [II]", "level II is a code for missing values too"},
		`"NK"`:               {`" NK"`, "begins or ends with a space"},
		"-9, ":               {"[1], ", "where text is expected"},
	} {
		_, err := study.Parse("plan.yaml", []byte(strings.Replace(coded, from, c[0], 1)), methods{})
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %s", c[0], err, c[1])
		}
	}
}
