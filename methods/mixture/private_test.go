package mixture

import (
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/study"
)

// tasksOf are the tasks of a study that site a is given, and what it holds.
func tasksOf(t *testing.T, p *study.Plan) ([]method.Task, methodtest.Rows) {
	t.Helper()
	data := map[string]dataset.Source{}
	for _, site := range p.Sites {
		data[site] = rowsOf(t, p)
	}
	return methodtest.Tasks(t, Method{}, p, data)["a"], methodtest.Collect(t, data["a"])
}

// otherRows are rows that have nothing to do with others but their columns.
func otherRows(p *study.Plan, like methodtest.Rows) methodtest.Rows {
	r := rand.New(rand.NewPCG(8, 8))
	out := methodtest.Rows{Of: like.Of}
	for i := range 70 {
		row := dataset.Row{ID: string(rune('A' + i))}
		for _, v := range p.Views {
			x := make([]float64, len(v.Features))
			for j := range x {
				x[j] = 7 + 5*r.NormFloat64()
			}
			row.Views = append(row.Views, x)
		}
		for range p.Subjects {
			row.Subject = append(row.Subject, []string{"yes", "no", "", "unheard of"}[r.IntN(4)])
		}
		out.List = append(out.List, row)
	}
	return out
}

// Under privacy all that leaves a site, and all that it keeps, follows from its noised
// sums, whatever these are: rows show in nothing else.
func TestPrivateAnswersFollowFromNoisedSums(t *testing.T) {
	for name, text := range privatePlans() {
		t.Run(name, func(t *testing.T) {
			p := parsePlan(t, text)
			tasks, rows := tasksOf(t, p)
			data := methodtest.Neighbours(rows)
			data["other rows"] = otherRows(p, rows)
			for _, scale := range []float64{0, 1, 1e3, 1e9, 1e18} {
				methodtest.Transcript(t, Method{}, p, "a", tasks, scale, data)
			}
		})
	}
}

// A row moves the exact sums by what it gives alone, wherever it stands.
func TestPrivateSumsAreSumsOverRows(t *testing.T) {
	for name, text := range privatePlans() {
		t.Run(name, func(t *testing.T) {
			p := parsePlan(t, text)
			tasks, rows := tasksOf(t, p)
			for _, data := range []methodtest.Rows{rows, otherRows(p, rows)} {
				// Rows that miss a view, and whose numbers are huge or infinite, between the others.
				for _, x := range []string{"an empty row", "a huge row", "a row of NaN"} {
					more := methodtest.Neighbours(data)[x].(methodtest.Rows).List
					data.List = append(data.List, more[len(more)-1])
				}
				methodtest.Additive(t, Method{}, p, "a", tasks, 1e3, data)
			}
		})
	}
}
