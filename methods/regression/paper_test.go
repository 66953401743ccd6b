package regression_test

import (
	"regexp"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
	"parley/study"
)

// A paper is told which model it was, and each work to cite has a DOI.
func TestPapersAreToldWhatToCite(t *testing.T) {
	known := method.Registry{regression.Method{}, factors.Method{}, mixture.Method{}}
	const private = "protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
	for options, want := range map[string]string{
		`name: regression, outcome: {column: y, levels: ["0", "1"]}`: "y was related to 2 features by " +
			"logistic regression with",
		`name: regression, outcome: {column: y}, noise_variance: 1, site_effects: random`: "linear regression with " +
			"an independent normal prior",
		`name: regression, outcome: {column: y, levels: ["0", "1"]}, link: cloglog`: "binary regression with a " +
			"complementary log-log link",
		`name: regression, outcome: {column: y, event: e, levels: [a, b], cuts: [1, 2]}`: "discrete-time survival " +
			"over 2 periods with a logistic link",
		`name: factors, latent: select`: "a number of factors that was " +
			"chosen on subjects who were left out",
		`name: mixture, components: 2`: "A mixture of normal " +
			"distributions of 2 features",
		`name: regression, outcome: {column: y, levels: ["0", "1"]}}, privacy: {` + private: "Sites sent noised histograms of",
		`name: factors, latent: 1}, privacy: {` + private:                                   "Each site sent noised counts",
	} {
		privacy := "privacy: {protection: none}"
		if strings.Contains(options, private) {
			privacy = ""
		} else {
			options += "}"
		}
		p, err := study.Parse("plan", []byte(`{parley: 1, name: cited, sites: [one, two, three], subjects: [y, e], views: [{name: v, features: [{name: a, range: [0, 1]}, {name: b, range: [0, 1]}]}],
			method: {`+strings.TrimSuffix(options+", "+privacy, ", ")+"}"), known)
		if err != nil {
			t.Fatalf("%s: %v", options, err)
		}
		paper := known.Paper(p)
		if !strings.Contains(paper.Text, want) {
			t.Errorf("%s: %s", options, paper.Text)
		}
		for _, r := range paper.References {
			if !regexp.MustCompile(`doi:10\.\d{4,}/\S+$`).MatchString(r) {
				t.Errorf("%s: %s", options, r)
			}
		}
		if noised := strings.Contains(strings.Join(paper.References, ""),
			"Canonne"); noised != p.Privacy.Differential() || len(paper.References) == 0 {
			t.Errorf("%s: %q", options, paper.References)
		}
	}
}
