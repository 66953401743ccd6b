package report

import (
	"strings"
	"testing"

	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
)

// Intervals that hold too little of the values, or too much, are said to if that is beyond chance and matters.
func TestIntervalsThatDoNotHoldAreNamed(t *testing.T) {
	for _, c := range []struct {
		coverage, err float64
		want          string
	}{
		{0.9, 0.01, ""}, {0.876, 0.01, ""}, {0.865, 0.01, "narrow"}, {0.865, 0.02, ""}, {0.887, 0.001, ""}, {0.88, 0.001, "narrow"},
		{0.935, 0.01, ""}, {0.95, 0.01, "wide"}, {0.913, 0.001, ""}, {0.92, 0.001, "wide"},
	} {
		sums := assess.NewSums(1)
		const cells = 10000
		sums.Cells[0] = cells
		sums.Calibration.Data[5], sums.Calibration.Data[0] = c.coverage*cells, (1-c.coverage)*cells
		sums.Uneven[0] = c.err * c.err * cells * cells
		v := &verdicts{m: &fitted.Model{Views: []fitted.ModelView{{Name: "v0"}}}, all: sums}
		v.intervals()
		said := ""
		if len(v.list) > 0 {
			said = v.list[0].Says
		}
		if c.want == "" && said != "" || c.want != "" && !strings.HasPrefix(said, "Intervals for view v0 are too "+c.want) {
			t.Errorf("coverage %v with error %v: %q", c.coverage, c.err, said)
		}
	}
}
