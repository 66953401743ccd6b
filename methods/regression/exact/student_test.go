package exact_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/study"
)

// numbers is a plan of a numeric outcome y, with weights w if more says so.
func numbers(t testing.TB, features, more string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan", []byte("{parley: 1, name: small, sites: [one, two], subjects: [y, w], views: "+
		"[{name: v, features: ["+features+
		"]}], method: {name: regression, outcome: {column: y}"+more+"}, privacy: {protection: none}}"), methods)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// records are those of a CSV file, without its head.
func records(t testing.TB, data []byte) [][]string {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[1:]
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	x := testkit.Get(strconv.ParseFloat(text, 64))(t)
	return x
}

// With a flat prior a study of two sites has the intervals of ordinary least squares wherever they
// are said. The numbers are by numpy: w = (XᵀX)⁻¹Xᵀy, s² = RSS/(n − 3), quantiles of t with 9
// degrees of freedom 2.262157 and 1.833113.
func TestIntervalsAreThoseOfLeastSquares(t *testing.T) {
	a := []float64{-1.5, -1.1, -0.7, -0.4, -0.1, 0.1, 0.3, 0.6, 0.8, 1.0, 1.3, 1.7}
	b := []float64{0.5, -1.2, 0.9, 0.1, -0.3, 1.4, -0.8, 0.2, -1.6, 0.7, 1.1, -0.2}
	y := []float64{2.1, 0.4, 2.9, 3.1, 1.7, 4.8, 1.6, 3.9, 0.9, 4.9, 5.2, 4.1}
	p := numbers(t, "a, b", ", prior_variance: 1e8, intercept_variance: 1e8, rounds: 60")
	var rows []dataset.Row
	for i := range a {
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{{a[i], b[i]}},
			Subject: []string{fmt.Sprint(y[i]), "1"}})
	}
	m, result := ended(t, p, map[string]dataset.Source{"one": table(t, p, rows[:5]), "two": table(t, p, rows[5:])})
	same := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 2e-3 { // of standard errors of .12, whose noise has settled to a thousandth
			t.Errorf("%s is %.5f, by least squares %.5f", what, got, want)
		}
	}
	want := [][2]float64{{0.60603159, 1.15656515}, {1.12640674, 1.70467742}, {2.46380916, 2.98701911}}
	for _, f := range result.Files {
		if f.Name != "model/coefficients.csv" {
			continue
		}
		for j, record := range records(t, f.Data) {
			same("low_95 of "+record[0], number(t, record[6]), want[j][0])
			same("high_95 of "+record[0], number(t, record[7]), want[j][1])
		}
	}
	account := testkit.Get(m.Contrast("a", "b"))(t)
	var contrast struct {
		Low  float64 `json:"low_95"`
		High float64 `json:"high_95"`
	}
	if value, err := json.Marshal(account.Value); err != nil || json.Unmarshal(value, &contrast) != nil {
		t.Fatal(err)
	}
	same("low_95 of a against b", contrast.Low, -0.93994)
	same("high_95 of a against b", contrast.High, -0.12855)
	var predicted bytes.Buffer
	if _, _, err := m.Predict(t.Context(), table(t, p,
		[]dataset.Row{{ID: "new", Views: [][]float64{{2, -1}}, Subject: []string{"0", "1"}}}), &predicted,
		0.9); err != nil {
		t.Fatal(err)
	}
	record := records(t, predicted.Bytes())[0]
	same("low", number(t, record[3]), 2.178065036927155)
	same("high", number(t, record[4]), 3.966872542300244)
}

// Rows count, and people where weights count them; noise that the plan states, and classes, have no
// degrees of freedom.
func TestDegreesOfFreedom(t *testing.T) {
	for name, c := range map[string]struct {
		more, weight string
		free         float64
	}{
		"rows":         {"", "1", 40 - 3},
		"people":       {", weights: {column: w, as: counts}", "3", 120 - 3},
		"a sample":     {", weights: {column: w, as: survey}", "1.5", 40 - 3},
		"stated noise": {", noise_variance: 1", "1", 0},
		"counts":       {", likelihood: poisson", "1", 0},
		"too many weights": {", splines: [{feature: a, knots: [-2, -1, 0, 1, 2]}, {feature: b, knots: [-2, -1, -0.5, " +
			"0, 0.5, 1, 1.5, 2]}], interactions: [[a, b]]", "1", 1},
	} {
		p := numbers(t, "a, b", c.more)
		r := rand.New(rand.NewPCG(3, 4))
		var rows []dataset.Row
		for i := range 40 {
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i),
				Views:   [][]float64{{r.NormFloat64(), r.NormFloat64()}},
				Subject: []string{fmt.Sprint(r.IntN(9)), c.weight}})
		}
		out, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods,
			Data: map[string]dataset.Source{"one": table(t, p, rows[:15]), "two": table(t, p, rows[15:])}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data := testkit.Get(method.ModelJSON(out.Result.Files))(t)
		m := testkit.Get(fitted.LoadModel(data))(t)
		if m.Free != c.free || m.Deviate(fitted.Z90) > fitted.Z90 != (c.free > 0) {
			t.Errorf("%s: %v degrees of freedom, want %v", name, m.Free, c.free)
		}
	}
}
