package privacy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// rowsOf counts the rows that a source still gives.
func rowsOf(d dataset.Source) (n int, err error) {
	for _, e := range d.Rows(context.Background()) {
		if e != nil {
			return n, e
		}
		n++
	}
	return n, nil
}

// Rows that a session has handed out can be read until it ends, and not after,
// neither from the beginning nor on from where somebody has stopped.
func TestDataEndWithTheSession(t *testing.T) {
	for name, end := range map[string]func(*privacy.Session) error{
		"sealed": func(s *privacy.Session) error { _, err := s.Seal([]byte("a"), nil); return err },
		"closed": func(s *privacy.Session) error { s.Close(); return nil },
	} {
		s := testkit.Get(privacy.NewGate(study, open, sitestore.NewMemory(), subjects(9)).AdmitAny(ask, request))(t)
		data := testkit.Get(s.Data())(t)
		next, stop := iter.Pull2(data.Rows(t.Context()))
		defer stop()
		if row, err, ok := next(); !ok || err != nil || row.ID != "0" {
			t.Fatalf("%v, %v, %v", row, err, ok)
		}
		if n, err := rowsOf(data); n != 9 || err != nil {
			t.Fatalf("%d rows, %v", n, err)
		}
		testkit.Do(t, end(s))
		if n, err := rowsOf(data); n != 0 || err == nil {
			t.Errorf("%s: %d rows were read afterwards, %v", name, n, err)
		}
		if row, err, ok := next(); row != nil || ok && err == nil {
			t.Errorf("%s: reading went on to row %v", name, row)
		}
		if data, err := s.Data(); err == nil {
			if n, err := rowsOf(data); n != 0 || err == nil {
				t.Errorf("%s: %d rows were handed out afterwards, %v", name, n, err)
			}
		}
	}
}

// What Whole hands over can be read until its function returns, and not after,
// although the session lasts: a function may not hide it for the next one.
func TestWholeSitesDataEndWithTheFunction(t *testing.T) {
	sum := vectors(1, 1)
	sum.Unit, sum.Mechanism.Count = privacy.WholeSite, 2
	s := granted(t, subjects(9), sum)
	var hidden dataset.Source
	var next func() (*dataset.Row, error, bool)
	var stop func()
	if _, err := s.Whole(t.Context(), "v", func(data dataset.Source, _ []float64) error {
		hidden = data
		next, stop = iter.Pull2(data.Rows(t.Context()))
		if row, err, ok := next(); !ok || err != nil || row.ID != "0" {
			t.Errorf("%v, %v, %v", row, err, ok)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	defer stop()
	try := func(when string) {
		t.Helper()
		if n, err := rowsOf(hidden); n != 0 || err == nil {
			t.Errorf("%s: %d rows, %v", when, n, err)
		}
		if row, err, ok := next(); row != nil || ok && err == nil {
			t.Errorf("%s: reading went on to row %v", when, row)
		}
	}
	try("after the function")
	if _, err := s.Whole(t.Context(), "v", func(dataset.Source, []float64) error {
		try("in the next function")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	try("after the session")
}

// spying is a session whose exact sums are seen, which release no noise.
func spying(t *testing.T, data dataset.Source, seen *[][][]int64, sums ...privacy.Sum) *privacy.Session {
	t.Helper()
	s, err := privacy.NewGate(study, open, sitestore.NewMemory(), data,
		privacytest.Replaced(func(_ string, exact [][]int64) [][]int64 {
			var kept [][]int64
			for _, b := range exact {
				kept = append(kept, append([]int64{}, b...))
			}
			*seen = append(*seen, kept)
			return exact
		})).AdmitAny(ask, differential(sums...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// few are the rows of a data set that a rule lets through.
type few struct {
	subjects
	without string
}

func (f few) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range f.subjects.Rows(ctx) {
			if row.ID != f.without && !yield(row, err) {
				return
			}
		}
	}
}

// A row whose contribution panics counts as nothing, in whatever way it does and
// whatever it has written before: the exact integers are those without the row,
// and nobody is told.
func TestRowThatPanicsCountsAsNothing(t *testing.T) {
	for name, blow := range map[string]func(row *dataset.Row, v []float64) int{
		"an error":             func(*dataset.Row, []float64) int { panic(errors.New("overflow")) },
		"a text":               func(row *dataset.Row, _ []float64) int { panic("subject " + row.ID) },
		"nil":                  func(*dataset.Row, []float64) int { panic(nil) },
		"an index":             func(row *dataset.Row, v []float64) int { return int(v[len(row.ID)+len(v)]) },
		"a view that is not":   func(row *dataset.Row, v []float64) int { v[0] = row.Views[3][0]; return 0 },
		"after it has written": func(_ *dataset.Row, v []float64) int { v[0], v[1] = 3, 4; panic("now") },
		"a type": func(row *dataset.Row, _ []float64) int {
			return len(any(row).(fmt.Stringer).String())
		},
		"a number that is none": func(_ *dataset.Row, v []float64) int { v[1] = math.NaN(); return 0 },
		"infinity":              func(_ *dataset.Row, v []float64) int { v[1] = math.Inf(-1); return 0 },
		"no such block":         func(_ *dataset.Row, v []float64) int { v[1] = 1; return 2 },
		"no such block below":   func(_ *dataset.Row, v []float64) int { v[1] = 1; return -7 },
	} {
		contribution := func(row *dataset.Row, v []float64) int {
			if row.ID == "4" {
				return blow(row, v)
			}
			i, _ := strconv.Atoi(row.ID)
			v[0], v[1] = float64(i)/4, -1
			return i % 2
		}
		var with, without [][][]int64
		n, err := spying(t, subjects(10), &with, vectors(1, 2, 2)).Sum(t.Context(), "v", contribution)
		if err != nil || n == nil {
			t.Errorf("%s: a row that panics is told: %v", name, err)
			continue
		}
		testkit.Get(spying(t, few{10, "4"}, &without, vectors(1, 2, 2)).Sum(t.Context(), "v", contribution))(t)
		if !reflect.DeepEqual(with, without) || len(with) != 1 {
			t.Errorf("%s: the sums are %v, and without the row %v", name, with, without)
		}
	}
}

// A computation over the whole site that panics, or fails, counts as nothing,
// like that of a site that holds nothing, and nobody is told.
func TestWholeSiteThatPanicsCountsAsNothing(t *testing.T) {
	sum := vectors(1, 2)
	sum.Unit = privacy.WholeSite
	for name, blow := range map[string]func(v []float64) error{
		"an error":               func([]float64) error { panic(errors.New("singular")) },
		"nil":                    func([]float64) error { panic(nil) },
		"an index":               func(v []float64) error { i := len(v); v[i] = 1; return nil },
		"after it has written":   func(v []float64) error { v[0], v[1] = 3, 4; panic("now") },
		"a failure that is told": func(v []float64) error { v[0] = 1; return errors.New("subject 7 is singular") },
	} {
		var seen [][][]int64
		n, err := spying(t, subjects(10), &seen, sum).Whole(t.Context(), "v",
			func(data dataset.Source, v []float64) error {
				if _, err := rowsOf(data); err != nil {
					return err
				}
				return blow(v)
			})
		if err != nil || n == nil || fmt.Sprint(seen) != "[[[0 0]]]" {
			t.Errorf("%s: %v, %v, %v", name, n, seen, err)
		}
	}
}
