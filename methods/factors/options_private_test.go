package factors

import (
	"strings"
	"testing"

	"parley/methods/factors/factorstest"
)

// underTotal and underRelease are plans with a promise, and without.
func underTotal(options string) string {
	return privatePlan("{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}", options)
}

func underRelease(options string) string { return privatePlan(perReleaseBudget, options) }

func privatePlan(privacy, options string) string {
	const views = "  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [20, 200]}]}\n" +
		"  - {name: mri, features: [{name: volume, range: [0, 9]}, {name: thickness, range: [0, 4]}]}\n"
	return strings.Replace(planWith(views, options), "{protection: none}", privacy, 1)
}

func TestPrivateDefaults(t *testing.T) {
	const prior = "prior: {loading_sd: 0.1, mean: 0.5, mean_sd: 0.25, noise_alpha: 3, noise_beta: 0.08}"
	for text, want := range map[string]string{
		underTotal("  latent: 3\n"): "variant: federated latent: 3 scaling: range noise: view rounds: 0 iterations: 0 mechanism: statistics",
		underTotal("  latent: 2\n  variant: published\n"): "variant: published latent: 2 scaling: range noise: view rounds: 2 iterations: 15 " +
			"published: {first_iterations: 30, initial: prior, restart: draw, " + prior + "} mechanism: difference-clipping " +
			"clipping: {noise_floor: 0.0001, difference: {first_round: prior, mean: {constant: 1}, loadings: {constant: 1}, noise_variance: {constant: 1}}}",
		underRelease("  latent: 2\n  variant: published\n"): "variant: published latent: 2 scaling: range noise: view rounds: 100 iterations: 15 " +
			"published: {first_iterations: 30, initial: prior, restart: draw, " + prior + "} mechanism: difference-clipping " +
			"clipping: {noise_floor: 0.0001, difference: {first_round: prior, mean: {constant: 1, epsilon: 10, delta: 0.01}, loadings: {constant: 1, epsilon: 10, delta: 0.01}, noise_variance: {constant: 1, epsilon: 10}}}",
		underRelease("  latent: 2\n  variant: published\n  clipping: {difference: {first_round: clear, loadings: {epsilon: 2}}}\n"): "variant: published latent: 2 scaling: range noise: view rounds: 100 iterations: 15 " +
			"published: {first_iterations: 30, initial: random, restart: draw} mechanism: difference-clipping " +
			"clipping: {noise_floor: 0.0001, difference: {first_round: clear, mean: {constant: 1, epsilon: 10, delta: 0.01}, loadings: {constant: 1, epsilon: 2, delta: 0.01}, noise_variance: {constant: 1, epsilon: 10}}}",
		underTotal("  latent: 2\n  variant: published\n  mechanism: joint-clipping\n  scaling: none\n"): "variant: published latent: 2 scaling: none noise: view rounds: 2 iterations: 15 " +
			"published: {first_iterations: 30, initial: prior, restart: mean, prior: {loading_sd: 1, mean: 0, mean_sd: 1, noise_alpha: 2.25, noise_beta: 0.625}} mechanism: joint-clipping " +
			"clipping: {noise_floor: 0.0001, joint: {bound: 2, mean_scale: 1, loading_scale: 1, variance_scale: 4}}",
	} {
		p, err := parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
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
		if a, b := factorstest.Must(p.Digest())(t), factorstest.Must(again.Digest())(t); a != b {
			t.Errorf("the effective plan has another digest:\n%s", shown)
		}
	}
}

