package federation_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/dataset"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/method"
	"parley/study"
)

// standing is where a site says that it stands with a study.
func (w *world) standing(name, digest string) (s site.StudyStatus) {
	status, err := w.folder(name).ReadStatus()
	check(w.t, err)
	for _, st := range status.Studies {
		if st.Study == digest {
			s = st
		}
	}
	return s
}

// Beside a daemon, a person says that the rows are elsewhere: what was approved before
// is asked for again, and what is approved then is answered.
func TestDataMoveWhileServing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	d := w.submit(plan("moved", 2, 2, "north", "south"))
	is := func(word string) {
		t.Helper()
		w.eventually("the study is "+word, func() bool { return w.standing("north", d).State == word })
	}
	is(federation.Pending)
	w.halt() // or north could be charged for a first task, and its data could not change any more
	w.approve(d, "north")
	is(federation.Approved)
	elsewhere := filepath.Join(w.dir, "elsewhere")
	check(t, os.CopyFS(elsewhere, os.DirFS(filepath.Join(w.path("north"), "data"))))
	check(t, os.WriteFile(filepath.Join(elsewhere, "view_v.csv"), []byte("id,x\na,1\nb,2\nc,4\n"), 0o600))
	check(t, w.folder("north").SetData(elsewhere))
	is(federation.Pending)
	check(t, w.folder("north").Approve(context.Background(), d, host.ByPerson))
	is(federation.Approved)
}

// The line may break as a site says that it has the end: the coordinator then posts the study no
// more, and the site makes its report all the same.
func TestClosedStudyIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	d := w.submit(plan("closed", 1, 1, "north"))
	w.approve(d, "north")
	w.ended(d, "north")
	w.eventually("the coordinator knows that north has it", func() bool {
		return w.seen(d)["north"] == coordinator.HasAll
	})
	f := w.folder("north")
	check(t, os.Remove(f.File("studies", d, "ended.json")))
	check(t, f.WriteJSON(filepath.Join("studies", d, "ending.json"),
		map[string]any{"body": must(federation.Ending{}.Encode())}))
	w.ended(d, "north")
}

// A study of many sites sends few bytes along. What is missing comes when people ask, if it is what was listed.
func TestManySitesAskForResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north", "south")
	w.begin("north", "south")
	names := []string{"north", "south"}
	for i := range 50 {
		names = append(names, fmt.Sprintf("absent-%d", i))
	}
	p := plan("many", 1, 2, names...)
	d := w.submit(p)
	for _, absent := range names[2:] {
		check(t, w.co.Give(d, coordinator.Order{Drop: absent}))
	}
	w.approve(d, "north", "south")
	w.ended(d, "north", "south")
	at := func(f *federation.Folder, name string) string { return filepath.Join(must(f.ResultsPath(p)), name) }
	report := must(os.ReadFile(at(&w.co.Folder, "report.html")))
	north, south := w.folder("north"), w.folder("south")
	if missing := must(north.Ask(d)); !strings.Contains(missing, "report.html") ||
		strings.Contains(missing, "metrics.json") {
		t.Errorf("missing are %s", missing)
	}
	w.eventually("north has the report", func() bool {
		got, err := os.ReadFile(at(&north.Folder, "shared/report.html"))
		return err == nil && bytes.Equal(got, report) && must(north.Ask(d)) == ""
	})
	check(t, os.WriteFile(at(&w.co.Folder, "report.html"), []byte("another"), 0o600))
	must(south.Ask(d))
	w.eventually("south is told that the report is another", func() bool {
		return len(audit(t, w.path("south"), "report.html: the coordinator has others now")) == 1
	})
	if _, err := os.Stat(at(&south.Folder, "shared/report.html")); !os.IsNotExist(err) {
		t.Errorf("south has another report than was listed: %v", err)
	}
}

// Who joins before any study has been submitted is told so at once.
func TestJoinBeforeAnyStudy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	check(t, w.folder("north").WaitForStudies(ctx, nil))
	check(t, ctx.Err())
}

// A study that is aborted before a site has decided waits there no more, and cannot be
// approved any more; what was approved and then aborted says so.
func TestAbortBeforeTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north", "south")
	w.begin("north", "south")
	d := w.submit(plan("aborted", 2, 2, "north", "south"))
	w.approve(d, "south")
	w.eventually("north is asked, and south has approved", func() bool {
		return w.standing("north", d).State == federation.Pending && w.seen(d)["south"] != coordinator.Unheard &&
			w.standing("south", d).State == federation.Approved
	})
	check(t, w.co.Give(d, coordinator.Order{Abort: true}))
	w.eventually("both know", func() bool {
		return w.standing("north", d).State == federation.Closed && w.standing("south", d).State == federation.Done
	})
	if err := w.folder("north").Approve(t.Context(), d, host.ByPerson); err == nil ||
		!strings.Contains(err.Error(), "posts study aborted no more") {
		t.Errorf("approving it: %v", err)
	}
}

