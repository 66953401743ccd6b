package factors

import (
	"strings"
	"testing"
)

// underTotal and underRelease are plans with a promise, and without.
func underTotal(options string) string {
	return privatePlan("{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}", options)
}

func underRelease(options string) string {
	return privatePlan("{protection: differential, unit: subject, adjacency: replace-one, per_release: {epsilon: 10, delta: 0.01}}", options)
}

func privatePlan(privacy, options string) string {
	const views = "  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [20, 200]}]}\n" +
		"  - {name: mri, features: [{name: volume, range: [0, 9]}, {name: thickness, range: [0, 4]}]}\n"
	return strings.Replace(planWith(views, options), "{protection: none}", privacy, 1)
}

func TestPrivateOptionsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		underTotal("  latent: 2\n  mechanism: difference-clipping\n"):                                                                          "hint: statistics; difference-clipping is what name: fed-mv-ppca does",
		underTotal("  latent: 2\n  clipping: {}\n"):                                                                                            "hint: name: fed-mv-ppca, which has these options",
		planWith(twoViews, "  latent: 2\n  mechanism: statistics\n"):                                                                           "method.mechanism: noises releases, and the plan has no differential protection",
		underTotal("  latent: 2\n  mechanism: stats\n"):                                                                                        `"stats" is not known`,
		underTotal("  latent: 2\n  scaling: standard\n"):                                                                                       "method.scaling: \"standard\" takes the scale from the subjects' values",
		underTotal("  latent: 2\n  rounds: 3\n"):                                                                                               "method.rounds: has no meaning for mechanism",
		underTotal("  latent: 2\n  scaling: none\n"):                                                                                           "clips values to their public ranges",
		underRelease("  latent: 2\n"):                                                                                                          "splits a total over what it releases",
		planWith(twoViews, "  latent: 2\n  patterns: [{views: [mri]}]\n"):                                                                      "method.patterns: belongs to private plans",
		strings.Replace(underTotal("  latent: 2\n"), "unit: subject", "unit: site", 1):                                                         "protects single subjects",
		underTotal("  latent: 2\n  patterns: [{site: west, views: [mri]}]\n"):                                                                  `method.patterns.site: "west" is not a site of the plan`,
		underTotal("  latent: 2\n  patterns: [{site: north, views: [pet]}]\n"):                                                                 `"pet" is not a view of the plan`,
		underTotal("  latent: 2\n  patterns: [{site: north}]\n"):                                                                               "method.patterns.views: no views",
		underTotal("  latent: 2\n  patterns: [{views: [mri, mri]}]\n"):                                                                         "view mri is named twice",
		underTotal("  latent: 2\n  patterns: [{views: [mri, clinic]}, {views: [clinic, mri]}]\n"):                                              "method.patterns.views: the same set of views is stated twice",
		underTotal("  latent: 2\n  patterns: [{site: north, views: [clinic]}, {site: south, views: [clinic]}]\n"):                              "no subject can have view mri",
		underTotal("  latent: 2\n  patterns: [{views: [clinic, mri]}, {site: north, views: [clinic]}, {site: south, views: [clinic, mri]}]\n"): "method.patterns: no subject can have it",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", text, err, want)
		}
	}
}
