package mixture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/study"
)

// manyRows are more of them than a plan's other tests have.
func manyRows(t testing.TB, p *study.Plan, n int) dataset.Source {
	t.Helper()
	r := rand.New(rand.NewPCG(6, 6))
	var rows []dataset.Row
	for i := range n {
		row := dataset.Row{ID: fmt.Sprintf("%05d", i)}
		for _, v := range p.Views {
			x := make([]float64, len(v.Features))
			for j := range x {
				x[j] = r.NormFloat64()
			}
			row.Views = append(row.Views, x)
		}
		for range p.Subjects {
			row.Subject = append(row.Subject, []string{"no", "no", "yes"}[i%3])
		}
		rows = append(rows, row)
	}
	data, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// numbers counts those that a message holds, and each of its words as one.
func numbers(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n = numbers(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "Cols", "Arm": // a shape, and which of a known list
			case "Rows":
				if v.Type().Name() != "Matrix" {
					n += numbers(v.Field(i))
				}
			default:
				n += numbers(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += numbers(v.Index(i))
		}
	case reflect.String:
		n = min(v.Len(), 1)
	default:
		n = 1
	}
	return n
}

// What is declared bounds what leaves, whatever rows a site has.
func TestRequestsBoundWhatLeaves(t *testing.T) {
	rows := 1000
	if testkit.Sized(true, false) {
		rows = 500
	}
	kinds := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(studied())) {
		p := parsePlan(t, studied()[name])
		list, err := Method{}.Requests(p, "a")
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]int{}
		_, err = play(t, p, everySite(t, p, manyRows(t, p, rows), privacytest.Seeded(5)), func(_ int, in method.Contribution) []method.Contribution {
			given[in.Kind]++
			at := slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == in.Kind })
			if at < 0 || given[in.Kind] > list[at].Times {
				t.Errorf("%s: task %q is listed less than %d times", name, in.Kind, given[in.Kind])
				return nil
			}
			declared := 0
			for _, c := range list[at].Request.Contents {
				declared += c.Values
			}
			for _, s := range list[at].Request.Sums {
				if len(in.Body) > 0 || len(in.Sums[s.Name]) != s.Mechanism.Count {
					t.Errorf("%s: %d bytes, and %d sums %q", name, len(in.Body), len(in.Sums[s.Name]), s.Name)
				}
			}
			if len(list[at].Request.Sums) > 0 {
				return nil
			}
			a := answerTypes[in.Kind]()
			if err := method.DecodeAnswer(in, a); err != nil {
				t.Fatal(err)
			}
			if n := numbers(reflect.ValueOf(a)); n > declared || n == 0 {
				t.Errorf("%s: an answer to %q holds %d numbers, and %d are declared", name, in.Kind, n, declared)
			}
			kinds[in.Kind] = true
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(kinds) != len(answerTypes) {
		t.Errorf("only tasks %v were answered", slices.Sorted(maps.Keys(kinds)))
	}
}
