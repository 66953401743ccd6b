package regression_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/study"
)

var methods = method.Registry{regression.Method{}}

// planOf is a plan with numbers x0, x1, … that need no scaling, and outcome y.
func planOf(t testing.TB, columns int, sites []string, options, privacy string) *study.Plan {
	t.Helper()
	return parse(t, planText(columns, sites, options, privacy))
}

func parse(t testing.TB, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), methods))(t)
}

func planText(columns int, sites []string, options, privacy string) string {
	var features, constants []string
	for j := range columns {
		features = append(features, fmt.Sprintf("x%d", j))
		constants = append(constants, fmt.Sprintf("{feature: x%d, centre: 0, scale: 1}", j))
	}
	return fmt.Sprintf("parley: 1\nname: small\nsites: [%s]\nviews:\n  - {name: v, features: [%s]}\nsubjects: "+
		"[y]\nmethod:\n  name: regression\n  constants: [%s]\n  %s\nprivacy: %s\n",
		strings.Join(sites, ", "), strings.Join(features, ", "), strings.Join(constants, ", "),
		strings.ReplaceAll(options, "\n", "\n  "), privacy)
}

const (
	unprotected = "{protection: none}"
	protected   = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"
	twoLevels   = "outcome: {column: y, levels: [no, yes]}\n"
)

type sample = methodtest.Sample

var drawn, yesNo = methodtest.Drawn, methodtest.YesNo

// config is a run with a sample's rows divided unevenly.
func config(t testing.TB, s sample, p *study.Plan) local.Config {
	t.Helper()
	return local.Config{Plan: p, Methods: methods, Data: s.Divided(t, p)}
}

func run(t testing.TB, c local.Config) (*fitted.Model, *local.Outcome) {
	t.Helper()
	out := testkit.Get(local.Run(t.Context(), c))(t)
	return modelOf(t, out.Result), out
}

func modelOf(t testing.TB, r *method.Result) *fitted.Model {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	if i < 0 {
		t.Fatal("no model/model.json")
	}
	return testkit.Get(fitted.LoadModel(r.Files[i].Data))(t)
}

func close2(t testing.TB, what string, want, got []float64, tol float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
