//go:build unix

package acceptance

import (
	"fmt"
	"testing"

	"parley/federation"
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
	return changed(t, "revised", next("methods/published/dppvi/method.go", dppvi.Method{}.Revision()),
		next("methods/factors/method.go", factors.Method{}.Revision()),
		next("methods/mixture/method.go", mixture.Method{}.Revision()),
		next("methods/published/vae/method.go", vae.Method{}.Revision()))
}

// revision names the method's, or the one so many after it.
func revision(after int) string {
	return fmt.Sprintf("revision %d of method dp-pvi", dppvi.Method{}.Revision()+after)
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
