//go:build unix

package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/federation/coordinator"
)

// slowly puts lines before the sites on which every piece takes a while, so that
// something can happen in the middle of a study.
func (w *world) slowly() map[string]*line {
	w.t.Helper()
	lines := w.lines(func(string) bool { return false })
	for _, l := range lines {
		l.set(func() { l.delay = 10 * time.Millisecond })
	}
	return lines
}

// begin serves everything, with slow lines.
func (w *world) begin() map[string]*line {
	w.t.Helper()
	w.coordinate()
	w.join("--yes")
	lines := w.slowly()
	for _, s := range w.sites {
		w.serve(s)
	}
	return lines
}

const long = "schedule: synchronous, rounds: 25, tolerance: 0"

// The coordinator's folder is deleted in the middle of a study. From its key, the
// plan and the sites it comes to the same model, and nothing is charged again. The
// sites do not join again.
func TestRebuildInMidRun(t *testing.T) {
	for _, c := range []struct {
		name, options, privacy, leaves string
	}{
		{"exact", long, exact, ""},
		{"asynchronous", "schedule: asynchronous, rounds: 25, tolerance: 0", exact, ""},
		{"private", "rounds: 20", private, ""},
		{"dropped", long, exact, "dropped"},
		{"dropped-private", "rounds: 20", private, "dropped"},
		{"refused", long, exact, "refused"},
		{"changed-its-mind", long, exact, "changed its mind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := regressionPlan(c.name, c.options, c.privacy)
			if c.leaves != "" {
				plan = strings.Replace(plan, "\nviews:", "\nquorum: 2\nviews:", 1)
			}
			w := newWorld(t, written(t, plan), three...)
			if c.leaves == "refused" {
				w.coordinate()
				w.join()
				w.do("site", "refuse", w.folder("south"), c.name, "--reason", "no staff")
				w.do("site", "approve", w.folder("north"), c.name)
				w.do("site", "approve", w.folder("centre"), c.name)
				w.slowly()
				for _, s := range three {
					w.serve(s)
				}
			} else {
				w.begin()
			}
			w.reaches(c.name, 3)
			switch c.leaves {
			case "dropped":
				w.do("coordinator", "drop", w.home(), c.name, "south")
			case "changed its mind":
				w.do("site", "refuse", w.folder("south"), c.name, "--reason", "no more")
			}
			if c.leaves != "" {
				w.says("", "site south has left")
				w.reaches(c.name, 6)
			}
			before := w.heads()
			w.kill("")
			w.lose()
			w.coordinate()
			w.delivered(c.name)
			if c.leaves == "" {
				w.clean(c.name)
			} else {
				w.left(c.name, "south")
			}
			if _, now := w.ledger("south"); c.leaves != "" && now != before["south"] {
				t.Error("site south, which had left, was charged")
			}
			if c.name == "exact" {
				w.same(c.name)
			}
			w.replay(c.name)
			for _, s := range w.sites {
				if strings.Contains(w.said[s].since(0), "has joined") {
					t.Errorf("site %s has joined again", s)
				}
			}
		})
	}
}

// says waits until a process has written a text, in any of its lives.
func (w *world) says(name, text string) {
	w.t.Helper()
	w.until(called(name)+" says "+text, func() error {
		if !strings.Contains(w.said[name].since(0), text) {
			return errors.New("it has not")
		}
		return nil
	})
}

// left demands that a site was not in a study at its end, and that the others were.
func (w *world) left(study, site string) {
	w.t.Helper()
	rounds := w.rounds(study)
	last := map[string]int{}
	for _, r := range rounds {
		for _, s := range r.Sites {
			if s.Release != "" {
				last[s.Site] = r.Round
			}
		}
	}
	for _, s := range w.sites {
		if s == site && last[s] == rounds[len(rounds)-1].Round {
			w.t.Errorf("site %s, which had left, is in the last round", s)
		}
		w.do("site", "ledger", "verify", w.folder(s))
		w.do("site", "log", "verify", w.folder(s))
	}
	w.do("coordinator", "log", "verify", w.home())
}

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
	if err := os.CopyFS(old, os.DirFS(w.folder("south"))); err != nil {
		t.Fatal(err)
	}
	invitation := filepath.Join(w.dir, "again.invitation")
	if said := w.refused("coordinator", "invite", w.home(), "south", "--out", invitation); !strings.Contains(said, "--replace") {
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
	from := len(w.said["old"].since(0))
	w.start("old", "site", "serve", old, "--again", again)
	w.until("the stolen copy is refused by the rebuilt coordinator", func() error {
		if !strings.Contains(w.said["old"].since(from), "may have revoked") {
			return errors.New("it is not")
		}
		return nil
	})
	w.delivered("replaced")
}

// Without a site that was revoked a study waits, until a person drops it.
func TestRevokedInMidRun(t *testing.T) {
	t.Parallel()
	plan := strings.Replace(regressionPlan("revoked", long, exact), "\nviews:", "\nquorum: 2\nviews:", 1)
	w := newWorld(t, written(t, plan), three...)
	w.begin()
	w.reaches("revoked", 3)
	w.do("coordinator", "revoke", w.home(), "south")
	w.says("south", "may have revoked")
	w.until("the status says that it was revoked", func() error {
		st, err := w.stands("revoked", "south")
		if err == nil && st.State != "revoked" {
			err = errors.New(st.State)
		}
		return err
	})
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
