package regression_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
)

var _ method.DataComparer = (*fitted.Model)(nil)

// compared is what a comparison says to programs.
type compared struct {
	Only    [2][]string `json:"effects_only"`
	Apart   int         `json:"effects_apart"`
	SDRatio float64     `json:"sd_ratio"`
	Effects []struct {
		Class      string     `json:"class"`
		Feature    string     `json:"feature"`
		Mean       [2]float64 `json:"mean"`
		SD         [2]float64 `json:"sd"`
		Difference float64    `json:"difference"`
		Deviations float64    `json:"difference_in_sd"`
	} `json:"effects"`
	Predictions *struct {
		Subjects int      `json:"subjects"`
		Mean     *float64 `json:"mean_difference_of_probabilities"`
		RMS      *float64 `json:"root_mean_square_difference"`
	} `json:"predictions"`
}

func valueOf(t *testing.T, a *method.Account, err error) (c compared) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(a.Value)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// modelWith is a model of numbers x0, x1, … with these effects.
func modelWith(t *testing.T, options string, mean, sd []float64) (*fitted.Model, dataset.Schema) {
	t.Helper()
	columns := len(mean)
	if strings.Contains(options, "[a, b, c]") {
		columns /= 3
	}
	p := planOf(t, columns, []string{"one"}, options, unprotected)
	y := []string{"no", "yes", "no"}
	if strings.Contains(options, "[a, b, c]") {
		y = []string{"a", "b", "c"}
	} else if strings.Contains(options, "noise_variance") {
		y = []string{"1", "2", "3"}
	}
	s := sample{Y: y}
	for i := range y {
		x := make([]float64, columns)
		x[i%columns] = 1
		s.X = append(s.X, x)
	}
	fit := testkit.Get(exact.Central(t.Context(), p, s.Table(t, p, nil)))(t)
	m := *fit.Model
	m.Covariance = nil // of weights that are independent
	variance := make([]float64, len(sd))
	for i, x := range sd {
		variance[i] = x * x
		m.Effects[i].Mean, m.Effects[i].SD = mean[i], x
	}
	m.Posterior = testkit.Get(glm.FromMoments(mean, variance))(t)
	return &m, p.Schema()
}

// The numbers are worked out by hand.
func TestEffectsAreComparedByHand(t *testing.T) {
	a, _ := modelWith(t, twoLevels, []float64{1, -2, 0.5}, []float64{0.3, 0.1, 0.2})
	b, _ := modelWith(t, twoLevels, []float64{0, 2, 0.5}, []float64{0.4, 0.1, 0.1})
	account, err := a.Compare(b)
	c := valueOf(t, account, err)
	var order []string
	for _, e := range c.Effects {
		order = append(order, e.Feature)
	}
	if !slices.Equal(order, []string{"x1", "x0", "x2"}) || c.Apart != 1 {
		t.Errorf("%+v", c)
	}
	close2(t, "x0", []float64{1, 2, 1, 0}, []float64{c.Effects[1].Difference, c.Effects[1].Deviations, c.Effects[1].Mean[0], c.Effects[1].Mean[1]}, 1e-12)
	close2(t, "ratio", []float64{math.Cbrt(0.75 * 1 * 2)}, []float64{c.SDRatio}, 1e-12)
	// The other way round signs change, and nothing else.
	account, err = b.Compare(a)
	for i, e := range valueOf(t, account, err).Effects {
		if e.Difference != -c.Effects[i].Difference || e.Deviations != -c.Effects[i].Deviations {
			t.Errorf("%+v turned", e)
		}
	}
}

