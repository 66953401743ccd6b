package method

import (
	"strings"
	"testing"

	"parley/figure"
	"parley/study"
)

// The overview says of noise and of missing views what there is of them, and a count that
// noise took below 0 is none.
func TestOverview(t *testing.T) {
	p := &study.Plan{Views: []study.View{{Name: "a", Features: make([]study.Feature, 3)}, {Name: "b"}}}
	lacks := figure.SiteSubjects{Name: "x", Patterns: []figure.Pattern{{Present: []bool{true, false}, Subjects: 4}}}
	for _, c := range []struct {
		sites        []figure.SiteSubjects
		noise, lacks bool
	}{
		{nil, false, false},
		{[]figure.SiteSubjects{Complete(p, "y", 12, 0)}, false, false},
		{[]figure.SiteSubjects{lacks, Complete(p, "y", 12, 0)}, false, true},
		{[]figure.SiteSubjects{Complete(p, "y", -3.2, 5)}, true, false},
	} {
		f := Overview(p, c.sites).Items[0].Figure
		if noise, lacking := strings.Contains(f.Caption, "privacy noise"),
			strings.Contains(f.Caption, "lack the view"); noise != c.noise || lacking != c.lacks {
			t.Errorf("%+v: %s", c.sites, f.Caption)
		}
		if o := f.Chart.(figure.Overview); len(o.Views) != 2 || o.Views[0].Features != 3 ||
			len(o.Sites) != len(c.sites) {
			t.Errorf("%+v", o)
		}
	}
	if s := Complete(p, "y", -3.2, 5); s.Patterns[0].Subjects != 0 || s.Noise != 5 || len(s.Patterns[0].Present) != 2 {
		t.Errorf("%+v", s)
	}
	if s := Complete(p, "y", 11.6, 0); s.Patterns[0].Subjects != 12 {
		t.Errorf("%+v", s)
	}
}