// seen is the state of each site in a study, as the coordinator sees it.
func (w *world) seen(digest string) map[string]string {
	status, err := w.co.ReadStatus()
	check(w.t, err)
	states := map[string]string{}
	for _, st := range status.Studies {
		for _, s := range st.Sites {
			if st.Study == digest {
				states[s.Site] = s.State
			}
		}
	}
	return states
}

// A site that was dropped is said to have left, before the end and after it. What is
// done can be neither aborted nor left.
func TestDroppedSiteHasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	d := w.submit(plan("dropped", 3, 2, sites...))
	w.approve(d, sites[0])
	check(t, w.co.Give(d, coordinator.Order{Drop: sites[2]}))
	w.approve(d, sites[1])
	is := func(state string) {
		t.Helper()
		w.eventually("the site that was dropped is "+state, func() bool { return w.seen(d)[sites[2]] == state })
	}
	is(coordinator.Left)
	w.ended(d, sites[0], sites[1])
	for _, name := range sites[:2] {
		w.eventually(name+" has the results", func() bool { return w.seen(d)[name] == coordinator.HasAll })
	}
	is(coordinator.Left)
	for _, o := range []coordinator.Order{{Abort: true}, {Drop: sites[0]}} {
		if err := w.co.Give(d, o); err == nil {
			t.Errorf("a study that is done takes the order %+v", o)
		}
	}
	w.halt()
	w.serve()
	is(coordinator.Left)
	if got := w.state(d); got != coordinator.Ended {
		t.Errorf("the study is %s", got)
	}
}

// After an abort, no site is said to have results.
func TestAbortedStudyHasNoResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	d := w.submit(plan("aborted", 3, 3, sites...))
	w.approve(d, sites[0], sites[1])
	check(t, w.co.Give(d, coordinator.Order{Abort: true}))
	w.eventually("the study has stopped", func() bool { return w.state(d) == coordinator.Stopped })
	for _, name := range sites[:2] {
		w.eventually(name+" was told", func() bool {
			state := w.seen(d)[name]
			if state == coordinator.HasAll {
				t.Fatalf("%s %s", name, state)
			}
			return state == coordinator.Told
		})
	}
}

// An invitation of another coordinator does not make a site forget its keys by accident.
func TestOtherCoordinator(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.serve()
	w.join("north")
	for path, refused := range map[string]bool{w.path("north"): true, w.path("south"): false} {
		if err := site.SameCoordinator(path, other.invite("north", false), methods); (err != nil) != refused {
			t.Errorf("%s: %v", path, err)
		}
		if err := site.SameCoordinator(path, w.invite("north", true), methods); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Who joins twice with one invitation has joined, also beside a daemon; in another
// folder it is refused, and keys that are of no use are not left there.
func TestJoinTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	i := w.invite("north", false)
	first, err := site.Join(within(t), w.path("north"), i, methods, nil)
	check(t, err)
	if _, err := site.Join(within(t), w.path("copy"), i, methods, nil); err == nil ||
		!strings.Contains(err.Error(), "works once") {
		t.Errorf("a copy of the invitation: %v", err)
	}
	if left, err := os.ReadDir(w.path("copy")); err != nil || len(left) > 0 {
		t.Errorf("in its folder are %v (%v)", left, err)
	}
	w.furnish("north")
	w.begin("north")
	second, err := site.Join(within(t), w.path("north"), i, methods, nil)
	check(t, err)
	if !bytes.Equal(first.Config.Certificate, second.Config.Certificate) {
		t.Error("it is another certificate")
	}
}

// Under privacy others see that files with data were written, and not whether a cell has
// changed: a person decides, who is told. Whatever the cause, others read the same.
func TestOthersSeeAPersonMustDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	p := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2, Private: true}, 2, "north", "south")
	d := w.submit(p)
	conn := w.broker()
	heard := func() string {
		value, _, err := conn.Get(within(t), federation.HelloKey("north"))
		check(t, err)
		h, _, _ := federation.OpenHello(w.co.Secrets.Key, "north", value)
		for _, s := range h.Studies {
			if s.Study == d {
				return s.Word + s.Text
			}
		}
		return ""
	}
	is := func(word, local string) {
		t.Helper()
		w.eventually("north is "+word, func() bool {
			return heard() == word && w.standing("north", d).State == word &&
				strings.Contains(w.standing("north", d).Text, local)
		})
	}
	is(federation.Pending, "a person must decide")
	w.approve(d, "north")
	is(federation.Approved, "")
	w.eventually("north is charged: what began goes on with its data", func() bool { return w.charges("north") == 1 })
	path := filepath.Join(w.path("north"), "data", "view_v.csv")
	rows := must(os.ReadFile(path))
	for _, text := range [][]byte{rows, bytes.Replace(rows, []byte("c,3"), []byte("c,4"), 1)} {
		check(t, os.WriteFile(path, text, 0o600))
		is(federation.Pending, "have been written since it was approved")
		if err := w.folder("north").Approve(t.Context(), d, host.ByPerson); bytes.Equal(text, rows) != (err == nil) {
			t.Fatalf("a person approves it again: %v", err)
		}
		if bytes.Equal(text, rows) {
			is(federation.Approved, "")
		}
	}
}

