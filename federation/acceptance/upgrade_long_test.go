//go:build long && unix

package acceptance

import (
	"strings"
	"testing"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/internal/version"
)

// A coordinator that was upgraded to another revision of the method in the middle of
// a study sends nothing, and says what to install.
func TestUpgradedCoordinatorRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("upgraded", long, exact)), three...)
	w.begin()
	w.reaches("upgraded", 3)
	w.kill("")
	before := map[string]int{}
	for _, s := range three {
		charges, _ := w.ledger(s)
		before[s] = len(charges)
	}
	w.programs[""] = revised(t)
	w.coordinate()
	st := w.comes("upgraded", coordinator.Stopped)
	if want := "install parley " + version.Number; !strings.Contains(st.Text, want) ||
		!strings.Contains(st.Text, revision(0)) {
		t.Errorf("the study has stopped: %s", st.Text)
	}
	for _, s := range three { // they have heard of it
		w.says(s, "the study has stopped")
		st, err := w.stands("upgraded", s)
		if err != nil || st.State == coordinator.Misfit {
			t.Errorf("site %s is asked to install something: %s %s %v", s, st.State, st.Text, err)
		}
		if charges, _ := w.ledger(s); len(charges) > before[s]+1 { // the task that stood there before
			t.Errorf("site %s was charged %d times more", s, len(charges)-before[s])
		}
	}
	w.stop("")
	delete(w.programs, "")
	w.coordinate()
	w.delivered("upgraded")
	w.same("upgraded")
	w.clean("upgraded")
}

// A site that was upgraded so is not asked for anything until it has the right
// program again, and both ends say what that is.
func TestUpgradedSiteWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("upgraded", long, exact)), three...)
	w.begin()
	w.reaches("upgraded", 3)
	w.stop("south")
	_, head := w.ledger("south")
	w.programs["south"] = revised(t)
	w.serve("south")
	want := ": this study is computed with " + revision(0) // after the version, and perhaps its commit
	w.says("south", want)
	w.coordinatorSees("upgraded", "south", coordinator.Misfit, want)
	w.siteStands("south", "upgraded", federation.Unable, want)
	if _, now := w.ledger("south"); now != head {
		t.Error("it was charged")
	}
	w.stop("south")
	delete(w.programs, "south")
	w.serve("south")
	w.delivered("upgraded")
	w.same("upgraded")
	w.clean("upgraded")
}
