//go:build unix

package acceptance

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/testkit"
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

// The coordinator's folder is deleted in the middle of a study that a site has left by its own word. From its key,
// the plan and the sites it comes to the same model, and nothing is charged again. The
// sites do not join again.
func TestRebuildAfterARefusal(t *testing.T) {
	for _, name := range []string{"refused", "changed-its-mind"}[:testkit.Sized(1, 2)] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, written(t, quorum(regressionPlan(name, long, exact))), three...)
			refuse := func() { w.do("site", "refuse", w.folder("south"), name, "--reason", "no staff") }
			if name == "refused" {
				w.coordinate()
				w.join()
				refuse()
				w.do("site", "approve", w.folder("north"), name)
				w.do("site", "approve", w.folder("centre"), name)
				w.slowly()
				for _, s := range three {
					w.serve(s)
				}
				w.reaches(name, 3)
			} else {
				w.begin()
				w.reaches(name, 3)
				refuse()
			}
			w.says("", "site south has left: the site has refused to take part: no staff")
			w.reaches(name, 6)
			before := w.heads()
			w.kill("")
			w.lose()
			w.coordinate()
			w.delivered(name)
			w.left(name, "south")
			if _, now := w.ledger("south"); now != before["south"] {
				t.Error("site south, which had left, was charged")
			}
			w.replay(name)
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

// A site that makes copies of itself loses its folder between two studies, all but data and receipts. From the newest
// copy it takes part in the second, and its ledger goes on.
func TestCopiesAreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("first", "rounds: 4", exact)), three...)
	w.coordinate()
	w.join("--yes")
	copies := filepath.Join(t.TempDir(), "copies")
	serve := func() {
		w.start("north", "site", "serve", w.folder("north"), "--again", again, "--copies", copies,
			"--copies-every", "1s")
	}
	serve()
	w.serve("centre")
	w.serve("south")
	w.delivered("first")
	_, head := w.ledger("north")
	newest := func() string {
		found := testkit.Get(filepath.Glob(filepath.Join(copies, "north-*")))(t)
		if len(found) == 0 {
			return ""
		}
		return found[len(found)-1]
	}
	w.until("a copy has all", func() error {
		if path := newest(); path == "" {
			return errors.New("there is none")
		} else if err := exec.Command("diff", "-r", filepath.Join(path, "results"), w.folder("north")+
			"/results").Run(); err != nil {
			return errors.New("it lacks results")
		} else if _, copied := w.ledgerIn(path); copied != head {
			return errors.New("its ledger is another one")
		}
		return nil
	})
	w.kill("north")
	folder := w.folder("north")
	for _, e := range testkit.Get(os.ReadDir(folder))(t) {
		if e.Name() != "data" && e.Name() != "receipts.json" {
			testkit.Do(t, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	testkit.Do(t, os.CopyFS(folder, os.DirFS(newest())))
	serve()
	second := w.beside("second", regressionPlan("second", long, exact))
	w.do("coordinator", "submit", w.home(), second)
	for _, s := range three {
		w.approved(s, "second")
	}
	w.delivered("second")
	if charges, _ := w.ledger("north"); len(charges) < 2 {
		t.Errorf("the ledger has %d lines", len(charges))
	}
	w.do("site", "ledger", "verify", folder)
	w.do("site", "log", "verify", folder)
}
