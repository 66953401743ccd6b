package glm

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
)

func patients() *Encoding {
	return &Encoding{Intercept: true, Columns: []Column{
		{Name: "age", Centre: 50, Scale: 10, Missing: Fallback{Rule: Neutral}},
		{Name: "stage", Levels: []string{"I", "II", "III"}, Missing: Fallback{Rule: Neutral}},
		FromRange("dose", 0, 200),
	}}
}

func TestCellsBecomeRows(t *testing.T) {
	e := patients()
	testkit.Do(t, e.Check())
	if want := []string{"age", "stage=I", "stage=II", "stage=III", "dose", "intercept"}; !slices.Equal(e.Features(),
		want) || e.Width() != len(want) {
		t.Errorf("features %v, width %d", e.Features(), e.Width())
	}
	nan := math.NaN()
	for _, c := range []struct{ cells, want []float64 }{
		{[]float64{70, 1, 150}, []float64{2, 0, 1, 0, 0.5, 1}},
		{[]float64{nan, 0, 100}, []float64{0, 1, 0, 0, 0, 1}},  // missing number: the centre
		{[]float64{50, nan, 300}, []float64{0, 0, 0, 0, 1, 1}}, // missing level: none; beyond the range: its end
		{[]float64{40, 2, -1e9}, []float64{-1, 0, 0, 1, -1, 1}},
	} {
		var r Row
		if err := e.Encode(c.cells, &r); err != nil {
			t.Errorf("%v: %v", c.cells, err)
			continue
		}
		d := NewDesign(e.Width())
		testkit.Do(t, d.Append(r, 1))
		if got := dense(d, 0); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.cells, got, c.want)
		}
	}
	for _, c := range []struct {
		cells []float64
		want  string
	}{
		{[]float64{50, 0, nan}, "dose: the value is missing"},
		{[]float64{math.Inf(1), 0, 1}, "age: the value +Inf"},
		{[]float64{1, 2}, "2 cells for 3 columns"},
		{[]float64{40, -1, 1}, "stage: the level is not one"},
		{[]float64{40, 7, 1}, "stage: the level is not one"},   // code out of range
		{[]float64{40, 0.5, 1}, "stage: the level is not one"}, // no code at all
	} {
		var r Row
		if err := e.Encode(c.cells, &r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.cells, err, c.want)
		}
	}
}