// touchy is the toy with a report that does not bear a share.
type touchy struct{ enginetest.Toy }

func (m touchy) Site(p *study.Plan, name string) (method.Site, error) {
	half, err := m.Toy.Site(p, name)
	return touchySite{half}, err
}

type touchySite struct{ method.Site }

func (touchySite) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	panic("a loading is too large")
}

// Nothing that becomes of a site's own report is seen elsewhere, or ends anything; what everybody
// may read is there.
func TestReportsFailAtHome(t *testing.T) {
	methods = method.Registry{touchy{}}
	defer func() { methods = method.Registry{toy} }()
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	for _, name := range []string{"one", "another"} {
		p := plan(name, 1, 1, "north")
		d := w.submit(p)
		w.approve(d, "north")
		w.ended(d, "north")
		w.eventually("the coordinator knows that north has it", func() bool {
			return w.seen(d)["north"] == coordinator.HasAll
		})
		f := w.folder("north")
		e := must(f.Ended(d))
		shared := filepath.Join(must(f.ResultsPath(p)), "shared", "plan.yaml")
		if _, err := os.Stat(shared); e.Failed != "it panicked: a loading is too large" || err != nil {
			t.Errorf("%s ended with %+v, %v", name, e, err)
		}
	}
	if heard := w.logs["north"].String(); strings.Contains(w.log.String(), "panicked") ||
		!strings.Contains(heard, "panicked") {
		t.Errorf("the coordinator's log: %s", w.log)
	}
}

// Of two machines with copies of one site's folder, one answers, and all are told so: when
// the second starts, when the coordinator starts again, and until one of them ends. A copy
// that then takes over lacks what others have seen, so it waits for a person.
func TestTwoMachinesServeAsOneSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	d := w.submit(plan("copied", 6000, 3, sites...))
	w.approve(d, "south")
	w.eventually("south has approved", func() bool { return w.standing("south", d).State == federation.Approved })
	w.end("south")
	check(t, os.CopyFS(w.path("copy"), os.DirFS(w.path("south"))))
	before := w.charges("copy")
	w.begin("south")
	w.approve(d, "north", "centre")
	w.reaches(d, 2)
	w.begin("copy")
	two := func() {
		t.Helper()
		const words = "two machines serve as south"
		w.eventually("everybody is told", func() bool {
			status, err := w.co.ReadStatus()
			check(t, err)
			said := 0
			for _, s := range status.Sites {
				if strings.Contains(s.Text, words) {
					said++
				}
			}
			for name, what := range map[string]string{"copy": "this one answers nothing",
				"south": "the other one answers nothing"} {
				s, err := w.folder(name).ReadStatus()
				check(t, err)
				if strings.Contains(s.Trouble, words) && strings.Contains(s.Trouble, what) {
					said++
				}
			}
			return said == 3 && len(audit(t, w.co.Path, words)) > 0
		})
	}
	two()
	round := w.study(d).Round
	w.reaches(d, round+3)
	w.halt()
	w.serve()
	w.reaches(d, round+6)
	two()
	if n := w.charges("copy"); n != before {
		t.Errorf("the copy was charged %d times", n)
	}
	w.end("south")
	w.eventually("the copy takes over, and waits for a person", func() bool {
		return w.standing("copy", d).State == federation.Unable
	})
	if n := w.charges("copy"); n != before {
		t.Errorf("the copy was charged %d times", n)
	}
	w.end("copy")
	round = w.study(d).Round
	w.begin("south")
	w.reaches(d, round+3)
	check(t, w.co.Give(d, coordinator.Order{Abort: true}))
}
