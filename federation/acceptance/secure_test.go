//go:build unix

package acceptance

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/federation/coordinator"
	"parley/internal/testkit"
)

// A study whose sums are secure runs over processes: its plan names the keys of sites that have joined, its people read
// who would have to work together, openers and coordinator die in the middle and come back, and it ends with the
// numbers of parley run, which have no noise. Rebuilt from the history it ends with them again, and nothing is opened
// or charged twice.
func TestTotalsOverProcesses(t *testing.T) {
	t.Parallel()
	plan := written(t, regressionPlan("totals", "rounds: 8",
		"{protection: none, sum: secure, openers: [north, south]}"))
	w := newWorld(t, plan, three...)
	if out := w.refused("coordinator", "submit", w.home(), plan); !strings.Contains(out, "has not joined") {
		t.Errorf("submitted before sites have joined: %s", out)
	}
	w.coordinate()
	w.join()
	w.submits(plan)
	w.until("the study can be looked at", func() error {
		out, _, code := w.command("site", "show", w.folder("centre"), "totals")
		if code != 0 || !strings.Contains(out, "Who could see this site's own sums") ||
			!strings.Contains(strings.Join(strings.Fields(out), " "),
				"If one of north, south is honest, nobody learns") {
			return os.ErrNotExist
		}
		return nil
	})
	for _, s := range three {
		w.do("site", "approve", w.folder(s), "totals")
	}
	w.reaches("totals", 2)
	w.kill("north")
	w.serve("north")
	w.reaches("totals", 5)
	w.kill("")
	w.coordinate()
	w.delivered("totals")
	got := testkit.Get(os.ReadFile(filepath.Join(w.results("", "totals"), "metrics.json")))(t)
	want := testkit.Get(os.ReadFile(filepath.Join(reference(t, plan), "metrics.json")))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("the study ends with %s\nand parley run with %s", got, want)
	}
	w.clean("totals")
	named := filepath.Join(filepath.Dir(plan), "named.yaml") // with keys, which a rebuilt folder has of nobody
	text := testkit.Get(os.ReadFile(filepath.Join(w.results("", "totals"), "plan.yaml")))(t)
	testkit.Do(t, os.WriteFile(named, text, 0o644))
	w.plan = named
	w.replay("totals")
}

// submits submits a plan once all of its sites have joined, whose keys it names then, and serves them on slow lines.
func (w *world) submits(plan string) {
	w.slowly()
	w.until("all have joined", func() error {
		_, out, _ := w.command("coordinator", "submit", w.home(), plan)
		if strings.Contains(out, "has not joined") {
			return os.ErrNotExist
		}
		return nil
	})
	for _, s := range three {
		w.serve(s)
	}
}

// An opener of noised totals is gone for good, and a person drops it: the spare that the plan names takes its place,
// and the study goes on, with one charge more at each site.
func TestASpareOverProcesses(t *testing.T) {
	t.Parallel()
	plan := written(t, quorum(regressionPlan("spare", "rounds: 8",
		strings.Replace(private, "{", "{sum: secure, openers: [north, south], spare: centre, ", 1))))
	w := newWorld(t, plan, three...)
	w.coordinate()
	w.join()
	w.submits(plan)
	for _, s := range three {
		w.approved(s, "spare")
	}
	w.reaches("spare", 3)
	w.kill("north")
	w.do("coordinator", "drop", w.home(), "spare", "north")
	w.comes("spare", coordinator.Ended)
	w.left("spare", "north")
	openers, repeated := map[string]bool{}, 0
	for _, r := range w.rounds("spare") {
		for _, s := range r.Sites {
			if openers[s.Site] = openers[s.Site] || s.Kind == "open"; strings.HasSuffix(s.Kind, ", once more") {
				repeated++
			}
		}
	}
	if !openers["centre"] || repeated != 0 && repeated != 2 {
		t.Errorf("totals were opened by %v, and a sum was made once more by %d sites", openers, repeated)
	}
	w.clean("spare")
}
