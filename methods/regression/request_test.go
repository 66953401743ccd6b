package regression

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/privacy"
	"parley/study"
)

// wide is a plan with many numbers and classes.
func (d driven) wide(t testing.TB, numbers, classes int) *study.Plan {
	t.Helper()
	var features, levels []string
	for i := range numbers {
		features = append(features, fmt.Sprintf("{name: x%d, range: [-1, 1]}", i))
	}
	for k := range classes {
		levels = append(levels, fmt.Sprintf("c%d", k))
	}
	text := fmt.Sprintf("parley: 1\nname: wide\nsites: [a, b]\nviews:\n  - {name: v, features: [%s]}\nsubjects: [y]\nmethod: {name: pvi, %s}\nprivacy: %s\n",
		strings.Join(features, ", "), strings.ReplaceAll(d.method, "[levels]", strings.Join(levels, ", ")), d.privacy)
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a request declares is an upper bound of what leaves, number for number: the
// gate seals nothing longer, however wide a plan is.
func TestRequestsAreUpperBounds(t *testing.T) {
	const outcome = "outcome: {column: y, levels: [[levels]]}, likelihood: softmax, rounds: 1"
	for name, x := range map[string]driven{
		"natural":     {outcome, diagnosed, ""},
		"whole sites": {outcome + ", clip: 9", bySite, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range [][2]int{{1, 2}, {400, 9}} {
				p := x.wide(t, size[0], size[1])
				r := rand.New(rand.NewPCG(3, 1))
				data := map[string]dataset.Source{}
				for _, site := range p.Sites {
					var rows []dataset.Row
					for i := range 8 {
						cells := make([]float64, size[0])
						for j := range cells {
							cells[j] = r.NormFloat64()
						}
						rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{cells}, Subject: []string{fmt.Sprintf("c%d", i%size[1])}})
					}
					table, err := dataset.NewTable(p.Schema(), rows)
					if err != nil {
						t.Fatal(err)
					}
					data[site] = table
				}
				list, err := Method{}.Requests(p, "a")
				if err != nil {
					t.Fatal(err)
				}
				asked := map[string]int{}
				d := methodtest.Drive{Method: Method{}, Plan: p, Data: data, Passed: func(task method.Task, in method.Contribution) {
					if task.Site == "a" {
						asked[task.Kind]++
						demandDeclared(t, list, in)
					}
				}}
				if _, err := d.Run(t); err != nil || len(d.Left) > 0 {
					t.Fatalf("%v, left %v", err, d.Left)
				}
				for _, l := range list {
					if asked[l.Kind] == 0 || asked[l.Kind] > l.Times {
						t.Errorf("task %q is listed %d times, and was given %d times", l.Kind, l.Times, asked[l.Kind])
					}
				}
			}
		})
	}
}

// demandDeclared holds an answer against its request: as many numbers as it says, of
// 8 bytes each in vectors, or sums.
func demandDeclared(t testing.TB, list []privacy.Listed, in method.Contribution) {
	t.Helper()
	for _, l := range list {
		if l.Kind != in.Kind {
			continue
		}
		values := 0
		for _, c := range l.Request.Contents {
			values += c.Values
		}
		// Names and heads of single fields beside the numbers.
		if len(in.Body) > 8*values+200 {
			t.Errorf("task %q: a body of %d bytes, and %d numbers are declared", in.Kind, len(in.Body), values)
		}
		for _, s := range l.Request.Sums {
			if n := len(in.Sums[s.Name]); s.Kept && n > 0 || !s.Kept && n != 1 {
				t.Errorf("task %q: %d sums %q", in.Kind, n, s.Name)
			}
		}
		return
	}
	t.Errorf("task %q is not listed", in.Kind)
}
