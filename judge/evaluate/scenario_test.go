package evaluate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/judge/evaluate"
)

// drawSubjects returns at least 24 subjects of each of 2 to 4 groups.
func drawSubjects(t *rapid.T) []evaluate.Subject {
	var s []evaluate.Subject
	for g := range rapid.IntRange(2, 4).Draw(t, "groups") {
		for range rapid.IntRange(24, 60).Draw(t, "size") {
			s = append(s, evaluate.Subject{ID: fmt.Sprintf("p%d", len(s)), Group: string(rune('A' + g))})
		}
	}
	return s
}

func shuffled(s []evaluate.Subject) []evaluate.Subject {
	s = slices.Clone(s)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

func TestAssignPlacesEverySubjectOnceWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subjects := drawSubjects(t)
		sites := evaluate.SiteNames(rapid.IntRange(1, 9).Draw(t, "sites"))
		sc := rapid.SampledFrom([]evaluate.Scenario{evaluate.IID, evaluate.G, evaluate.K, evaluate.GK}).Draw(t, "scenario")
		seed := rapid.Uint64().Draw(t, "seed")
		placed := testkit.Get(evaluate.Assign(subjects, sites, sc, seed))(t)
		again, err := evaluate.Assign(shuffled(subjects), sites, sc, seed)
		if err != nil || !reflect.DeepEqual(placed, again) {
			t.Fatalf("another order of the subjects changes the split (%v)", err)
		}
		var ids []string
		for _, p := range placed {
			ids = append(ids, p.ID)
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(subjects) || len(ids) != len(subjects) {
			t.Fatalf("%d subjects became %d placements, or they are not ascending", len(subjects), len(ids))
		}
	})
}

// count returns the number of subjects by site and group.
func count(subjects []evaluate.Subject, placed []evaluate.Placement, sites int) []map[string]int {
	group := map[string]string{}
	for _, s := range subjects {
		group[s.ID] = s.Group
	}
	n := make([]map[string]int, sites)
	for i := range n {
		n[i] = map[string]int{}
	}
	for _, p := range placed {
		n[p.Site][group[p.ID]]++
	}
	return n
}

func TestIIDIsStratified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subjects := drawSubjects(t)
		sites := rapid.IntRange(1, 9).Draw(t, "sites")
		placed := testkit.Get(evaluate.Assign(subjects, evaluate.SiteNames(sites), evaluate.K, rapid.Uint64().Draw(t, "seed")))(t)
		n := count(subjects, placed, sites)
		for _, g := range []string{"A", "B", "C", "D"} {
			low, high := len(subjects), 0
			for _, site := range n {
				low, high = min(low, site[g]), max(high, site[g])
			}
			if high-low > 1 {
				t.Fatalf("sites have from %d to %d subjects of group %s", low, high, g)
			}
		}
	})
}

func TestGSeparatesGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subjects := drawSubjects(t)
		sites := 3 * rapid.IntRange(1, 3).Draw(t, "a third of the sites")
		placed := testkit.Get(evaluate.Assign(subjects, evaluate.SiteNames(sites), evaluate.G, rapid.Uint64().Draw(t, "seed")))(t)
		n := count(subjects, placed, sites)
		total := map[string]int{}
		for _, s := range subjects {
			total[s.Group]++
		}
		second := map[string]bool{"A": true, "B": len(total) > 2} // ceil(half) of the levels
		for g, all := range total {
			mixed := 0
			for i, site := range n {
				switch {
				case i < sites/3:
					mixed += site[g]
				case i < 2*sites/3 && !second[g], i >= 2*sites/3 && second[g]:
					if site[g] > 0 {
						t.Fatalf("site %d has %d subjects of group %s", i+1, site[g], g)
					}
				}
			}
			if mixed != (all+1)/3 { // all/3, rounded
				t.Fatalf("the first third of the sites has %d of %d subjects of group %s", mixed, all, g)
			}
		}
	})
}

