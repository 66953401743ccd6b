package federation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/federation/coordinator"
	"parley/study"
)

// lose deletes the coordinator's folder, and makes it again from the key and plans.
func (w *world) lose(plans ...*study.Plan) {
	w.t.Helper()
	w.halt()
	key := filepath.Join(w.dir, "key")
	check(w.t, os.Rename(filepath.Join(w.co.Path, "coordinator.key"), key))
	check(w.t, os.RemoveAll(w.co.Path))
	var err error
	w.co, err = coordinator.Rebuild(w.co.Path, key, methods, w.co.Config, plans)
	check(w.t, err)
}

// study is where the coordinator says that a study stands.
func (w *world) study(digest string) (st coordinator.StudyStatus) {
	status, err := w.co.ReadStatus()
	check(w.t, err)
	for _, s := range status.Studies {
		if s.Study == digest {
			st = s
		}
	}
	return st
}

func (w *world) reaches(digest string, round int) {
	w.t.Helper()
	w.eventually("the study goes on", func() bool { return w.study(digest).Round >= round })
}

// After everything but the key is lost, no study waits for ever for a site that is not
// there: one that a person drops is done without (one that had left is in histories of trouble); and
// where nobody else has what it had sent, the study stops with words that say so, until it
// is there again.
func TestRebuildWithoutASite(t *testing.T) {
	for name, c := range map[string]struct {
		approves bool   // it took part until the loss
		deadline string // of the plan
		drop     bool   // after the loss
		words    string // with which the study stops until the site is back
	}{
		"never there": {drop: true},
		"answered, dropped": {approves: true, drop: true, words: "it was dropped by a person; the history of the " +
			"study counts what it has released for round 1"},
		"answered, too late": {approves: true, deadline: "2s",
			words: "it did not answer within the plan's deadline; the history of the study counts"},
		"quorum needs others": {approves: true, deadline: "2s",
			words: "1 of 3 would be left, and the plan's quorum is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serve()
			w.join(sites...)
			w.begin(sites...)
			p := plan("lost", 150, 2, sites...)
			p.Deadline = study.Duration(c.deadline)
			d := w.submit(p)
			w.approve(d, sites[:2]...)
			if c.approves {
				w.approve(d, "south")
			} else {
				w.end("south")
			}
			if c.approves { // as its charges tell: a status lags behind, and all rounds may be over before it tells
				w.eventually("the study goes on", func() bool { return w.charges("north") > 6 })
			}
			w.end("south")
			if strings.HasPrefix(name, "quorum") {
				w.end("centre")
			}
			w.lose(p)
			w.serve()
			if c.drop {
				w.eventually("it says for whom it waits", func() bool {
					return strings.Contains(w.study(d).Text, "south")
				})
				check(t, w.co.Give(d, coordinator.Order{Drop: "south"}))
			}
			if c.words != "" {
				w.eventually("the study stops with words", func() bool {
					st := w.study(d)
					return st.State == coordinator.Stopped && strings.Contains(st.Text, c.words) &&
						strings.Contains(st.Text, "south")
				})
				w.begin("south")
				if w.ends["centre"] == nil {
					w.begin("centre")
				}
				check(t, w.co.Give(d, coordinator.Order{Again: true, At: time.Now()}))
			}
			w.ended(d, "north")
			w.eventually("its state says who was in it", func() bool {
				return (w.seen(d)["south"] == coordinator.Left) == c.drop
			})
			for _, name := range sites {
				if n := w.charges(name); n > 300 {
					t.Errorf("site %s was charged %d times", name, n)
				}
			}
		})
	}
}

// People have a limit of their own: while they decide, that of machines does not run; and
// that goes on where it was when the coordinator is started again and again.
func TestLimitsOfPeopleAndOfMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	undecided, slow := plan("undecided", 3, 2, sites...), plan("slow", 150, 2, sites...)
	undecided.Deadline, undecided.ApprovalDeadline, slow.Deadline = "1m", "4s", "2s"
	a, b := w.submit(undecided), w.submit(slow)
	w.approve(a, sites[:2]...)
	w.eventually("who does not decide leaves", func() bool { return w.seen(a)["south"] == coordinator.Left })
	w.ended(a, sites[:2]...)
	if lines := audit(t, w.co.Path, "left south: "); len(lines) != 1 ||
		!strings.Contains(lines[0], "approval_deadline") {
		t.Errorf("%q", lines)
	}
	w.approve(b, sites...)
	w.reaches(b, 3) // all are in it, although its deadline has passed twice
	w.end("south")
	for range 4 {
		w.halt()
		w.serve()
		w.eventually("it is waited for", func() bool {
			data, err := os.ReadFile(filepath.Join(w.co.StudyPath(b), "state.json"))
			return w.seen(b)["south"] == coordinator.Left || err == nil && strings.Contains(string(data), "spent")
		})
	}
	w.ended(b, sites[:2]...)
	if lines := audit(t, w.co.Path, "left south: "); len(lines) != 2 || !strings.Contains(lines[1], "plan's deadline") {
		t.Errorf("%q", lines)
	}
}
