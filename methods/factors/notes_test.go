package factors

import (
	"strings"
	"testing"
)

// A private plan is told how many subjects it needs before any budget is spent: more at a
// smaller ε, fewer at more sites or with fewer factors; and whom it leaves out.
func TestPrivatePlansAreToldHowManySubjectsTheyNeed(t *testing.T) {
	const all = "  patterns: [{views: [clinic, mri]}]\n"
	needed := func(text string) string {
		t.Helper()
		notes := Method{}.Notes(simulatedPlan(t, text)).Lines()
		if len(notes) != 1 || !strings.Contains(notes[0], "learns next to nothing") || !strings.Contains(notes[0], "hint: several times as many") {
			t.Fatalf("the notes are %q", notes)
		}
		_, rest, _ := strings.Cut(notes[0], "fewer than about ")
		number, _, _ := strings.Cut(rest, " subjects")
		return number
	}
	private := underTotal("  latent: 2\n" + all)
	for name, x := range map[string]struct{ text, want string }{
		"as it is":       {private, "14"},
		"smaller ε":      {strings.Replace(private, "epsilon: 3", "epsilon: 0.3", 1), "108"},
		"one factor":     {strings.Replace(private, "latent: 2", "latent: 1", 1), "7"},
		"more sites":     {strings.Replace(private, "[north, south]", "[north, south, west, east, a, b, c, d]", 1), "7"},
		"with a checkup": {strings.Replace(private, "delta: 1e-5}", "delta: 1e-5}, diagnostics: 0.5", 1), "19"},
	} {
		if got := needed(x.text); got != x.want {
			t.Errorf("%s: %s subjects, want %s", name, got, x.want)
		}
	}
	if notes := (Method{}).Notes(simulatedPlan(t, strings.Replace(private, "[north, south]", "[north]", 1))).Lines(); !strings.Contains(notes[0], "subjects at the only site this") || strings.Contains(notes[0], "fewer sites") {
		t.Errorf("of one site: %q", notes)
	}
	if notes := (Method{}).Notes(simulatedPlan(t, underTotal("  latent: 2\n"))).Lines(); len(notes) != 2 || !strings.Contains(notes[1], "count for nothing") {
		t.Errorf("without patterns: %q", notes)
	}
	if notes := (Method{}).Notes(simulatedPlan(t, planWith(twoViews, "  latent: 1\n"))); notes != nil {
		t.Errorf("a plan without privacy: %v", notes)
	}
}

// A plan with more factors than its features can tell is told so, and how many they can.
func TestPlansAreToldOfTooManyFactors(t *testing.T) {
	notes := Method{}.Notes(simulatedPlan(t, planWith(twoViews, "  latent: 2\n"))).Lines()
	if len(notes) != 1 || !strings.Contains(notes[0], "2 factors are more than the covariances of 4 features can tell") || !strings.Contains(notes[0], "at most 1, or noise: view") {
		t.Errorf("the notes are %q", notes)
	}
	if notes := (Method{}).Notes(simulatedPlan(t, planWith(twoViews, "  latent: 2\n  noise: view\n"))); notes != nil {
		t.Errorf("with noise by view: %v", notes)
	}
}
