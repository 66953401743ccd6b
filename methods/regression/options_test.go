package regression_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/options"
	"parley/study"
)

// Every mistake is told by key, with what would be right.
func TestOptionsThatContradictThePlan(t *testing.T) {
	sites := []string{"a", "b"}
	for name, c := range map[string]struct{ options, privacy, want string }{
		"no outcome":        {"rounds: 2", unprotected, "method.outcome"},
		"outcome elsewhere": {"outcome: {column: x0, levels: [no, yes]}", unprotected, "not a column under subjects"},
		"three levels": {"outcome: {column: y, levels: [a, b, c]}\nlikelihood: logistic", unprotected,
			"likelihood: softmax for more"},
		"one level": {"outcome: {column: y, levels: [a]}\nlikelihood: softmax", unprotected,
			"1 levels for a softmax"},
		"classes of sites": {"outcome: {column: y, levels: [a, b, c]}\nsite_effects: random", unprotected,
			"a softmax model has no random intercepts"},
		"level twice": {"outcome: {column: y, levels: [a, a]}", unprotected, "there twice"},
		"levels of a number": {"outcome: {column: y, levels: [a, b]}\nlikelihood: linear\nnoise_variance: 1",
			unprotected, "which has no levels"},
		"noise of a class": {twoLevels + "noise_variance: 1", unprotected, "belongs to likelihood: linear"},
		"negative noise":   {"outcome: {column: y}\nnoise_variance: -1", unprotected, "not positive"},
		"private clip":     {twoLevels + "clip: 1", protected, "method.clip"},
		"schedules":        {twoLevels + "schedule: random", unprotected, "method.schedule"},
		"a private number": {"outcome: {column: y}", protected, "method.outcome.range: missing"},
		"a number's point": {"outcome: {column: y, range: [2, 2]}", protected, "is no range"},
		"its constants":    {"outcome: {column: y, range: [0, 2]}", protected, "leave constants out"},
		"its diagnostics": {"outcome: {column: y, range: [0, 2]}", strings.Replace(protected, "total",
			"diagnostics: 0.1, total", 1), "leave diagnostics out"},
		"its noise":      {"outcome: {column: y, range: [0, 2]}\nnoise_variance: 1", protected, "it is estimated"},
		"a public range": {"outcome: {column: y, range: [0, 2]}", unprotected, "a number of a private plan"},
		"whole sites": {twoLevels, strings.Replace(protected, "unit: subject", "unit: site", 1),
			"privacy.unit: subject"},
		"no intercept":       {twoLevels + "intercept: false", unprotected, "intercept_variance"},
		"coding":             {twoLevels + "coding: levels", unprotected, "method.coding"},
		"a private offset":   {twoLevels + "offset: e", protected, "method.offset_range"},
		"a range of nothing": {twoLevels + "offset_range: [0, 1]", protected, "belongs to the offset"},
		"a point of a range": {twoLevels + "offset: e\noffset_range: [1, 1.0001]", protected, "at least 0.001 wide"},
		"few private rounds": {twoLevels + "rounds: 4", protected, "method.rounds"},
		"variants":           {twoLevels + "variant: partitioned", unprotected, "method.variant"},
		"unknown rule":       {twoLevels + "missing: level", unprotected, `"level" is not known`},
		"no rounds":          {twoLevels + "rounds: 0", unprotected, "method.rounds"},
		"negative prior":     {twoLevels + "prior_variance: 0", unprotected, "method.prior_variance"},
		"tolerance":          {twoLevels + "tolerance: 1", unprotected, "method.tolerance"},
		"constants unused":   {twoLevels + "scaling: standard", unprotected, "mean nothing with scaling: standard"},
		"no range":           {twoLevels + "scaling: range", unprotected, "needs the range of every number"},
		"per release":        {twoLevels, strings.Replace(protected, "total", "per_release", 1), "the plan has none"},
		"ranges as units":    {twoLevels + "scaling: range", protected, "a range is no unit"},
	} {
		text := planText(2, sites, c.options, c.privacy)
		_, err := study.Parse("plan.yaml", []byte(text), methods)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What is too large for a posterior of all weights together is of another method.
func TestTooManyWeights(t *testing.T) {
	text := planText(667, []string{"a", "b"}, "outcome: {column: y, levels: [a, b, c]}", unprotected)
	if _, err := study.Parse("plan.yaml", []byte(text), methods); err == nil ||
		!strings.Contains(err.Error(), "name: dp-pvi with algorithm: exact") {
		t.Error(err)
	}
}

// Constants are for numbers of the plan, each once.
func TestConstants(t *testing.T) {
	for from, to := range map[string]string{
		"{feature: x1,":                      "{feature: x9,",
		"scale: 1}]":                         "scale: 0}]",
		"{feature: x1, centre: 0, scale: 1}": "{feature: x0, centre: 0, scale: 1}",
	} {
		text := strings.Replace(planText(2, []string{"a", "b"}, twoLevels, unprotected), from, to, 1)
		if _, err := study.Parse("plan.yaml", []byte(text), methods); err == nil ||
			!strings.Contains(err.Error(), "method.constants") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// Defaults follow from the rest of the plan, and survive being written and read.
func TestDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		options, privacy string
		want             func(o *options.Options) bool
	}{
		"plain": {twoLevels, unprotected, func(o *options.Options) bool {
			return o.Rounds == 25 && o.PriorVariance == 6.25
		}},
		"private": {twoLevels, protected, func(o *options.Options) bool {
			return o.Rounds == 20 && o.PriorVariance == 1
		}},
		"many levels": {"outcome: {column: y, levels: [a, b, c]}", unprotected, func(o *options.Options) bool {
			return o.Likelihood == "softmax"
		}},
	} {
		p := parse(t, planText(2, []string{"a", "b"}, c.options, c.privacy))
		if o := p.Method.Options.(*options.Options); !c.want(o) {
			t.Errorf("%s: %+v", name, o)
		}
		encoded := testkit.Get(p.Encode())(t)
		if _, err := study.Decode(encoded, methods); err != nil {
			t.Errorf("%s: decoding the plan again: %v", name, err)
		}
		text := testkit.Get(p.YAML())(t)
		again, err := study.Parse("plan.yaml", text, methods)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if a, _ := again.Encode(); string(a) != string(encoded) {
			t.Errorf("%s: written and read it is another plan", name)
		}
	}
}

// Noise is no more than the plan's total takes, with constants or with units that histograms tell.
func TestChargesUseTheTotal(t *testing.T) {
	learned := strings.Replace(planText(2, []string{"a", "b"}, twoLevels,
		strings.Replace(protected, "add-remove", "replace-one", 1)), "[x0, x1]",
		"[{name: x0, range: [-4, 4]}, {name: x1, range: [-9, 9]}]", 1)
	for _, text := range []string{planText(2, []string{"a", "b"}, twoLevels, protected),
		regexp.MustCompile("  constants: .*\n").ReplaceAllString(learned, "")} {
		p := parse(t, text)
		cost := testkit.Get(methods.Cost(p))(t)
		for _, l := range cost.Sites[0].Losses {
			if e := *l.Epsilon / p.Privacy.Total.Epsilon; l.Adjacency == p.Privacy.Adjacency && (e > 1 || e < 0.999) {
				t.Errorf("%s: uses %v of the total", l.Adjacency, e)
			}
		}
	}
}

// What people are told follows the options.
func TestDescribeFollowsTheOptions(t *testing.T) {
	data := testkit.Get(os.ReadFile("../../examples/income/plan.yaml"))(t)
	head, _, _ := strings.Cut(string(data), "privacy:")
	const exact = "privacy: {protection: none}\n"
	const total = "privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 1, " +
		"delta: 1e-5}}\n"
	levels := `, levels: ["<=50K", ">50K"]`
	for _, c := range [][3]string{
		{head + total, "which level of column income a subject has (<=50K, >50K) from 14 features by a Bayesian " +
			"logistic regression", "a site sends noised sums over its own subjects"},
		{head + exact, "Bayesian logistic regression", "a site sends sums over its own subjects: of how each would " +
			"change the weights"},
		{strings.Replace(head, levels+"}", "}\n  noise_variance: 1", 1) + exact,
			"It predicts the number in column income", "linear regression"},
	} {
		p := testkit.Get(study.Parse("plan.yaml", []byte(c[0]), method.Registry{regression.Method{}}))(t)
		if got := (regression.Method{}).Describe(p); !strings.Contains(got, c[1]) || !strings.Contains(got, c[2]) ||
			strings.Count(got, ". ") != 1 {
			t.Errorf("%s", got)
		}
	}
}