func TestContradictoryColumnsAreRefused(t *testing.T) {
	for want, columns := range map[string][]Column{
		"no columns":                nil,
		"not the only one":          {FromRange("a", 0, 1), FromRange("a", 0, 1)},
		"levels and constants":      {{Name: "a", Scale: 1, Levels: []string{"x"}}},
		"a column that is constant": {FromRange("a", 3, 3)},
		"scale NaN":                 {{Name: "a", Scale: math.NaN()}},
		`"x" is declared twice`:     {{Name: "a", Levels: []string{"x", "x"}}},
		"unseen: \"neutral\"":       {{Name: "a", Levels: []string{"x"}, Unseen: Fallback{Neutral}}},
		"want refuse or neutral":    {{Name: "a", Scale: 1, Missing: Fallback{Rule: "mean"}}},
	} {
		e := Encoding{Columns: columns}
		if err := e.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// In the features' own units the activation is the same.
func TestEffectsAreInOwnUnits(t *testing.T) {
	e := patients()
	mean := []float64{0.5, -1, 0, 2, 0.8, -0.3}
	variance := []float64{0.04, 0.1, 0.2, 0.3, 0.01, 0.09}
	effects := e.Effects(Normal{Mean: mean, Variance: variance})
	var r Row
	testkit.Do(t, e.Encode([]float64{63, 2, 120}, &r))
	want, _ := r.Activation(mean, variance)
	got := 63*effects[0].Mean + effects[3].Mean + 120*effects[4].Mean + effects[5].Mean
	near(t, "activation", []float64{want}, []float64{got}, 1e-12)
	near(t, "sd of age", []float64{0.02}, []float64{effects[0].SD}, 1e-12)
	near(t, "sd of a level", []float64{math.Sqrt(0.2)}, []float64{effects[2].SD}, 1e-12)
	// At age 0 and dose 0: 5 scales and 1 scale from the centres.
	near(t, "sd of the intercept", []float64{math.Sqrt(0.09 + 25*0.04 + 0.01)}, []float64{effects[5].SD}, 1e-12)
	if effects[4].Feature != "dose" {
		t.Errorf("%+v", effects[4])
	}
}

var clinic = dataset.Schema{
	Views: []dataset.View{
		{Name: "blood", Columns: []dataset.Column{{Name: "dose"}}},
		{Name: "visit", Columns: []dataset.Column{{Name: "stage", Kind: dataset.Category,
			Levels: []string{"IV", "III", "II", "I"}}, {Name: "age"}}},
	},
	Subject: []dataset.Column{{Name: "site", Kind: dataset.Label}, {Name: "relapse", Kind: dataset.Label}},
}

func TestRowsOfOtherSchemasAreBoundByName(t *testing.T) {
	b := testkit.Get(patients().Bind(clinic, &Outcome{Column: "relapse", Levels: []string{"no", "yes"}}))(t)
	table, err := dataset.NewTable(clinic, []dataset.Row{
		{ID: "1", Views: [][]float64{{100}, {2, 60}}, Subject: []string{"x", "yes"}},
		{ID: "2", Views: [][]float64{{100}, {1, 50}}, Subject: []string{"x", "no"}},
		{ID: "3", Views: [][]float64{{200}, nil}, Subject: []string{"x", "maybe"}}, // lacks a view
		{ID: "4", Views: [][]float64{nil, {1, 50}}, Subject: []string{"x", ""}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Index: []int32{0, 2, 5}, Value: []float64{1, 1, 1}},
		{Index: []int32{3, 5}, Value: []float64{1, 1}},
		{Index: []int32{4, 5}, Value: []float64{1, 1}},
	}
	var r Row
	i := 0
	for row := range table.Rows(context.Background()) {
		err := b.Row(row, &r)
		y, errY := b.Outcome(Logistic{}, row)
		if i == 3 {
			if err == nil || !strings.Contains(err.Error(), "dose: the value is missing") {
				t.Errorf("subject 4: %v", err)
			}
			break
		}
		if err != nil || !slices.Equal(r.Index, want[i].Index) || !slices.Equal(r.Value, want[i].Value) {
			t.Errorf("subject %d: %v, %v", i+1, r, err)
		}
		if i < 2 && (errY != nil || y != float64(1-2*i)) {
			t.Errorf("subject %d: outcome %v, %v", i+1, y, errY)
		}
		if i == 2 && (errY == nil || !strings.Contains(errY.Error(), `"maybe" is not one of`)) {
			t.Errorf("subject %d: %v", i+1, errY)
		}
		i++
	}
}

func TestSchemasThatDoNotFitAreRefused(t *testing.T) {
	outcome := &Outcome{Column: "relapse"}
	for want, c := range map[string]struct {
		column  Column
		outcome *Outcome
	}{
		`no column "weight"`:        {FromRange("weight", 0, 1), outcome},
		"stage: the model and the":  {FromRange("stage", 0, 1), outcome},
		"age: the model and the":    {Column{Name: "age", Levels: []string{"old"}}, outcome},
		`no subject column "cured"`: {FromRange("age", 0, 1), &Outcome{Column: "cured"}},
		"column age: centre":        {FromRange("age", 1, 1), outcome},
	} {
		e := Encoding{Columns: []Column{c.column}}
		if _, err := e.Bind(clinic, c.outcome); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOutcomesAreReadByTheModelsKind(t *testing.T) {
	three := &Outcome{Column: "relapse", Levels: []string{"a", "b", "c"}}
	number := &Outcome{Column: "relapse"}
	e := Encoding{Intercept: true}
	read := func(o *Outcome, l Likelihood, text string) (float64, error) {
		b := testkit.Get(e.Bind(clinic, o))(t)
		return b.Outcome(l, &dataset.Row{Subject: []string{"x", text}})
	}
	for _, c := range []struct {
		o    *Outcome
		l    Likelihood
		text string
		want float64
	}{{three, Softmax{3}, "c", 2}, {three, Softmax{3}, "a", 0}, {number, Linear{Variance: 1}, "-2.5", -2.5},
		{&Outcome{Column: "relapse", Levels: []string{"0", "1"}}, Logistic{}, "0", -1}} {
		if got, err := read(c.o, c.l, c.text); err != nil || got != c.want {
			t.Errorf("%s of %v: %v, %v", c.text, c.o, got, err)
		}
	}
	for want, c := range map[string]struct {
		o    *Outcome
		l    Likelihood
		text string
	}{
		"outcome 3 of a binary model": {three, Logistic{}, "c"},
		"not a finite number":         {number, Linear{Variance: 1}, "NaN"},
		`"high" is not a finite`:      {number, Linear{Variance: 1}, "high"},
		`"" is not one of`:            {three, Softmax{3}, ""},
	} {
		if _, err := read(c.o, c.l, c.text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// dense returns a row of a design with its zeros.
func dense(d *Design, i int) []float64 {
	x := make([]float64, d.Columns())
	r := d.Row(i)
	for k, j := range r.Index {
		x[j] = r.Value[k]
	}
	return x
}
