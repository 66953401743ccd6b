package mixture

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"testing"

	"parley/dataset"
	"parley/method"
)

// Gross errors travel as numbers, and a site's own report is drawn over them.
func TestGrossErrorsTravel(t *testing.T) {
	for kind, options := range hostileOptions {
		c, h, _ := hostileHalves(t, options, "{protection: none}")
		var rows []dataset.Row
		for i, x := range []float64{1, -2, 1e300, math.MaxFloat64, -math.MaxFloat64} {
			rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{x}}})
		}
		data, err := dataset.NewTable(h.Plan.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		sites := everySite(t, h.Plan, data)
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
		own, err := h.Site.Report(t.Context(), share, data)
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
