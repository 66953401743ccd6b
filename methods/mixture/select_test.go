package mixture

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture/sketch"
)

// The smallest number without a doubt is recommended if one less and one more were tried, and no
// number beside a warning.
func TestTheSmallestNumberWithoutADoubtIsRecommended(t *testing.T) {
	own := known(text(3, "components: 3", "{protection: none}"))
	const off, lost, none = "misfits", "not found", "it was not fitted"
	for name, c := range map[string]struct {
		values  []int
		doubts  []string
		want    int
		warning string
		note    string
	}{
		"within":    {[]int{1, 2, 3}, []string{off, "", lost}, 2, "", "intervals"},
		"the first": {[]int{1, 2}, []string{"", lost}, 1, "", "intervals"},
		"two":       {[]int{1, 2, 3}, []string{off, "", ""}, 2, "", "nothing speaks against 3 components either"},
		"the last": {[]int{1, 2}, []string{off, ""}, 0,
			"but 3 was not tried, which shows whether doubts come back\n  hint: --components 1..3", ""},
		"the only": {[]int{1}, []string{""}, 0, "nothing speaks against 1 component, but 2 was not tried", ""},
		"none below": {[]int{2, 3}, []string{"", lost}, 0,
			"but 1 was not tried, and may do as well\n  hint: --components 1..3", ""},
		"a gap below":   {[]int{1, 3, 4}, []string{off, "", lost}, 0, "but 2 was not tried", ""},
		"a gap above":   {[]int{1, 2, 4}, []string{off, "", lost}, 0, "but 3 was not tried", ""},
		"all misfit":    {[]int{1, 2}, []string{off, off}, 0, "further from every mixture of 1 to 2 components", ""},
		"all doubted":   {[]int{1, 2}, []string{off, lost}, 0, "every number is doubted: take none of them", ""},
		"at the limit":  {[]int{8, 9}, []string{off, ""}, 0, "hint: another study, whose plan has components: 10", ""},
		"misfit, limit": {[]int{8, 9}, []string{off, off}, 0, "every number is doubted: take none of them", ""},
		"not fitted":    {[]int{1, 2}, []string{off, none}, 0, "every number is doubted: take none of them", ""},
	} {
		own.Options.Sketch.Frequencies = 98 // of at most 9 components with 10 parameters each, less 1
		s := &selection{setup: own, Selection: method.Selection{Option: chosen, Noun: "components"}}
		for i, k := range c.values {
			x := method.Candidate{Value: k, Scores: map[string]float64{scoreMisfit: 0.5}}
			switch c.doubts[i] {
			case "":
			case none:
				delete(x.Scores, scoreMisfit)
				x.Doubts = []string{none}
			case off:
				x.Scores[scoreMisfit] = 0.005
				fallthrough
			default:
				x.Doubts = []string{c.doubts[i] + ": evidence"}
			}
			s.Candidates = append(s.Candidates, x)
		}
		s.choose(sketch.Observation{Rows: 100})
		warnings := strings.Join(s.Warnings.Lines(), "\n")
		if s.Recommended != c.want || (warnings == "") != (c.want > 0) || !strings.Contains(warnings, c.warning) ||
			!strings.Contains(strings.Join(s.Notes.Lines(), "\n"), c.note) {
			t.Errorf("%s: %d recommended, warnings %q, notes %q", name, s.Recommended, warnings, s.Notes.Lines())
		}
		if !slices.Contains(s.Table.Columns[4].Text, "nothing") != !slices.ContainsFunc(c.doubts,
			func(d string) bool { return d == "" }) {
			t.Errorf("%s: the table says %q", name, s.Table.Columns[4].Text)
		}
	}
}

// How often a recommendation was right is what the record of its measurement says.
func TestReliabilityIsThatOfItsRecord(t *testing.T) {
	data := testkit.Get(os.ReadFile("../../docs/experiments/records/parley-components.json"))(t)
	var record struct {
		Tables []struct {
			Columns []struct {
				Name string
				Text []string
			}
		}
	}
	testkit.Do(t, json.Unmarshal(data, &record))
	columns := map[string][]string{}
	for _, c := range record.Tables[0].Columns {
		columns[c.Name] = c.Text
	}
	came := map[string]*[3]int{"normal": {}, "close": {}, "skewed": {}} // right, wrong and none
	for i, groups := range columns["groups"] {
		var one [3]int
		if _, err := fmt.Sscanf(columns["recommended"][i], "%d right, %d wrong, %d none", &one[0], &one[1],
			&one[2]); err != nil {
			t.Fatal(err)
		}
		for k, n := range one {
			came[groups][k] += n
		}
	}
	normal, near, skewed := came["normal"], came["close"], came["skewed"]
	want := fmt.Sprintf("right for all %d of normal groups 4 standard deviations apart, and for %d of %d of groups "+
		"2.5 apart; for %d of skewed groups it recommended nothing",
		normal[0], near[0], near[0]+near[1]+near[2], skewed[2])
	if normal[1]+normal[2]+skewed[0]+skewed[1] > 0 || !strings.Contains(reliability, want) {
		t.Errorf("the record says %q (right, wrong and none: %v, %v, %v), and what is said is %q", want, *normal, *near,
			*skewed, reliability)
	}
}
