//go:build unix

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
)

var three = []string{"north", "centre", "south"}

// example is the path of one of the examples' plans.
func example(t *testing.T, name string) string {
	t.Helper()
	return testkit.Get(filepath.Abs(filepath.Join(root, "examples", filepath.FromSlash(name))))(t)
}

const smallViews = `
sites: [north, centre, south]
views:
  - {name: clinic, features: [%s]}
subjects: [outcome]
`

// regressionPlan is a plan of regression on small data, or of dp-pvi where it has a schedule.
func regressionPlan(name, options, privacy string) string {
	method := "regression"
	if strings.Contains(options, "schedule") {
		if method = "dp-pvi"; privacy == exact {
			method += ", algorithm: exact"
		}
	}
	return "parley: 1\nname: " + name + fmt.Sprintf(smallViews,
		"{name: age, range: [-4, 4]}, {name: weight, range: [-4, 4]}") +
		"method: {name: " + method + ", outcome: {column: outcome, levels: [\"no\", \"yes\"]}, " + options + "}\n" +
		"privacy: " + privacy + "\n" + local
}

// factorPlan is a plan of factors on small data.
func factorPlan(name, options, privacy string) string {
	return unsupervised(name, "factors, latent: 1"+options, privacy)
}

// unsupervised is a plan on small data of a method that knows no outcome.
func unsupervised(name, method, privacy string) string {
	return "parley: 1\nname: " + name + fmt.Sprintf(smallViews,
		"{name: age, range: [-4, 4]}, {name: weight, range: [-4, 4]}, {name: score, range: [-4, 4]}") +
		"method: {name: " + method + "}\n" +
		"privacy: " + privacy + "\n" + local
}

const (
	local   = "local: {data: data, split: {scenario: IID}}\n"
	exact   = "{protection: none}"
	private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
)

// written writes a plan beside small data: one factor behind three features, and an
// outcome that follows from it.
func written(t *testing.T, plan string) string {
	t.Helper()
	dir := t.TempDir()
	writeData(t, filepath.Join(dir, "data"))
	path := filepath.Join(dir, "plan.yaml")
	testkit.Do(t, os.WriteFile(path, []byte(plan), 0o644))
	return path
}

func writeData(t *testing.T, dir string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 8))
	var subjects, clinic strings.Builder
	fmt.Fprintln(&subjects, "id,outcome")
	fmt.Fprintln(&clinic, "id,age,weight,score")
	for i := range 90 {
		x := rng.NormFloat64()
		outcome := "no"
		if x+0.7*rng.NormFloat64() > 0 {
			outcome = "yes"
		}
		fmt.Fprintf(&subjects, "s%03d,%s\n", i, outcome)
		fmt.Fprintf(&clinic, "s%03d,%.3f,%.3f,%.3f\n", i, x+0.5*rng.NormFloat64(), 0.5*x+rng.NormFloat64(),
			rng.NormFloat64()-x)
	}
	testkit.Do(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{"subjects.csv": subjects.String(), "view_clinic.csv": clinic.String()} {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}
