package report

import (
	"testing"

	"parley/internal/wire"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// What verdicts void is named in place of its number.
func TestExplainedNamesWhatVerdictsVoid(t *testing.T) {
	pooled := &options.Assessment{Total: []float64{10, 10, 10}, Residual: wire.Matrix{Rows: 3, Cols: 2, Data: []float64{9, 6, 9, 430, 9, 8}}}
	for _, c := range []struct {
		voids []string
		want  string
	}{
		{nil, "-4200 to 40 %"},
		{[]string{"b"}, "20 to 40 %, but of b not meaningful: see below"},
		{[]string{"a", "b"}, "20 %, but of a, b not meaningful: see below"},
		{[]string{"a", "b", "c"}, "not meaningful: see below"},
	} {
		m := &fitted.Model{Views: []fitted.ModelView{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Verdicts: []fitted.Verdict{{}, {Voids: c.voids}}}
		if got := Explained(m, pooled); got != c.want {
			t.Errorf("%v: %q, want %q", c.voids, got, c.want)
		}
	}
}
