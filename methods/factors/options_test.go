package factors

import (
	"fmt"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/factors/options"
	"parley/study"
)

func planWith(views, options string) string {
	return "parley: 1\nname: small\nsites: [north, south]\nprivacy: {protection: none}\nviews:\n" + views + "method:\n  name: mvppca\n" + options
}

const twoViews = "  - {name: clinic, features: [age, weight]}\n  - {name: mri, features: [volume, thickness]}\n"

func parse(text string) (*study.Plan, error) {
	return study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
}

func TestDefaultsOfBothVariants(t *testing.T) {
	for options, want := range map[string]string{
		"  latent: 3\n": "variant: federated latent: 3 scaling: standard noise: feature rounds: 10 iterations: 20 site_means: auto local_rank: 12 tolerance: 0.1 outliers: exclude",
		"  latent: 1\n  rounds: 0\n  tolerance: 0\n  local_rank: 1\n": "variant: federated latent: 1 scaling: standard noise: feature rounds: 0 iterations: 20 site_means: auto local_rank: 1 tolerance: 0 outliers: exclude",
		"  latent: 1\n  scaling: view\n":                              "variant: federated latent: 1 scaling: view noise: view rounds: 10 iterations: 20 site_means: auto local_rank: 4 tolerance: 0.1 outliers: exclude",
		"  latent: 1\n  scaling: min-max\n  noise: view\n":            "variant: federated latent: 1 scaling: min-max noise: view rounds: 10 iterations: 20 site_means: auto local_rank: 4 tolerance: 0.1 outliers: exclude",
		"  latent: 1\n  scaling: none\n":                              "variant: federated latent: 1 scaling: none noise: view rounds: 10 iterations: 20 site_means: auto local_rank: 4 tolerance: 0.1 outliers: exclude",
		"  latent: 2\n  variant: published\n": "variant: published latent: 2 scaling: standard noise: view rounds: 100 iterations: 15 " +
			"published: {first_iterations: 30, initial: random, restart: draw}",
		"  latent: 2\n  variant: published\n  published: {initial: prior, restart: mean, site_iterations: [{site: south, iterations: 4}]}\n": "variant: published latent: 2 scaling: standard noise: view rounds: 100 iterations: 15 " +
			"published: {first_iterations: 30, initial: prior, restart: mean, prior: {loading_sd: 1, mean: 0, mean_sd: 1, noise_alpha: 2.25, noise_beta: 0.625}, site_iterations: [{site: south, iterations: 4}]}",
		"  latent: 2\n  variant: published\n  published: {initial: prior, prior: {mean: 2, noise_beta: 3}}\n": "variant: published latent: 2 scaling: standard noise: view rounds: 100 iterations: 15 " +
			"published: {first_iterations: 30, initial: prior, restart: draw, prior: {loading_sd: 1, mean: 2, mean_sd: 1, noise_alpha: 2.25, noise_beta: 3}}",
	} {
		p, err := parse(planWith(twoViews, options))
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
			t.Errorf("%s\ngives %s\nwant  %s", options, got, want)
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
		"  latent: 2\n  variant: federate\n":     `method.variant: "federate" is not known`,
		"  latent: 2\n  scaling: z\n":            "hint: one of standard, view, min-max, range, none, site-min-max",
		"  latent: 2\n  scaling: site-min-max\n": "which only the published variant puts up with",
		"  latent: 2\n  scaling: range\n":        "views[0].features[0] (age) has none",
		"  latent: 2\n  outliers: drop\n":        "hint: one of exclude, keep",
		"  latent: 2\n  variant: published\n  outliers: keep\n":                                               "method.outliers: this option belongs to the federated variant",
		"  latent: 2\n  noise: both\n":                                                                        "hint: one of view, feature",
		"  latent: 2\n  rounds: -1\n":                                                                         "method.rounds: -1 is too few",
		"  latent: 2\n  iterations: 0\n":                                                                      "method.iterations: 0 is too few",
		"  latent: 2\n  local_rank: 0\n":                                                                      "method.local_rank: 0 is too few",
		"  latent: 2\n  tolerance: -0.5\n":                                                                    "method.tolerance: -0.5 is negative",
		"  latent: 2\n  published: {}\n":                                                                      "these options belong to the published variant",
		"  latent: 2\n  variant: published\n  rounds: 0\n":                                                    "method.rounds: 0 is too few",
		"  latent: 2\n  variant: published\n  noise: feature\n":                                               "one noise variance per view",
		"  latent: 2\n  variant: published\n  local_rank: 3\n":                                                "method.local_rank: this option belongs to the federated variant",
		"  latent: 2\n  variant: published\n  tolerance: 0\n":                                                 "method.tolerance: this option belongs to the federated variant",
		"  latent: 2\n  variant: published\n  published: {initial: x}\n":                                      "hint: one of random, prior",
		"  latent: 2\n  variant: published\n  published: {restart: x}\n":                                      "hint: one of draw, mean",
		"  latent: 2\n  variant: published\n  published: {prior: {}}\n":                                       "is used only with initial: prior",
		"  latent: 2\n  variant: published\n  published: {rounds: 4}\n":                                       "rounds",
		"  latent: 2\n  variant: published\n  published: {first_iterations: 0}\n":                             "method.published.first_iterations: 0 is too few",
		"  latent: 2\n  variant: published\n  published: {initial: prior, prior: {mean_sd: 0}}\n":             "method.published.prior.mean_sd: 0 is not positive",
		"  latent: 2\n  variant: published\n  published: {site_iterations: [{site: west, iterations: 2}]}\n":  `"west" is not a site of the plan`,
		"  latent: 2\n  variant: published\n  published: {site_iterations: [{site: south, iterations: 0}]}\n": "0 is too few",
		"  latent: 2\n  variant: published\n  published: {site_iterations: [{site: south, iterations: 2}, {site: south, iterations: 3}]}\n": "is named twice",
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

// Each site runs the iterations that the plan gives it.
func TestIterationsOfEachSite(t *testing.T) {
	p, err := parse(planWith(twoViews, "  latent: 2\n  variant: published\n  iterations: 9\n  published: {first_iterations: 20, site_iterations: [{site: south, iterations: 4}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := p.Method.Options.(*options.Options)
	got := fmt.Sprint(o.IterationsIn(1, "north"), o.IterationsIn(1, "south"), o.IterationsIn(2, "north"), o.IterationsIn(7, "south"))
	if got != "20 20 9 4" {
		t.Errorf("got %s", got)
	}
}
