package mixture_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture"
	"parley/study"
)

// What a plan cannot mean is refused, under its key and with what would be right.
func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	for options, want := range map[string]string{
		"components: 0": "method.components: a mixture of 0 components",
		"draws: 10":     "method.draws: a sample of 10 parameters",
	} {
		refused(t, strings.Replace(planText(options, unprotected), "components: 2\n  components", "components", 1),
			want)
	}
	for change, want := range map[string]string{
		"{name: x, range: [-1e200, 1e200]}":         "Ψ has an entry that is not finite",
		"{name: x, range: [0, 1e-170]}":             "Ψ is not positive definite",
		"{name: x}":                                 "without a range, which the prior and the frequencies are of: x",
		"{name: x, kind: category, levels: [a, b]}": "is a category, and a Gaussian mixture is of numbers",
	} {
		refused(t, strings.Replace(planText("draws: 64", unprotected), "{name: x, range: [-8, 8]}", change, 1), want)
	}
}

// Samples that fit into no state are refused before anybody computes one.
func TestSamplesWithoutRoomAreRefused(t *testing.T) {
	var features []string
	for i := range 64 {
		features = append(features, fmt.Sprintf("{name: f%d, range: [0, 1]}", i))
	}
	for options, want := range map[string]string{
		"draws: 384": "method.draws: 384 mixtures of 64 components in 64 dimensions",
	} {
		text := strings.Replace(planText(options, unprotected), "components: 2", "components: 64", 1)
		refused(t, strings.Replace(text, "{name: x, range: [-8, 8]}", strings.Join(features, ", "), 1), want)
	}
}

// Plans are refused beside promises that they do not keep.
func TestPrivacyThatIsNotKeptIsRefused(t *testing.T) {
	refused(t, planText("draws: 64", strings.Replace(protected, "unit: subject", "unit: site", 1)),
		"privacy.unit: subject")
	refused(t, planText("draws: 64", strings.Replace(protected, "total", "per_release", 1)), "the plan has none")
	refused(t, planText("draws: 64", strings.Replace(protected, "total", "diagnostics: 0.1, total", 1)),
		"leave privacy.diagnostics out")
}

// Features without a range are named together; of a range
// that is upside down nothing is said that follows from it.
func TestRangesAreAskedForOnce(t *testing.T) {
	var features []string
	for i := range 7 {
		features = append(features, fmt.Sprintf("f%d", i+1))
	}
	check := func(with string) string {
		_, err := study.Parse("plan.yaml", []byte(strings.Replace(planText("draws: 64", unprotected),
			"{name: x, range: [-8, 8]}", with, 1)), methods)
		if err == nil {
			t.Fatalf("%s was accepted", with)
		}
		return err.Error()
	}
	if got := check(strings.Join(features, ", ")); strings.Count(got, "without a range") != 1 ||
		!strings.Contains(got, "f1, f2") {
		t.Error(got)
	}
	if got := check("{name: x, range: [8, -8]}"); strings.Contains(got, "method: ") ||
		strings.Contains(got, "method.sketch") {
		t.Error(got)
	}
}

func refused(t *testing.T, plan, want string) {
	t.Helper()
	if _, err := study.Parse("plan.yaml", []byte(plan), methods); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q of\n%s", err, want, plan)
	}
}

// Defaults follow the features and survive the plan's encoding.
func TestDefaultsAreWrittenIntoThePlan(t *testing.T) {
	for text, check := range map[string]func(o *mixture.Options) bool{
		"sketch: {}": func(o *mixture.Options) bool {
			return o.Draws == 384 && o.Sketch.Scale == 1./16 && o.Sketch.Frequencies == 64
		},
	} {
		p := parse(t, planText(text, unprotected))
		if o := p.Method.Options.(*mixture.Options); !check(o) {
			t.Errorf("%s: %+v", text, o)
		}
		data := testkit.Get(p.Encode())(t)
		again, err := study.Decode(data, methods)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if a, b := digest(t, p), digest(t, again); a != b {
			t.Errorf("%s: encoding and decoding made another plan of it", text)
		}
	}
}

func digest(t *testing.T, p *study.Plan) string {
	t.Helper()
	d := testkit.Get(p.Digest())(t)
	return d.String()
}

// What was a key is refused with what stands in its place.
func TestFormerKeysSayWhatToUse(t *testing.T) {
	for key, want := range map[string]string{"variant: landmark": "leave it out",
		"landmarks: {scattered: 9}": "sketch.scale is what landmarks.bandwidth was", "variant: set": "algorithm: sets",
		"published: {rounds: 3}": "name: graffl-abc has its keys", "set: {rows: 3}": "name: graffl-abc",
		"calibration: 200": "leave it out", "prior: {kappa: 1}": "how wide components are is learned",
		"sketch: {rows: 9}": "parley plan check says how many rows", "encoder: {dimension: 3}": "leave it out",
		"scarce: {held: 0.2}": "name: regression learns the outcome"} {
		refused(t, planText(key, unprotected), want)
	}
}

// A plan that cannot find its components is refused.
func TestSketchesHaveLimits(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"sketch: {frequencies: 2}", "too many for 2 frequencies"},
		{"sketch: {frequencies: 5000}", "5000 frequencies"},
		{"sketch: {scale: 2}", "of a feature's range"},
	} {
		refused(t, planText(c.text, protected), c.want)
	}
}

// What people are told follows the options.
func TestDescribeFollowsTheOptions(t *testing.T) {
	const private, exact = "privacy:\n  protection: differential\n  unit: subject\n  adjacency: add-remove\n  total: " +
		"{epsilon: 5, delta: 1e-5}\n", "privacy: {protection: none}\n"
	for _, c := range []struct {
		path, options, privacy string
		want                   []string
	}{
		{"mixture/plan.yaml", "", private, []string{"the rows as a mixture of 3 normal components in 2 " +
			"features", "128 sums over its rows, of public cosines and sines of their features, with noise."}},
		{"mixture/plan.yaml", "", exact, []string{"128 sums over its rows, of public cosines and sines of their " +
			"features."}},
	} {
		data := testkit.Get(os.ReadFile("../../examples/" + c.path))(t)
		text := strings.Replace(string(data), "  components: 3\n", "  components: 3\n"+c.options, 1)
		if c.privacy != "" {
			text = strings.Replace(text, private, c.privacy, 1)
		}
		p := testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{mixture.Method{}}))(t)
		got := mixture.Method{}.Describe(p)
		for _, want := range c.want {
			if !strings.Contains(got, want) || strings.Count(got, ". ") != 1 {
				t.Errorf("%s: %s", c.options, got)
			}
		}
	}
}

// Plans that give rows away say so, and all how many rows it takes.
func TestPlansSayWhatTheyGiveAway(t *testing.T) {
	for _, x := range []struct{ options, privacy, want string }{
		{"sketch: {}", unprotected, "every row of a site with up to 128 of them"},
		{"sketch: {}", protected, "2 components in 1 dimensions, four standard deviations apart and the smallest " +
			"half as large as the largest, can be told from each other with about"},
	} {
		notes := mixture.Method{}.Notes(parse(t, planText(x.options, x.privacy)))
		if !strings.Contains(notes.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.options, notes, x.want)
		}
	}
	one := strings.Replace(planText("sketch: {}", protected), "components: 2", "components: 1", 1)
	if notes := (mixture.Method{}).Notes(parse(t, one)); len(notes) > 0 {
		t.Errorf("one component: %v", notes)
	}
}
