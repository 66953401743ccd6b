//go:build long && unix

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/federation/coordinator"
	"parley/internal/testkit"
)

// A site whose keys were revoked is refused, with its old keys for ever. One that
// was replaced goes on in the same folder, with its ledger.
func TestRevokedAndReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("replaced", long, exact)), three...)
	w.begin()
	w.reaches("replaced", 3)
	w.stop("south")
	charges, _ := w.ledger("south")
	old := filepath.Join(w.dir, "old")
	testkit.Do(t, os.CopyFS(old, os.DirFS(w.folder("south"))))
	invitation := filepath.Join(w.dir, "again.invitation")
	if said := w.refused("coordinator", "invite", w.home(), "south", "--out", invitation); !strings.Contains(said,
		"--replace") {
		t.Errorf("inviting a site that has joined says %q", said)
	}
	w.do("coordinator", "invite", w.home(), "south", "--out", invitation, "--replace")
	w.do("site", "join", invitation, "--dir", w.folder("south"))
	w.start("old", "site", "serve", old, "--again", again) // a stolen copy
	w.says("old", "may have revoked")                      // what to do about it
	w.serve("south")
	w.delivered("replaced")
	now, _ := w.ledger("south")
	if len(now) <= len(charges) || fmt.Sprint(now[:len(charges)]) != fmt.Sprint(charges) {
		t.Errorf("the ledger of the replaced site had %d charges, and has %d", len(charges), len(now))
	}
	w.same("replaced")
	w.clean("replaced")
	w.kill("old")
	// The word of the key outlives the folder.
	w.kill("")
	w.lose()
	w.coordinate()
	delete(w.said, "old")
	w.start("old", "site", "serve", old, "--again", again)
	w.says("old", "may have revoked")
	w.delivered("replaced")
}

// Without a site that was revoked a study waits, until a person drops it.
func TestRevokedInMidRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, quorum(regressionPlan("revoked", long, exact))), three...)
	w.begin()
	w.reaches("revoked", 3)
	w.do("coordinator", "revoke", w.home(), "south")
	w.says("south", "may have revoked")
	w.coordinatorSees("revoked", "south", "revoked", "")
	if st, err := w.study("revoked"); err != nil || st.State != coordinator.Running {
		t.Errorf("%+v %v", st, err)
	}
	w.do("coordinator", "drop", w.home(), "revoked", "south")
	w.comes("revoked", coordinator.Ended)
	w.left("revoked", "south")
	for _, s := range three[:2] {
		w.until("site "+s+" has its results", func() error {
			_, err := os.Stat(filepath.Join(w.results(s, "revoked"), "report.html"))
			return err
		})
	}
}
