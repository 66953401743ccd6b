package evaluate

import (
	"fmt"
	"testing"

	"parley/internal/testkit"
)

// However subjects are divided, the rows of a person stay together, and nobody is lost.
func TestRowsOfAPersonStayTogether(t *testing.T) {
	var subjects []Subject
	of := map[string]string{}
	for i := range 60 {
		s := Subject{ID: fmt.Sprintf("r%02d", i), Group: fmt.Sprint(i % 2), Person: fmt.Sprint("p", i%17)}
		if i >= 50 {
			s.Person = ""
		} else {
			of[s.ID] = s.Person
		}
		subjects = append(subjects, s)
	}
	check := func(what string, at map[string]int) {
		t.Helper()
		where := map[string]int{}
		for id, site := range at {
			if person := of[id]; person != "" {
				if known, ok := where[person]; ok && known != site {
					t.Errorf("%s: a person is at %d and at %d", what, known, site)
				}
				where[person] = site
			}
		}
		if len(at) != len(subjects) {
			t.Errorf("%s: %d of %d rows have a place", what, len(at), len(subjects))
		}
	}
	placed := func(list []Placement) map[string]int {
		at := map[string]int{}
		for _, p := range list {
			at[p.ID] = p.Site
		}
		return at
	}
	sites := SiteNames(4)
	for _, sc := range []Scenario{IID, G, K} {
		check(fmt.Sprint(sc), placed(testkit.Get(Assign(subjects, sites, sc, 3))(t)))
	}
	folds := map[string]int{}
	for _, f := range testkit.Get(FoldsOf(subjects, 5, 0, 3))(t) {
		for _, id := range f.Test {
			folds[id] = f.Index
		}
	}
	check("folds", folds)
	at := placed(testkit.Get((Scheme{Rho: 0, Kappa: 0}).Assign(subjects, sites, 3))(t))
	for _, s := range subjects {
		if _, there := at[s.ID]; !there {
			delete(of, s.ID)
		}
	}
	subjects = subjects[:len(at)]
	check("unequal", at)
}
