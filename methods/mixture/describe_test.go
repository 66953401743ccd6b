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
		{"mixture/plan.yaml", "", private, []string{"the rows as a mixture of 3 groups (normal components) in 2 features", "144 public points, with noise."}},
		{"mixture/plan.yaml", "", exact, []string{"144 public points."}},
		{"mixture/plan.yaml", "  variant: set\n", exact, []string{"how far their rows as a whole are"}},
		{"mixture/plan.yaml", "  variant: published\n", exact, []string{"from which the rows can be found"}},
		{"icu/plan.yaml", "", "", []string{"the rows of class", "5 numbers that an encoder, trained on rows without noise, makes of each row", "worth to a classifier of its own"}},
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
		{"landmarks: {scattered: 20, bandwidth: 0.1}", unprotected, "every row of a site with up to 20 of them"},
		{"variant: sketch\nsketch: {rows: 1000}", unprotected, "every row of a site with up to 128 of them"},
		{"variant: sketch", protected, "2 components in 1 dimensions, four standard deviations apart and the smallest half as large as the largest, can be told from each other with about"},
		{"variant: sketch\nsketch: {rows: 1e6}", protected, ""},
		{"variant: published", unprotected, "published gives every row away, by 2 exact distances"},
		{"variant: set", unprotected, "set releases up to 15000 exact means"},
		{"draws: 64", protected, ""},
	} {
		notes := mixture.Method{}.Notes(parse(t, planText(x.options, x.privacy)))
		if x.want == "" && len(notes) > 0 || x.want != "" && (len(notes) != 1 || !strings.Contains(notes.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.options, notes, x.want)
		}
	}
	one := strings.Replace(planText("variant: sketch", protected), "components: 2", "components: 1", 1)
	if notes := (mixture.Method{}).Notes(parse(t, one)); len(notes) != 1 || !strings.Contains(notes.Error(), "the mean of one component in 1 dimensions is at most 1.5 times") {
		t.Errorf("one component: %v", notes)
	}
}

// Landmarks in a plan of three features decide its variant, and that is said; a plan that names its
// variant has chosen it, and so has one that was filled in.
func TestLandmarksThatDecideTheVariantAreNamed(t *testing.T) {
	const says = "method.variant: landmark, because the plan has landmarks: without them, 3 features would have variant: sketch"
	three := func(options string) string {
		return strings.Replace(planText(options, protected), "{name: x, range: [-8, 8]}", "{name: x, range: [-8, 8]}, {name: y, range: [-8, 8]}, {name: z, range: [-8, 8]}", 1)
	}
	for _, x := range []struct {
		plan string
		want bool
	}{
		{three("landmarks: {bandwidth: 0.2}"), true},
		{three("variant: landmark\nlandmarks: {bandwidth: 0.2}"), false},
		{three("draws: 64"), false},
		{planText("landmarks: {bandwidth: 0.2}", protected), false},
	} {
		p := parse(t, x.plan)
		if notes := (mixture.Method{}).Notes(p); strings.Contains(notes.Error(), says) != x.want {
			t.Errorf("%s: %v", x.plan, notes)
		}
		filled, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if notes := (mixture.Method{}).Notes(parse(t, string(filled))); strings.Contains(notes.Error(), says) {
			t.Errorf("filled in: %v", notes)
		}
	}
}
