//go:build unix

package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/internal/version"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/dppvi"
	"parley/methods/published/vae"
)

// revised is the program with the next revision of each method.
func revised(t *testing.T) string {
	next := func(file string, now int) change {
		says := func(n int) string { return fmt.Sprintf("func (Method) Revision() int { return %d }", n) }
		return change{file, says(now), says(now + 1)}
	}
	return changed(t, "revised", next("methods/published/dppvi/method.go", dppvi.Method{}.Revision()), next("methods/factors/method.go", factors.Method{}.Revision()),
		next("methods/mixture/method.go", mixture.Method{}.Revision()), next("methods/published/vae/method.go", vae.Method{}.Revision()))
}

// revision names the method's, or the one so many after it.
func revision(after int) string {
	return fmt.Sprintf("revision %d of method dp-pvi", dppvi.Method{}.Revision()+after)
}

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
	if want := "install parley " + version.Number; !strings.Contains(st.Text, want) || !strings.Contains(st.Text, revision(0)) {
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

// Sites with an older program than the study's are told before the study begins, and
// take part once they have the coordinator's.
func TestSitesInstallWhatAStudyNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("newer", "schedule: synchronous, rounds: 5", exact)), three...)
	w.programs[""] = revised(t)
	w.coordinate()
	w.join()
	for _, s := range three {
		w.serve(s)
		w.says(s, ": this study is computed with "+revision(1))
	}
	for _, s := range three {
		w.stop(s)
		w.programs[s] = revised(t)
		w.serve(s)
	}
	w.binary = revised(t)
	for _, s := range three {
		w.siteStands(s, "newer", federation.Pending, "")
		w.do("site", "approve", w.folder(s), "newer")
	}
	w.delivered("newer")
	w.clean("newer")
}
