package report

import (
	"slices"
	"testing"

	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/study"
)

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
		for _, x := range v.list {
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
