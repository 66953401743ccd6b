package regression

import (
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/study"
)

// tasksOf are those that site a is given in a whole study.
func tasksOf(t testing.TB, p *study.Plan) []method.Task {
	t.Helper()
	return methodtest.Tasks(t, Method{}, p, dataFor(t, p))["a"]
}

// neighbours are data sets of site a that may tell themselves apart by noised sums
// alone: those of methodtest, other people altogether, others' outcomes, and outcomes
// that nobody knows.
func neighbours(t testing.TB, p *study.Plan) map[string]dataset.Source {
	t.Helper()
	rows := methodtest.Collect(t, rowsFor(t, p, "a", 12))
	all := methodtest.Neighbours(rows)
	all["other people"] = rowsFor(t, p, "b", 40)
	swapped, unknown := methodtest.Collect(t, rows), methodtest.Collect(t, rows)
	for i := range swapped.List {
		swapped.List[i].Subject[0] = rows.List[(i+5)%len(rows.List)].Subject[0]
		unknown.List[i].Subject[0] = []string{"", "NaN", "1e999", "nobody"}[i%4]
	}
	all["others' outcomes"], all["unknown outcomes"] = swapped, unknown
	return all
}

// The standard deviations of what is released in place of noised sums, in steps:
// nothing, about as much as noise has, and far too much.
var forcedScales = []float64{0, 1e5, 1e9, 1e17}

// Whoever the rows are, equal noised sums make equal answers: body, state and
// errors. So nothing of the rows is in an answer but through the noise.
func TestAnswersFollowFromNoisedSums(t *testing.T) {
	for name, x := range privatePlans {
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
			tasks, data := tasksOf(t, p), neighbours(t, p)
			for _, scale := range forcedScales {
				methodtest.Transcript(t, Method{}, p, "a", tasks, scale, data)
			}
		})
	}
}

// What a row gives to a sum does not depend on the rows before it.
func TestNothingIsCarriedFromRowToRow(t *testing.T) {
	for name, x := range privatePlans {
		if strings.HasPrefix(name, "whole site") { // its one vector is not of single rows
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
			for _, scale := range forcedScales[1:3] {
				methodtest.Additive(t, Method{}, p, "a", tasksOf(t, p), scale, methodtest.Collect(t, rowsFor(t, p, "a", 12)))
			}
		})
	}
}
