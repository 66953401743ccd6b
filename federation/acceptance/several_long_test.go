//go:build long && unix

package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"parley/federation"
	"parley/internal/testkit"
)

// A policy that is changed in the middle of a study is asked about again, and after
// approval the study goes on. One that does not allow the study any more ends the
// site's part.
func TestPolicyChangesInMidRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("policy", long, exact)), three...)
	w.begin()
	w.reaches("policy", 3)
	policy := filepath.Join(w.folder("south"), "policy.yaml")
	testkit.Do(t, os.WriteFile(policy, []byte(demoPolicy+"minimum: {subjects: 5}\n"), 0o600))
	w.siteStands("south", "policy", federation.Pending, "policy")
	w.coordinatorSees("policy", "south", federation.Pending, "")
	charges, _ := w.ledger("south")
	if len(charges) > 24 {
		t.Fatal("it was over before")
	}
	w.do("site", "approve", w.folder("south"), "policy")
	w.delivered("policy")
	w.same("policy")
	w.clean("policy")
}
