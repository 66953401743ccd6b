package factors

import (
	"os"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/study"
)

func planWith(views, options string) string {
	return "parley: 1\nname: small\nsites: [north, south]\nprivacy: {protection: none}\nviews:\n" + views +
		"method:\n  name: factors\n" + options
}

const twoViews = "  - {name: clinic, features: [age, weight]}\n  - {name: mri, features: [volume, thickness]}\n"

func parse(text string) (*study.Plan, error) {
	return study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
}

func TestDefaults(t *testing.T) {
	for text, want := range map[string]string{
		underTotal("  latent: 3\n"): "latent: 3 scaling: range noise: feature rounds: 0",
		planWith(twoViews, "  latent: 3\n"): "latent: 3 scaling: standard noise: " +
			"feature rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  rounds: 0\n"): "latent: 1 scaling: standard noise: " +
			"feature rounds: 0 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: view\n"): "latent: 1 scaling: view noise: view " +
			"rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: min-max\n  noise: view\n"): "latent: 1 scaling: min-max noise: " +
			"view rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: none\n"): "latent: 1 scaling: none noise: view " +
			"rounds: 60 site_means: auto outliers: exclude",
	} {
		p := testkit.Get(parse(text))(t)
		shown := testkit.Get(p.YAML())(t)
		_, after, _ := strings.Cut(string(shown), "name: factors\n")
		before, _, _ := strings.Cut(after, "privacy:")
		if got := strings.Join(strings.Fields(before), " "); got != want {
			t.Errorf("%s\ngives %s\nwant  %s", text, got, want)
		}
		again, err := parse(string(shown))
		if err != nil {
			t.Fatalf("the effective plan does not read back: %v\n%s", err, shown)
		}
		a, errA := p.Digest()
		b, errB := again.Digest()
		if a != b || errA != nil || errB != nil {
			t.Errorf("the effective plan has another digest:\n%s", shown)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for options, want := range map[string]string{
		"":                                       "method.latent: the number of factors is missing",
		"  latent: 0\n":                          "method.latent: the number of factors is missing",
		"  latent: 4\n":                          "method.latent: 4 factors for 4 features",
		"  latent: 2\n  scaling: z\n":            "hint: one of standard, view, min-max, range, none",
		"  latent: 2\n  scaling: site-min-max\n": "name: fed-mv-ppca has it to repeat the paper",
		"  latent: 2\n  scaling: range\n":        "views[0].features[0] (age) has none",
		"  latent: 2\n  outliers: drop\n":        "hint: one of exclude, keep",
		"  latent: 2\n  noise: both\n":           "hint: one of view, feature",
		"  latent: 2\n  rounds: -1\n":            "method.rounds: -1 is too few",
	} {
		_, err := parse(planWith(twoViews, options))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", options, err, want)
		} else if !strings.HasPrefix(err.Error(), "plan.yaml:") {
			t.Errorf("%s\nis refused without its place: %v", options, err)
		}
	}
	if _, err := parse(planWith("  - name: v\n    features: [a, b, {name: stage, kind: category, levels: [I, II]}]\n",
		"  latent: 1\n")); err == nil || !strings.Contains(err.Error(),
		"plan.yaml:7:22: views.features: stage is a category") {
		t.Errorf("a category: %v", err)
	}
}

// underTotal and underRelease are plans with a promise, and without.
func underTotal(options string) string {
	return privatePlan("{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: "+
		"1e-5}}", options)
}

func underRelease(options string) string {
	return privatePlan("{protection: differential, unit: subject, adjacency: replace-one, per_release: {epsilon: 10, "+
		"delta: 0.01}}", options)
}

func privatePlan(privacy, options string) string {
	const views = "  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [20, 200]}]}\n" +
		"  - {name: mri, features: [{name: volume, range: [0, 9]}, {name: thickness, range: [0, 4]}]}\n"
	return strings.Replace(planWith(views, options), "{protection: none}", privacy, 1)
}

