package regression_test

import (
	"os"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression"
	"parley/study"
)

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
