package graffl

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/methods/graffl/suffiae"
)

// A gross error in one row costs a site neither its classifier nor its probabilities.
func TestGrossErrorsLeaveAClassifier(t *testing.T) {
	_, h := stagedHalves(t, "components: 1\n  draws: 64")
	var rows []dataset.Row
	for i := range 40 {
		x := float64(i%5) - 2
		if i%2 == 0 {
			x += 2
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%02d", i), Views: [][]float64{{x, float64(i % 3)}}, Subject: []string{[]string{"no", "yes"}[i%2]}})
	}
	rows[1].Views[0] = []float64{1e300, -math.MaxFloat64}
	data, err := dataset.NewTable(h.plan.Schema(), rows)
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
	if u := toUnits(&suffiae.Inputs{Centre: []float64{1}, Scale: []float64{2}}, []float64{4}); u[0] != 1.5 {
		t.Errorf("4 is %v units of 2 from 1", u[0])
	}
}

// Gross errors travel as numbers, and a site's own report is drawn over them.
func TestGrossErrorsTravel(t *testing.T) {
	for kind, options := range hostileOptions {
		c, h, _ := hostileHalves(t, options, "{protection: none}")
		var rows []dataset.Row
		for i, x := range []float64{1, -2, 1e300, math.MaxFloat64, -math.MaxFloat64} {
			rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{x}}})
		}
		data, err := dataset.NewTable(h.plan.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		sites := everySite(t, h.plan, data)
		for done := false; !done; {
			step, err := c.Next(s)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			s, done = step.State, step.Done
			if _, err := json.Marshal(step.Info); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			for _, task := range step.Tasks {
				in, err := sites[task.Site].answer(t, task)
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				if s, err = c.Fold(s, in); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
			}
			state, err := s.MarshalBinary()
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if s, err = c.Restore(state); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		share, err := c.Share(s, "a")
		if err != nil {
			t.Fatal(err)
		}
		own, err := variantOf(h.setup).site(h).Report(t.Context(), share, data)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		all, err := c.Result(s)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for _, r := range []*method.Result{own, all} {
			if _, err := json.Marshal(r.Metrics); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			for _, section := range r.Sections {
				for _, item := range section.Items {
					if item.Figure == nil {
						continue
					}
					if err := item.Figure.SVG(io.Discard); err != nil {
						t.Errorf("%s: figure %s: %v", kind, item.Figure.ID, err)
					}
				}
			}
		}
	}
}
