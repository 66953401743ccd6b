package fitted

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// labelled gives subjects columns.
func labelled(t testing.TB, table *dataset.Table, names []string, cells func(i int) []string) *dataset.Table {
	t.Helper()
	schema := table.Schema()
	schema.Subject = nil
	for _, n := range names {
		schema.Subject = append(schema.Subject, dataset.Column{Name: n, Kind: dataset.Label})
	}
	var rows []dataset.Row
	for i := range table.Len() {
		row := table.Row(i)
		rows = append(rows, dataset.Row{ID: row.ID, Views: row.Views, Subject: cells(i)})
	}
	return testkit.Get(dataset.NewTable(schema, rows))(t)
}

func associations(t testing.TB, m *Model, data dataset.Source, categories ...string) ([]tested, string) {
	t.Helper()
	account, err := m.Associate(context.Background(), data, method.AssociateOptions{Categories: categories})
	if err != nil {
		t.Fatal(err)
	}
	value := account.Value.(sitesOwn)
	if !strings.Contains(value.For, "this site only") || !strings.Contains(account.Tables[0].Title,
		"for this site only") {
		t.Errorf("labelled %q, %q", value.For, account.Tables[0].Title)
	}
	return value.Associations, account.Notes.Error()
}

func TestColumnsThatTellNothingAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(102, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.5)
	m := modelOf(t, tr, r)
	table := ownUnits(m, tr.Subjects(r, 150))
	for want, cell := range map[string]func(i int) string{
		"is the same for all subjects": func(int) string { return "x" },
		"has more than 100 different":  func(i int) string { return fmt.Sprintf("id%d", i) },
		"all subjects who have it":     func(int) string { return "" },
		"50 subjects are too few": func(i int) string {
			return map[bool]string{true: fmt.Sprintf("id%d", i)}[i < 50]
		},
		"2 subjects are too few": func(i int) string { return map[bool]string{true: fmt.Sprint(i)}[i < 2] },
	} {
		data := labelled(t, table, []string{"column"}, func(i int) []string { return []string{cell(i)} })
		if _, err := m.Associate(context.Background(), data, method.AssociateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "column column: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	data := labelled(t, table, []string{"code"}, func(i int) []string { return []string{fmt.Sprint(i % 3)} })
	if _, notes := associations(t, m, data); !strings.Contains(notes,
		"hint: if they are codes of a category, say --category code") {
		t.Errorf("notes %s", notes)
	}
}

// The loadings of each factor are ranked by their size without a unit.
func TestLoadingsAreRanked(t *testing.T) {
	r := rand.New(rand.NewPCG(112, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5), r)
	table := m.loadingTable(7)
	last := 0.0
	for i, x := range table.Columns[5].Numbers {
		if size := math.Abs(x); table.Columns[1].Numbers[i] != float64(i%7+1) || size > 1 || i%7 > 0 && size > last {
			t.Errorf("line %d: %v after %v", i, x, last)
		} else {
			last = size
		}
	}
	if table.Len() != 2*7 {
		t.Errorf("%d lines", table.Len())
	}
}

// TestTheSummaryHoldsWhatAReaderAsksFor: what, where, how, and how strong.
func TestTheSummaryHoldsWhatAReaderAsksFor(t *testing.T) {
	r := rand.New(rand.NewPCG(113, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5), r)
	account := testkit.Get(m.Summary(2))(t)
	if tables := account.Tables; len(tables) != 2 || tables[0].Len() != 2 || tables[1].Len() != 4 {
		t.Errorf("%+v", tables)
	}
	var text bytes.Buffer
	for _, f := range account.Facts {
		fmt.Fprintln(&text, f.Name, f.Value)
	}
	for _, want := range []string{"study test", "seed 5", "10 at 2 sites: one (5), two (5)", "7 in 2 views",
		"standard, noise per view", "parley/mvppca-model/1", "0123456789ab"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	// Units of single sites have no common meaning.
	m.Scaling = ppca.ScaleSiteRange
	for _, x := range testkit.Get(m.Summary(1))(t).Tables[1].Columns[7].Numbers {
		if !math.IsNaN(x) {
			t.Errorf("%v has a unit", x)
		}
	}
}

var (
	_ method.Summariser  = (*Model)(nil)
	_ method.Transformer = (*Model)(nil)
	_ method.Imputer     = (*Model)(nil)
	_ method.Associater  = (*Model)(nil)
)

// A standard error that nobody knows is an empty cell, as in every table.
func TestUnknownErrorsOfLoadingsAreEmptyCells(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 5, 4), 2, 0.5), r)
	for k := range m.Views {
		for j := range m.Views[k].Features {
			m.Views[k].Features[j].LoadingSE = []float64{0.1, 0}
		}
	}
	m.Errors = &assess.Errors{Turns: []float64{0.1, 0.1}, Outside: []float64{0, 0}}
	data := string(testkit.Get(m.LoadingsCSV())(t))
	if !strings.Contains(data, "se_2") || strings.Contains(data, "NaN") || strings.Contains(data, "Inf") ||
		!strings.Contains(data, ",\n") {
		t.Errorf("loadings.csv is\n%s", data)
	}
}
