package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"parley/internal/testkit"

	"gonum.org/v1/gonum/stat"
)

func describe(t testing.TB, src Source) *Summary {
	t.Helper()
	return testkit.Get(Describe(context.Background(), src))(t)
}

// TestMoments compares with gonum's two-pass formulas, far from zero too.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, offset := range []float64{0, 1e9, -1e12} {
		schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}, {Name: "holes"}}}}}
		var rows []Row
		var x, holes []float64
		for i := range 3000 {
			a, b := offset+rng.NormFloat64(), offset+3*rng.NormFloat64()
			x = append(x, a)
			if i%3 == 0 {
				b = math.NaN()
			} else {
				holes = append(holes, b)
			}
			rows = append(rows, Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{{a, b}}})
		}
		table := testkit.Get(NewTable(schema, rows))(t)
		for j, values := range [][]float64{x, holes} {
			f := describe(t, table).Views[0].Features[j]
			mean, sd := stat.MeanStdDev(values, nil)
			if f.Observed != int64(len(values)) || f.Missing != int64(3000-len(values)) {
				t.Errorf("%d observed and %d missing, want %d", f.Observed, f.Missing, len(values))
			}
			// The mean to a few units in the last place of the offset; the
			// deviation loses no digits that the values have.
			if math.Abs(f.Moments.Mean-mean) > 1e-14*(1+math.Abs(offset)) ||
				math.Abs(f.Moments.SD/sd-1) > 1e-12+1e-16*math.Abs(offset) {
				t.Errorf("offset %g: mean %v, sd %v; want %v, %v", offset, f.Moments.Mean, f.Moments.SD, mean, sd)
			}
		}
	}
}

func TestDescribeCounts(t *testing.T) {
	s := describe(t, small(t, 7).Select(0, 1, 2, 3, 5))
	want := []Pattern{{Views: []string{"v"}, Subjects: 3}, {Views: []string{"v", "w"}, Subjects: 2}}
	if !reflect.DeepEqual(s.Patterns, want) {
		t.Errorf("patterns %v, want %v", s.Patterns, want)
	}
	if c := s.Columns; len(c) != 1 || fmt.Sprint(c[0].Name, c[0].Levels, c[0].Many) != "g[{0 2} {1 1} {2 2}] false" {
		t.Errorf("columns %+v", c)
	}
	text := testkit.Get(json.Marshal(s))(t)
	for k := range s.Views {
		for j := range s.Views[k].Features {
			f := &s.Views[k].Features[j]
			f.ends, f.sizes, f.often, f.forms, f.limit = nil, nil, nil, nil, nil // no part of it
		}
	}
	s.rows, s.alike, s.Columns[0].number = nil, nil, nil
	back := Summary{Census: s.Census} // which is not for release
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, s) {
		t.Errorf("JSON gives %+v, %v; want %+v", back, err, s)
	}
}

func TestWarnings(t *testing.T) {
	nan := math.NaN()
	schema := Schema{Views: []View{
		{Name: "u", Columns: []Column{{Name: "one"}, {Name: "none"}, {Name: "two"},
			{Name: "level", Kind: Category, Levels: []string{"a", "b"}}}},
		{Name: "v", Columns: []Column{{Name: "x"}}},
		{Name: "w", Columns: []Column{{Name: "y"}}},
	}}
	table, err := NewTable(schema, []Row{
		{ID: "1", Views: [][]float64{{5, nan, 1, 1}, nil, nil}},
		{ID: "2", Views: [][]float64{{5, nan, 2, 1}, nil, nil}},
		{ID: "3", Views: [][]float64{nil, {1}, nil}},
		{ID: "4", Views: [][]float64{nil, {2}, nil}},
		{ID: "5", Views: [][]float64{nil, nil, nil}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"view u, feature one: is constant here, at 2 of the subjects",
		"view u, feature none: has no value",
		"view u, feature level: is constant here, at 2 of the subjects",
		"view w: no subject has it",
		"subjects: 1 of 5 have no view at all",
		"sets of views with fewer than 3 subjects: 2; subjects who have them: 4",
		"  hint: without privacy how many they are is released: minimum: {pattern_subjects: 3} in the site's policy " +
			"prevents that",
		"views u and v: no subject has both",
		"  hint: here nothing links them; are the ids written the same way in both files?",
	}, "\n")
	if got := describe(t, table).Warnings().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDescribeIsBounded has more labels and patterns than are counted.
func TestDescribeIsBounded(t *testing.T) {
	const views = 11 // 2048 patterns
	var schema Schema
	for k := range views {
		schema.Views = append(schema.Views, View{Name: fmt.Sprint("v", k),
			Columns: []Column{{Name: fmt.Sprint("x", k)}}})
	}
	schema.Subject = []Column{{Name: "label", Kind: Label}}
	var rows []Row
	for i := range 1 << views {
		row := Row{ID: fmt.Sprintf("%04d", i), Views: make([][]float64, views), Subject: []string{fmt.Sprint(i)}}
		for k := range views {
			if i>>k&1 == 1 {
				row.Views[k] = []float64{1}
			}
		}
		rows = append(rows, row)
	}
	table := testkit.Get(NewTable(schema, rows))(t)
	s := describe(t, table)
	if len(s.Patterns) != maxPatterns || s.OtherPatterns != 1<<views-maxPatterns || !s.Columns[0].Many ||
		s.Columns[0].Levels != nil {
		t.Errorf("%d patterns, %d other, column %+v", len(s.Patterns), s.OtherPatterns, s.Columns[0])
	}
	var b bytes.Buffer
	testkit.Do(t, s.Print(&b, false))
	for _, line := range strings.Split(b.String(), "\n")[3:][:views] {
		if n := strings.Count(line, present) + strings.Count(line, absent) + strings.Count(line, mixed); n != barWidth {
			t.Errorf("bar of %d blocks, want %d: %s", n, barWidth, line)
		}
	}
}

func TestDescribeRefusesOverflow(t *testing.T) {
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}
	table := testkit.Get(NewTable(schema, []Row{{ID: "a", Views: [][]float64{{-1e308}}},
		{ID: "b", Views: [][]float64{{1e308}}}}))(t)
	if _, err := Describe(context.Background(), table); err == nil ||
		!strings.Contains(err.Error(), "feature x: values from -1e+308 to 1e+308 are too large") {
		t.Errorf("got %v, want a refusal", err)
	}
}
