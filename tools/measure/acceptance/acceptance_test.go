package acceptance

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// keep reports every promise that is broken, and demands that as many were
// made as the caller says.
func keep(t *testing.T, rows []row, graded int) {
	t.Helper()
	n := 0
	for _, r := range rows {
		if r.graded() {
			n++
			t.Logf("%s, %s: %s, bar %s", r.Case, r.What, number(r.Value), r.bar())
		}
	}
	if n != graded {
		t.Errorf("%d promises measured, want %d", n, graded)
	}
	for _, r := range missed(rows) {
		t.Errorf("%s, %s: %v, want %s (%s)", r.Case, r.What, r.Value, r.bar(), r.Note)
	}
}

func TestSyntheticData(t *testing.T) {
	rows, err := synthetic(t.Context(), "testdata", []int{1}, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, rows, 4*3) // scenarios × (two errors and a log-likelihood)
}

func TestClinicalData(t *testing.T) {
	rows, err := adcsf(t.Context(), "../../../judge/evaluate/testdata/adcsf", "../../../judge/evaluate/testdata/adcsf-splits.csv.gz", 1)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, rows, 4*2) // scenarios × (against its bar, against PCA)
	// An independent implementation (scikit-learn 1.2.1) on the same rows.
	if r := rows[0]; math.Abs(r.Value-0.0993) > 0.00005 {
		t.Errorf("%s: %v, want 0.0993", r.What, r.Value)
	}
}

func TestSpreadBetweenSites(t *testing.T) {
	rows, err := spread(t.Context(), 3, []int{6})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, rows, 2*len(spreadCases))
}

// The spread is stated in the units of a fit: factors with mean 0 and
// covariance I over both groups.
func TestPopulationIsStandard(t *testing.T) {
	const n = 100_000
	p := newPopulation(1)
	mean, square := make([]float64, sdFactors), make([]float64, sdFactors*sdFactors)
	for range n {
		x := p.subject()
		for a, u := range x {
			mean[a] += u / n
			for b, v := range x {
				square[a*sdFactors+b] += u * v / n
			}
		}
	}
	for a, m := range mean {
		if math.Abs(m) > 0.02 {
			t.Errorf("factor %d has mean %v", a, m)
		}
		for b := range sdFactors {
			want := 0.0
			if a == b {
				want = 1
			}
			if got := square[a*sdFactors+b]; math.Abs(got-want) > 0.02 {
				t.Errorf("covariance of factors %d and %d is %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestRowsAreGraded(t *testing.T) {
	tab := &table{promise: "p"}
	tab.add("a", "reported", 7)
	tab.add("a", "below", 1).atMost(1)
	tab.add("a", "between", 1.5).atLeast(1).atMost(2).note("%d folds", 3)
	tab.add("b", "above", 2.1).atLeast(1).atMost(2)
	tab.add("b", "under", 0.9).atLeast(1)
	tab.add("b", "nothing", math.NaN()).atMost(1)
	var bad []string
	for _, r := range missed(tab.rows) {
		bad = append(bad, r.What)
	}
	if got := strings.Join(bad, " "); got != "above under nothing" {
		t.Errorf("missed: %s", got)
	}

	var text bytes.Buffer
	if err := writeTable(&text, tab.rows); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(text.String(), "pass"); got != 2 {
		t.Errorf("%d rows pass in\n%s", got, text.String())
	}
	if got := strings.Count(text.String(), "FAIL"); got != 3 {
		t.Errorf("%d rows fail in\n%s", got, text.String())
	}

	var encoded bytes.Buffer
	if err := writeJSON(&encoded, tab.rows); err != nil {
		t.Fatal(err)
	}
	var back []struct {
		What        string
		Value       *float64
		Least, Most *float64
		Pass        *bool
	}
	if err := json.Unmarshal(encoded.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back) != 6 || back[0].Pass != nil || !*back[1].Pass || *back[3].Pass || *back[2].Least != 1 || *back[2].Most != 2 || *back[3].Value != 2.1 || back[5].Value != nil || *back[5].Pass {
		t.Errorf("JSON says\n%s", encoded.String())
	}
}