func TestPrivateOptionsThatCannotBe(t *testing.T) {
	const one = "  latent: 2\n"
	refused := map[string]string{
		underRelease(one): "splits a total over what it releases",
		planWith(twoViews, one+"  patterns: [{views: [mri]}]\n"):           "method.patterns: belongs to private plans",
		strings.Replace(underTotal(one), "unit: subject", "unit: site", 1): "protects single subjects",
	}
	for options, want := range map[string]string{
		"scaling: standard":                       "method.scaling: \"standard\" is of the subjects' values",
		"rounds: 3":                               "method.rounds: has no meaning in a private plan",
		"scaling: none":                           "clips to public ranges",
		"patterns: [{site: west, views: [mri]}]":  `method.patterns.site: "west" is not a site of the plan`,
		"patterns: [{site: north, views: [pet]}]": `"pet" is not a view of the plan`,
		"patterns: [{site: north}]":               "method.patterns.views: no views",
		"patterns: [{views: [mri, mri]}]":         "view mri is named twice",
		"patterns: [{views: [mri, clinic]}, {views: [clinic, mri]}]": "method.patterns.views: the same set of " +
			"views is stated twice",
		"patterns: [{site: north, views: [clinic]}, {site: south, views: [clinic]}]": "no subject can have view mri",
		"patterns: [{views: [clinic, mri]}, {site: north, views: [clinic]}, {views: [clinic, mri], site: south}]": "" +
			"method.patterns: no subject can have it",
	} {
		refused[underTotal(one+"  "+options+"\n")] = want
	}
	for text, want := range refused {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", text, err, want)
		}
	}
}

// A private plan is told how many subjects it needs before any budget is spent: more at a
// smaller ε, fewer at more sites or with fewer factors; and whom it leaves out.
func TestPrivatePlansAreToldHowManySubjectsTheyNeed(t *testing.T) {
	const all = "  patterns: [{views: [clinic, mri]}]\n"
	needed := func(text string) string {
		t.Helper()
		notes := Method{}.Notes(simulatedPlan(t, text)).Lines()
		if len(notes) != 1 || !strings.Contains(notes[0], "learns next to nothing") ||
			!strings.Contains(notes[0], "hint: several times as many") {
			t.Fatalf("the notes are %q", notes)
		}
		_, rest, _ := strings.Cut(notes[0], "fewer than about ")
		number, _, _ := strings.Cut(rest, " subjects")
		return number
	}
	private := underTotal("  latent: 2\n  noise: view\n" + all)
	for name, x := range map[string]struct{ text, want string }{
		"as it is":   {private, "14"},
		"smaller ε":  {strings.Replace(private, "epsilon: 3", "epsilon: 0.3", 1), "111"},
		"one factor": {strings.Replace(private, "latent: 2", "latent: 1", 1), "7"},
		"more sites": {strings.Replace(private, "[north, south]", "[north, south, west, east, a, b, c, d]", 1), "7"},
	} {
		if got := needed(x.text); got != x.want {
			t.Errorf("%s: %s subjects, want %s", name, got, x.want)
		}
	}
	if notes := (Method{}).Notes(simulatedPlan(t, strings.Replace(private, "[north, south]", "[north]",
		1))).Lines(); !strings.Contains(notes[0], "subjects at the only site this") ||
		strings.Contains(notes[0], "fewer sites") {
		t.Errorf("of one site: %q", notes)
	}
	bare := underTotal("  latent: 2\n  noise: view\n")
	if notes := (Method{}).Notes(simulatedPlan(t, bare)).Lines(); len(notes) != 2 ||
		!strings.Contains(notes[1], "count for nothing") {
		t.Errorf("without patterns: %q", notes)
	}
	if notes := (Method{}).Notes(simulatedPlan(t, planWith(twoViews, "  latent: 1\n"))); notes != nil {
		t.Errorf("a plan without privacy: %v", notes)
	}
}

// A plan with more factors than its features can tell is told so, and how many they can.
func TestPlansAreToldOfTooManyFactors(t *testing.T) {
	notes := Method{}.Notes(simulatedPlan(t, planWith(twoViews, "  latent: 2\n"))).Lines()
	if len(notes) != 1 || !strings.Contains(notes[0], "2 factors are more than the covariances of 4 features can "+
		"tell") || !strings.Contains(notes[0], "at most 1, or noise: view") {
		t.Errorf("the notes are %q", notes)
	}
	if notes := (Method{}).Notes(simulatedPlan(t, planWith(twoViews, "  latent: 2\n  noise: view\n"))); notes != nil {
		t.Errorf("with noise by view: %v", notes)
	}
}

// What people are told of the example follows its options.
func TestDescribeFollowsTheOptions(t *testing.T) {
	example := string(testkit.Get(os.ReadFile("../../examples/alzheimer/plan.yaml"))(t))
	for _, c := range [][2]string{ // in place of its number of factors, what is said
		{"latent: 6", "6 factors, patterns that run through the 131 features of all 4 views together"},
		{"latent: 6", "sends these again, at most 60 times"},
		{"latent: 1\n  rounds: 0", "1 factor, patterns"},
	} {
		plan := testkit.Get(parse(strings.Replace(example, "latent: 6", c[0], 1)))(t)
		if got := (Method{}).Describe(plan); !strings.Contains(got, c[1]) || strings.Count(got, ". ") != 1 {
			t.Errorf("%s: %s", c[0], got)
		}
	}
}
