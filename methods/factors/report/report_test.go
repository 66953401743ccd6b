package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/study"
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
		if len(v.m.Verdicts) > 0 {
			said = v.m.Verdicts[0].Says
		}
		if c.want == "" && said != "" || c.want != "" && !strings.HasPrefix(said, "Intervals for view v0 are too "+c.want) {
			t.Errorf("coverage %v with error %v: %q", c.coverage, c.err, said)
		}
	}
}

// Groups of views that no subject connects are named, by subjects of whatever site.
func TestViewsThatNobodyConnectsAreNamed(t *testing.T) {
	for _, c := range []struct {
		sites [][][]int // views of each pattern
		want  string
	}{
		{[][][]int{{{0, 1, 2}}}, ""},
		{[][][]int{{{0, 1}}, {{1, 2}}}, "No subject has both of these views: a and c"},
		{[][][]int{{{0}, {2}}, {{1}}, {{0, 2}, {1, 2}}}, "No subject has both of these views: a and b"},
		{[][][]int{{{1}}}, ""}, // nobody has the others
		{[][][]int{{{0, 1}}, {{0, 1}, {0}}, {{2}}}, "No subject connects view c with views a and b"},
		{[][][]int{{{0}}, {{1, 2}}}, "No subject connects view a with views b and c"},
		{[][][]int{{{0}}, {{1, 2}, {3, 4}}}, "No subject connects any two of these: view a; views b and c; views d and e"},
		{[][][]int{{{0, 3}}, {{1, 2}}}, "No subject connects views a and d with views b and c"},
		{[][][]int{{{6}, {0, 1, 2}}, {{2, 3, 4, 5}}}, "No subject connects view g with views a, b, c, d, e and 1 more"},
		{[][][]int{{{0}}, {{1}}, {{2}}}, nobodyHasTwo},
	} {
		m := &fitted.Model{}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			m.Views = append(m.Views, fitted.ModelView{Name: name})
		}
		v := &verdicts{m: m, set: options.Setup{Plan: &study.Plan{}}}
		for _, patterns := range c.sites {
			s := Site{Assessment: &options.Assessment{}}
			for _, views := range patterns {
				s.Patterns = append(s.Patterns, options.Pattern{Views: views, Subjects: 5, Share: 1})
			}
			v.sites = append(v.sites, s)
		}
		v.unconnected()
		said := ""
		for _, x := range m.Verdicts {
			said += x.Says
			if all := v.views(); x.Voids != nil && (!slices.Equal(x.Views, all) || !slices.Equal(x.Voids, all)) {
				t.Errorf("%v: it concerns %q and voids %q", c.sites, x.Views, x.Voids)
			}
		}
		if said != c.want {
			t.Errorf("%v: %q, want %q", c.sites, said, c.want)
		}
	}
}

func TestGroupings(t *testing.T) {
	of := func(labels ...string) ([]string, []int) {
		g := &gallery{}
		for _, l := range labels {
			g.kept = append(g.kept, keptSubject{labels: []string{l}})
		}
		return g.grouping(0)
	}
	var many []string
	for i := range 9 {
		many = append(many, fmt.Sprint(i))
	}
	for _, c := range []struct {
		labels, want []string
		of           []int
	}{
		{[]string{"b", "a", "", "b"}, []string{"a", "b", "unknown"}, []int{1, 0, 2, 1}},
		{[]string{"10", "9", "10"}, []string{"9", "10"}, []int{1, 0, 1}},
		{many, nil, nil},
	} {
		names, of := of(c.labels...)
		if !slices.Equal(names, c.want) || !slices.Equal(of, c.of) {
			t.Errorf("%v: got %v and %v", c.labels, names, of)
		}
	}
}
