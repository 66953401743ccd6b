package means_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/method/methodtest/means"
	"parley/study"
)

const plan = `parley: 1
name: small
sites: [north, south]
views:
  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [30, 150]}]}
  - {name: lab, features: [{name: crp, range: [0, 50]}]}
method: {name: means}
privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 1, delta: 1e-5}}
local: {data: data, split: {scenario: IID}}
`

func parse(t *testing.T, text string) *study.Plan {
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{means.Method{}}))(t)
}

// rows draws subjects, some of whom lack a view or a value.
func rows(t *testing.T, p *study.Plan) methodtest.Rows {
	rng := rand.New(rand.NewPCG(1, 2))
	list := methodtest.Rows{Of: p.Schema()}
	for range 40 {
		row := dataset.Row{Views: [][]float64{{100 * rng.Float64(), 30 + 120*rng.Float64()}, {50 * rng.Float64()}}}
		if rng.IntN(3) == 0 {
			row.Views[0] = nil
		}
		list.List = append(list.List, row)
	}
	return list
}

// Nothing of a row leaves but through the noised sum, whatever it holds, and no row
// moves it by more than its own.
func TestPrivateHalf(t *testing.T) {
	p := parse(t, plan)
	all := rows(t, p)
	tasks := methodtest.Tasks(t, means.Method{}, p, map[string]dataset.Source{"north": all, "south": all})["north"]
	methodtest.Transcript(t, means.Method{}, p, "north", tasks, 1e6, methodtest.Neighbours(all))
	methodtest.Additive(t, means.Method{}, p, "north", tasks, 1e6, all)
}

func TestRangesAreNeededUnderPrivacy(t *testing.T) {
	text := strings.Replace(plan, "{name: crp, range: [0, 50]}", "{name: crp}", 1)
	_, err := study.Parse("plan.yaml", []byte(text), method.Registry{means.Method{}})
	if err == nil || !strings.Contains(err.Error(), "crp has no range") {
		t.Error(err)
	}
}
