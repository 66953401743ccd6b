package report

import (
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// What verdicts void is named in place of its number.
func TestExplainedNamesWhatVerdictsVoid(t *testing.T) {
	pooled := &ppca.Explained{Total: []float64{10, 10, 10},
		Residual: wire.Matrix{Rows: 3, Cols: 2, Data: []float64{9, 6, 9, 430, 9, 8}}}
	for _, c := range []struct {
		voids []string
		want  string
	}{
		{nil, "−4200 to 40 %"},
		{[]string{"b"}, "20 to 40 %, but of b not meaningful: see below"},
		{[]string{"a", "b"}, "20 %, but of a, b not meaningful: see below"},
		{[]string{"a", "b", "c"}, "not meaningful: see below"},
	} {
		m := &fitted.Model{Views: []fitted.ModelView{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			Verdicts: []fitted.Verdict{{}, {Voids: c.voids}}}
		if got := Explained(m, pooled); got != c.want {
			t.Errorf("%v: %q, want %q", c.voids, got, c.want)
		}
	}
}

// Intervals that hold too little of the values, or too much, are said to if that is beyond chance and matters.
func TestIntervalsThatDoNotHoldAreNamed(t *testing.T) {
	for _, c := range []struct {
		coverage, err float64
		want          string
	}{
		{0.9, 0.01, ""}, {0.876, 0.01, ""}, {0.865, 0.01, "narrow"}, {0.865, 0.02, ""}, {0.887, 0.001, ""},
		{0.88, 0.001, "narrow"},
		{0.935, 0.01, ""}, {0.95, 0.01, "wide"}, {0.913, 0.001, ""}, {0.92, 0.001, "wide"},
	} {
		sums := assess.NewSums(1)
		const cells = 10000
		sums.Cells[0] = cells
		sums.Inside[0] = c.coverage * cells
		sums.Uneven[0] = c.err * c.err * cells * cells
		v := &verdicts{m: &fitted.Model{Views: []fitted.ModelView{{Name: "v0"}}}, all: sums}
		v.intervals()
		said := ""
		if len(v.m.Verdicts) > 0 {
			said = v.m.Verdicts[0].Says
		}
		if c.want == "" && said != "" || c.want != "" &&
			!strings.HasPrefix(said, "Intervals for view v0 are too "+c.want) {
			t.Errorf("coverage %v with error %v: %q", c.coverage, c.err, said)
		}
	}
}