func TestPrivateOptionsThatCannotBe(t *testing.T) {
	const (
		published = "  latent: 2\n  variant: published\n"
		joint     = published + "  mechanism: joint-clipping\n"
	)
	for text, want := range map[string]string{
		planWith(twoViews, "  latent: 2\n  mechanism: statistics\n"):                                                                           "method.mechanism: noises releases, and the plan has no differential protection",
		planWith(twoViews, "  latent: 2\n  clipping: {}\n"):                                                                                    "method.clipping: belongs to the private mechanisms",
		underTotal("  latent: 2\n  mechanism: stats\n"):                                                                                        "hint: one of statistics, joint-clipping, difference-clipping",
		underTotal("  latent: 2\n  mechanism: joint-clipping\n"):                                                                               `"joint-clipping" does not go with variant "federated"` + "\n  hint: variant: published, or mechanism: statistics",
		underTotal(published + "  mechanism: statistics\n"):                                                                                    `"statistics" does not go with variant "published"` + "\n  hint: variant: federated, or mechanism: difference-clipping",
		underTotal("  latent: 2\n  scaling: standard\n"):                                                                                       "method.scaling: \"standard\" takes the scale from the subjects' values",
		underTotal(joint + "  scaling: site-min-max\n"):                                                                                        "hint: range, with the range of every feature",
		underTotal(published + "  scaling: min-max\n"):                                                                                         `"min-max" takes the scale`,
		underTotal(published + "  noise: feature\n"):                                                                                           "one noise variance per view",
		underTotal("  latent: 2\n  local_rank: 4\n"):                                                                                           "method.local_rank: has no meaning for mechanism",
		underTotal("  latent: 2\n  rounds: 3\n"):                                                                                               "method.rounds: has no meaning for mechanism",
		underTotal("  latent: 2\n  scaling: none\n"):                                                                                           "clips values to their public ranges",
		underRelease("  latent: 2\n"):                                                                                                          "splits a total over what it releases",
		planWith(twoViews, "  latent: 2\n  patterns: [{views: [mri]}]\n"):                                                                      "method.patterns: belongs to the private mechanisms",
		strings.Replace(underTotal("  latent: 2\n"), "unit: subject", "unit: site", 1):                                                         "protects single subjects",
		underTotal("  latent: 2\n  clipping: {}\n"):                                                                                            "belongs to mechanisms joint-clipping and difference-clipping",
		underTotal(published + "  published: {initial: random}\n"):                                                                             "method.published.initial: a private first round starts at a public prior\n  hint: prior, which",
		underTotal(published + "  clipping: {difference: {first_round: clear}}\n"):                                                             "method.clipping.difference.first_round: in clear breaks any total",
		underTotal(published + "  clipping: {difference: {first_round: none}}\n"):                                                              `first_round: "none" is not known`,
		underTotal(published + "  clipping: {difference: {mean: {epsilon: 1}}}\n"):                                                             "mean.epsilon: is the budget of single releases",
		underTotal(published + "  clipping: {joint: {}}\n"):                                                                                    "method.clipping.joint: belongs to mechanism joint-clipping",
		underTotal(joint + "  clipping: {difference: {}}\n"):                                                                                   "method.clipping.difference: belongs to mechanism difference-clipping",
		underTotal(joint + "  clipping: {joint: {bound: 0}}\n"):                                                                                "method.clipping.joint.bound: 0 is not positive",
		underTotal(joint + "  clipping: {joint: {variance_scale: .inf}}\n"):                                                                    "variance_scale",
		underTotal(published + "  clipping: {noise_floor: -1}\n"):                                                                              "method.clipping.noise_floor: -1 is not positive",
		underTotal(published + "  clipping: {difference: {loadings: {constant: 0}}}\n"):                                                        "loadings.constant: 0 is not positive",
		underRelease(published + "  clipping: {difference: {loadings: {delta: 0.5}}}\n"):                                                       "loadings.delta: 0.5 cannot be the budget of a release",
		underRelease(published + "  clipping: {difference: {noise_variance: {epsilon: -1}}}\n"):                                                "noise_variance.epsilon: -1 cannot be",
		underRelease(published + "  clipping: {difference: {noise_variance: {delta: 0.1}}}\n"):                                                 "delta",
		underTotal(published + "  patterns: [{site: west, views: [mri]}]\n"):                                                                   `method.patterns.site: "west" is not a site of the plan`,
		underTotal("  latent: 2\n  patterns: [{site: north, views: [pet]}]\n"):                                                                 `"pet" is not a view of the plan`,
		underTotal("  latent: 2\n  patterns: [{site: north}]\n"):                                                                               "method.patterns.views: no views",
		underTotal("  latent: 2\n  patterns: [{views: [mri, mri]}]\n"):                                                                         "view mri is named twice",
		underTotal("  latent: 2\n  patterns: [{views: [mri, clinic]}, {views: [clinic, mri]}]\n"):                                              "method.patterns.views: the same set of views is stated twice",
		underTotal("  latent: 2\n  patterns: [{site: north, views: [clinic]}, {site: south, views: [clinic]}]\n"):                              "no subject can have view mri",
		underTotal("  latent: 2\n  patterns: [{views: [clinic, mri]}, {site: north, views: [clinic]}, {site: south, views: [clinic, mri]}]\n"): "method.patterns: no subject can have it",
		strings.Replace(underTotal(published), "1e-5}", "1e-5}, diagnostics: 0.1", 1):                                                          "has no diagnostics to spend a share of the total on",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", text, err, want)
		}
	}
}
