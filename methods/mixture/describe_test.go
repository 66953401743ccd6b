package mixture_test

import (
	"os"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/mixture"
	"parley/study"
)

// What people are told follows the options.
func TestDescribeFollowsTheOptions(t *testing.T) {
	const private, exact = "privacy:\n  protection: differential\n  unit: subject\n  adjacency: add-remove\n  total: {epsilon: 5, delta: 1e-5}\n", "privacy: {protection: none}\n"
	for _, c := range []struct {
		path, options, privacy string
		want                   []string
	}{
		{"mixture/plan.yaml", "", private, []string{"the rows as a mixture of 3 groups (normal components) in 2 features", "128 sums over its rows, of public cosines and sines of their features, with noise."}},
		{"mixture/plan.yaml", "", exact, []string{"128 sums over its rows, of public cosines and sines of their features."}},
	} {
		data, err := os.ReadFile("../../examples/" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), "  components: 3\n", "  components: 3\n"+c.options, 1)
		if c.privacy != "" {
			text = strings.Replace(text, private, c.privacy, 1)
		}
		p, err := study.Parse("plan.yaml", []byte(text), method.Registry{mixture.Method{}})
		if err != nil {
			t.Fatal(err)
		}
		got := mixture.Method{}.Describe(p)
		for _, want := range c.want {
			if !strings.Contains(got, want) || strings.Count(got, ". ") != 1 {
				t.Errorf("%s: %s", c.options, got)
			}
		}
	}
}

// Plans that give rows away say so, and private ones have nothing to say.
func TestPlansSayWhatTheyGiveAway(t *testing.T) {
	for _, x := range []struct{ options, privacy, want string }{
		{"sketch: {rows: 1000}", unprotected, "every row of a site with up to 128 of them"},
		{"sketch: {}", protected, "2 components in 1 dimensions, four standard deviations apart and the smallest half as large as the largest, can be told from each other with about"},
		{"sketch: {rows: 1e6}", protected, ""},
	} {
		notes := mixture.Method{}.Notes(parse(t, planText(x.options, x.privacy)))
		if x.want == "" && len(notes) > 0 || x.want != "" && (len(notes) != 1 || !strings.Contains(notes.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.options, notes, x.want)
		}
	}
	one := strings.Replace(planText("sketch: {}", protected), "components: 2", "components: 1", 1)
	if notes := (mixture.Method{}).Notes(parse(t, one)); len(notes) != 1 || !strings.Contains(notes.Error(), "the mean of one component in 1 dimensions is at most 1.5 times") {
		t.Errorf("one component: %v", notes)
	}
}