func TestPredictionsAreComparedByHand(t *testing.T) {
	rows := func(schema dataset.Schema, x ...[]float64) dataset.Source {
		schema.Subject = nil
		var all []dataset.Row
		for i := range x {
			all = append(all, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{x[i]}})
		}
		table := testkit.Get(dataset.NewTable(schema, all))(t)
		return table
	}
	sure := []float64{1e-6, 1e-6}
	sigma := func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }

	a, schema := modelWith(t, twoLevels, []float64{1, 0}, sure)
	b, _ := modelWith(t, twoLevels, []float64{-1, 0}, sure)
	account, err := a.CompareOn(t.Context(), b, rows(schema, []float64{2, 0}, []float64{0, 1}))
	p := valueOf(t, account, err).Predictions
	if p == nil || p.Subjects != 2 || p.RMS != nil {
		t.Fatalf("%+v", p)
	}
	d := sigma(2) - sigma(-2)
	close2(t, "two classes", []float64{d / 2}, []float64{*p.Mean}, 1e-9)

	// Of three classes, half the sum of the differences: 1/3 moves to ever smaller
	// shares of the others.
	zero := make([]float64, 6)
	tiny := []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}
	c, schema := modelWith(t, "outcome: {column: y, levels: [a, b, c]}", zero, tiny)
	e, _ := modelWith(t, "outcome: {column: y, levels: [a, b, c]}", []float64{20, 0, 0, 0, 0, 0}, tiny)
	account, err = c.CompareOn(t.Context(), e, rows(schema, []float64{1, 0}))
	if p = valueOf(t, account, err).Predictions; p == nil || p.Mean == nil || math.Abs(*p.Mean-2.0/3) > 1e-6 {
		t.Errorf("three classes: %+v", p)
	}

	number := "outcome: {column: y}\nnoise_variance: 4"
	f, schema := modelWith(t, number, []float64{1, 0}, sure)
	g, _ := modelWith(t, number, []float64{0, 0}, []float64{1, 1e-6})
	account, err = f.CompareOn(t.Context(), g, rows(schema, []float64{3, 0}, []float64{0, 0}))
	if p = valueOf(t, account, err).Predictions; p == nil || p.RMS == nil || p.Mean != nil {
		t.Fatalf("a number: %+v", p)
	}
	close2(t, "a number", []float64{3 / math.Sqrt2}, []float64{*p.RMS}, 1e-9)
	if _, err := f.CompareOn(t.Context(), g, rows(schema)); err == nil || !strings.Contains(err.Error(), "there are no subjects in them") {
		t.Errorf("nobody: %v", err)
	}
}

// What has other units is said and left out, and so are effects of one model alone.
func TestEffectsWithoutCommonMeaning(t *testing.T) {
	a, _ := modelWith(t, twoLevels, []float64{1, 2}, []float64{1, 1})
	b, _ := modelWith(t, twoLevels, []float64{1, 2, 3}, []float64{1, 1, 1})
	b.Views[0].Columns[0].Unit = "months"
	account, err := a.Compare(b)
	c := valueOf(t, account, err)
	if len(c.Effects) != 1 || c.Effects[0].Feature != "x1" || !slices.Equal(c.Only[1], []string{"x0", "x2"}) {
		t.Errorf("%+v", c)
	}
	if notes := strings.Join(account.Notes.Lines(), "\n"); !strings.Contains(notes, "model A: 1 of its effects not compared") || !strings.Contains(notes, "model B: 2 of its effects not compared") {
		t.Errorf("notes %s", notes)
	}
	for name, other := range map[string]string{"levels": "outcome: {column: y, levels: [a, b, c]}", "a number": "outcome: {column: y}\nnoise_variance: 1"} {
		n := 2
		if name == "levels" {
			n = 6
		}
		o, _ := modelWith(t, other, make([]float64, n), slices.Repeat([]float64{1}, n))
		if _, err := a.Compare(o); err == nil || !strings.Contains(err.Error(), "the models predict other things: y as one of") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.Views[0].Columns[1].Unit = "weeks"
	if _, err := a.Compare(b); err == nil || !strings.Contains(err.Error(), "no effect in common") {
		t.Errorf("nothing in common: %v", err)
	}
}

// Effects against different references mean different things, and are not set side by side.
func TestEffectsAgainstOtherReferencesAreNotCompared(t *testing.T) {
	rows := stays(8, 200, func(age, _, sex float64) float64 { return 0.3*age + sex })
	model := func(reference string) *fitted.Model {
		p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}\ninteractions: [[age, sex]]\nreferences: [{feature: sex, level: "+reference+"}]")
		fit := testkit.Get(exact.Central(t.Context(), p, tableOf(t, p, rows)))(t)
		return fit.Model
	}
	f, m := model("f"), model("m")
	account, err := f.Compare(m)
	c := valueOf(t, account, err)
	if len(c.Effects) != 1 || c.Effects[0].Feature != "dose" || len(account.Notes) != 2 || !slices.Contains(c.Only[0], "sex=m") || !slices.Contains(c.Only[0], "intercept") || !slices.Contains(c.Only[0], "age") {
		t.Errorf("%+v, %v", c.Effects, account.Notes)
	}
	if account, err = f.Compare(f); len(valueOf(t, account, err).Effects) != len(f.Effects) || len(account.Notes) != 0 {
		t.Errorf("with itself: %v", account.Notes)
	}
}
