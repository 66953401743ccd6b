package factors

import (
	"strings"
	"testing"

	"parley/method"
	"parley/study"
)

func planWith(views, options string) string {
	return "parley: 1\nname: small\nsites: [north, south]\nprivacy: {protection: none}\nviews:\n" + views + "method:\n  name: mvppca\n" + options
}

const twoViews = "  - {name: clinic, features: [age, weight]}\n  - {name: mri, features: [volume, thickness]}\n"

func parse(text string) (*study.Plan, error) {
	return study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
}

func TestDefaults(t *testing.T) {
	for text, want := range map[string]string{
		underTotal("  latent: 3\n"):                                            "latent: 3 scaling: range noise: view rounds: 0 mechanism: statistics",
		planWith(twoViews, "  latent: 3\n"):                                    "latent: 3 scaling: standard noise: feature rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  rounds: 0\n"):                       "latent: 1 scaling: standard noise: feature rounds: 0 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: view\n"):                   "latent: 1 scaling: view noise: view rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: min-max\n  noise: view\n"): "latent: 1 scaling: min-max noise: view rounds: 60 site_means: auto outliers: exclude",
		planWith(twoViews, "  latent: 1\n  scaling: none\n"):                   "latent: 1 scaling: none noise: view rounds: 60 site_means: auto outliers: exclude",
	} {
		p, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(shown), "name: mvppca\n")
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
		"  latent: 2\n  variant: published\n":    "method.variant: this key no longer exists\n  hint: leave it out; what variant: published was is a method of its own, name: fed-mv-ppca",
		"  latent: 2\n  scaling: z\n":            "hint: one of standard, view, min-max, range, none",
		"  latent: 2\n  scaling: site-min-max\n": "hint: one of standard, view, min-max, range, none",
		"  latent: 2\n  scaling: range\n":        "views[0].features[0] (age) has none",
		"  latent: 2\n  outliers: drop\n":        "hint: one of exclude, keep",
		"  latent: 2\n  noise: both\n":           "hint: one of view, feature",
		"  latent: 2\n  rounds: -1\n":            "method.rounds: -1 is too few",
		"  latent: 2\n  iterations: 5\n":         "method.iterations: this key no longer exists\n  hint: leave it out",
		"  latent: 2\n  local_rank: 8\n":         "method.local_rank: this key no longer exists\n  hint: leave it out",
		"  latent: 2\n  tolerance: 0.1\n":        "method.tolerance: this key no longer exists\n  hint: leave it out",
		"  latent: 2\n  published: {}\n":         "hint: name: fed-mv-ppca, which has these options",
	} {
		_, err := parse(planWith(twoViews, options))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", options, err, want)
		} else if !strings.HasPrefix(err.Error(), "plan.yaml:") {
			t.Errorf("%s\nis refused without its place: %v", options, err)
		}
	}
	if _, err := parse(planWith("  - name: v\n    features: [a, b, {name: stage, kind: category, levels: [I, II]}]\n", "  latent: 1\n")); err == nil || !strings.Contains(err.Error(), "plan.yaml:7:22: views.features: stage is a category") {
		t.Errorf("a category: %v", err)
	}
}
