package factors

import (
	"os"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/study"
)

// What people are told follows the options.
func TestDescribeFollowsTheOptions(t *testing.T) {
	for _, c := range [][3]string{ // replaced, by, what is said
		{"latent: 6", "latent: 6", "6 factors, patterns that run through the 131 features of all 4 views together"},
		{"latent: 6", "latent: 6", "sends these again, at most 60 times"},
		{"latent: 6", "latent: 1\n  rounds: 0", "1 factor, patterns"},
	} {
		plan := example(t, c[0], c[1])
		if got := (Method{}).Describe(plan); !strings.Contains(got, c[2]) || strings.Count(got, ". ") != 1 {
			t.Errorf("%s: %s", c[1], got)
		}
	}
}

// example is the example's plan with one change.
func example(t *testing.T, replaced, by string) *study.Plan {
	t.Helper()
	data := testkit.Get(os.ReadFile("../../examples/alzheimer/plan.yaml"))(t)
	return testkit.Get(study.Parse("plan.yaml", []byte(strings.Replace(string(data), replaced, by, 1)),
		method.Registry{Method{}}))(t)
}
