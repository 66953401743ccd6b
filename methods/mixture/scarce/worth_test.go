package scarce

import (
	"fmt"
	"math"
	"testing"

	"parley/dataset"
	"parley/internal/nn"
	"parley/methods/mixture/mixturetest"
	"parley/methods/mixture/options"
)

// A gross error in one row costs a site neither its classifier nor its probabilities.
func TestGrossErrorsLeaveAClassifier(t *testing.T) {
	h := half{Site: &options.Site{Setup: mixturetest.New(mixturetest.Text(2, "components: 1, draws: 64, scarce: {outcome: {column: sick, levels: [no, yes]}, held: 0.3}", "{protection: none}")), Name: "a"}}
	var rows []dataset.Row
	for i := range 40 {
		x := float64(i%5) - 2
		if i%2 == 0 {
			x += 2
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%02d", i), Views: [][]float64{{x, float64(i % 3)}}, Subject: []string{[]string{"no", "yes"}[i%2]}})
	}
	rows[1].Views[0] = []float64{1e300, -math.MaxFloat64}
	data, err := dataset.NewTable(h.Plan.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.linear(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.check(2); err != nil || len(a.Weights) != 2 {
		t.Errorf("%+v: %v", a, err)
	}
	c := Classifier{Weights: a.Weights, Intercept: a.Intercept, Units: ClassifierUnits{Centre: make([]float64, 2), Scale: []float64{1, 1e-300}}}
	for _, x := range [][]float64{{0, 1}, {1e300, -1e300}, {-math.MaxFloat64, math.MaxFloat64}} {
		if p := c.probability(x); !(p >= 0 && p <= 1) {
			t.Errorf("P = %v of the row %v", p, x)
		}
	}
	if u := toUnits(&nn.Inputs{Centre: []float64{1}, Scale: []float64{2}}, []float64{4}); u[0] != 1.5 {
		t.Errorf("4 is %v units of 2 from 1", u[0])
	}
}