func TestGWithFewSitesKeepsEverySubject(t *testing.T) {
	subjects := []evaluate.Subject{{ID: "a", Group: "x"}, {ID: "b", Group: "x"}, {ID: "c", Group: "y"}, {ID: "d", Group: "y"}}
	for sites, want := range map[int][]map[string]int{
		1: {{"x": 2, "y": 2}},
		2: {{"x": 1, "y": 2}, {"x": 1}},
	} {
		placed := testkit.Get(evaluate.Assign(subjects, evaluate.SiteNames(sites), evaluate.G, 1))(t)
		if got := count(subjects, placed, sites); !reflect.DeepEqual(got, want) {
			t.Errorf("%d sites: got %v, want %v", sites, got, want)
		}
	}
}

func TestColumnGoesByName(t *testing.T) {
	subjects := []evaluate.Subject{{ID: "a", Group: "north"}, {ID: "b", Group: "south"}, {ID: "c", Group: "north"}}
	got, err := evaluate.Assign(subjects, []string{"south", "north"}, evaluate.Column, 1)
	want := []evaluate.Placement{{"a", 1}, {"b", 0}, {"c", 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v (%v), want %v", got, err, want)
	}
}

func TestLacking(t *testing.T) {
	for sites, want := range map[int]string{
		1: "[[]]",
		2: "[[] [1]]",
		3: "[[] [1] [2]]",
		4: "[[] [] [1] [2]]",
		5: "[[] [] [1] [1] [2]]",
		6: "[[] [] [1] [1] [2] [2]]",
	} {
		got, err := evaluate.Lacking(evaluate.GK, sites, 3)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%d sites: got %v (%v), want %s", sites, got, err, want)
		}
	}
	if got, err := evaluate.Lacking(evaluate.G, 2, 1); err != nil || fmt.Sprint(got) != "[[] []]" {
		t.Errorf("G: got %v (%v)", got, err)
	}
}

func TestParseScenario(t *testing.T) {
	for name, want := range map[string]evaluate.Scenario{
		"iid": evaluate.IID, "IID": evaluate.IID, "g": evaluate.G, "K": evaluate.K,
		"G/K": evaluate.GK, "gk": evaluate.GK, "g/k": evaluate.GK, "Column": evaluate.Column,
	} {
		got, err := evaluate.ParseScenario(name)
		if err != nil || got != want {
			t.Errorf("%s: got %v (%v), want %v", name, got, err, want)
		}
		if back, err := evaluate.ParseScenario(got.String()); err != nil || back != got {
			t.Errorf("%v is read back as %v (%v)", got, back, err)
		}
	}
}

func TestScenarioRefusals(t *testing.T) {
	four := []evaluate.Subject{{ID: "a", Group: "x"}, {ID: "b", Group: "x"}, {ID: "c", Group: "y"}, {ID: "d", Group: ""}}
	assign := func(s []evaluate.Subject, sites int, sc evaluate.Scenario) error {
		_, err := evaluate.Assign(s, evaluate.SiteNames(sites), sc, 1)
		return err
	}
	_, parse := evaluate.ParseScenario("G/H")
	_, lacking := evaluate.Lacking(evaluate.K, 3, 2)
	for want, err := range map[string]error{
		"no sites":                                 assign(four, 0, evaluate.IID),
		"no subject for site site5":                assign(four, 5, evaluate.IID),
		"subject d has no group":                   assign(four, 2, evaluate.G),
		"needs at least two groups, found 1":       assign(four[:2], 2, evaluate.GK),
		"subject a appears twice":                  assign([]evaluate.Subject{{ID: "a", Group: ""}, {ID: "a", Group: "x"}}, 1, evaluate.K),
		`"x", which is not one of the sites site1`: assign(four[:1], 1, evaluate.Column),
		"use one of IID, G, K, G/K, column":        parse,
		"there are only 2 views":                   lacking,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
