//go:build unix

package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/internal/testkit"
)

// beside writes another plan beside a world's, over the same data.
func (w *world) beside(name, plan string) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.plan), name+".yaml")
	testkit.Do(w.t, os.WriteFile(path, []byte(plan), 0o644))
	w.others = append(w.others, path)
	return path
}

// siteStands waits until a site says that it stands so with a study.
func (w *world) siteStands(site, study, word, text string) {
	w.t.Helper()
	w.until(fmt.Sprintf("site %s says of study %s: %s", site, study, word), func() error {
		st, err := w.here(site, study)
		if err == nil && (st.State != word || !strings.Contains(st.Text, text)) {
			err = fmt.Errorf("it says %s: %s", st.State, st.Text)
		}
		return err
	})
}

// coordinatorSees waits until the coordinator says so, too.
func (w *world) coordinatorSees(study, site, word, text string) {
	w.t.Helper()
	w.until(fmt.Sprintf("the coordinator says of site %s in study %s: %s", site, study, word), func() error {
		st, err := w.stands(study, site)
		if err == nil && (st.State != word || !strings.Contains(st.Text, text)) {
			err = fmt.Errorf("it says %s: %s", st.State, st.Text)
		}
		return err
	})
}

// quorum lets a plan go on with two sites.
func quorum(plan string) string { return strings.Replace(plan, "\nviews:", "\nquorum: 2\nviews:", 1) }

// Several studies go on at once on one coordinator. One that is submitted twice is
// one study; one that is aborted ends nothing else.
func TestSeveralStudiesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, factorPlan("second", "", exact)), three...) // which has all the columns
	second, first := w.plan, w.beside("first", regressionPlan("first", long, exact))
	third := w.beside("third", regressionPlan("third", "rounds: 10", private))
	stopped := w.beside("stopped", regressionPlan("stopped", "schedule: synchronous, rounds: 200, tolerance: 0", exact))
	for _, p := range []string{first, third, stopped} {
		w.do("coordinator", "submit", w.home(), p)
	}
	w.begin()
	for _, s := range three { // what had not been posted when they joined
		for _, name := range []string{"first", "second", "third", "stopped"} {
			w.approved(s, name)
		}
	}
	var again struct {
		Study string
		Fresh bool
	}
	if err := json.Unmarshal([]byte(w.do("coordinator", "submit", w.home(), second, "--json")), &again); err != nil ||
		again.Fresh {
		t.Errorf("%+v %v", again, err)
	}
	w.reaches("stopped", 2)
	w.do("coordinator", "abort", w.home(), "stopped")
	for _, name := range []string{"first", "second", "third"} {
		w.delivered(name)
		w.clean(name)
	}
	w.same("second")
	w.plan = first
	w.same("first")
	st := w.comes("stopped", coordinator.Stopped)
	if !strings.Contains(st.Text, "aborted") {
		t.Error(st.Text)
	}
	if said := w.refused("coordinator", "watch", w.home(), "stopped"); !strings.Contains(said, "aborted") {
		t.Errorf("watch says %q", said)
	}
	w.do("coordinator", "watch", w.home(), "first")
	for _, s := range three {
		w.says(s, "aborted")
	}
	w.stop("")
	w.coordinate() // and it stays so
	st = w.comes("stopped", coordinator.Stopped)
	if !strings.Contains(st.Text, "aborted") {
		t.Error(st.Text)
	}
	list, err := os.ReadDir(filepath.Join(w.home(), "studies"))
	if err != nil || len(list) != 4 {
		t.Errorf("%d studies, %v", len(list), err)
	}
}

// approved waits until a study is approved at a site, and approves it if nobody has.
func (w *world) approved(site, study string) {
	w.t.Helper()
	w.until("study "+study+" is approved at site "+site, func() error { return w.approves(site, study) })
}

func (w *world) approves(site, study string) error {
	st, err := w.here(site, study)
	if err == nil && st.State == federation.Pending {
		w.do("site", "approve", w.folder(site), study)
		err = errors.New("it was pending")
	}
	return err
}

// A study that a site refuses stops without enough others, though one has yet to decide, and says why. It goes on when
// the site has changed its mind, and the plan is submitted again.
func TestSiteRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("lost", "schedule: synchronous, rounds: 5", exact)), three...)
	w.coordinate()
	w.join()
	w.do("site", "approve", w.folder("north"), "lost")
	w.do("site", "refuse", w.folder("south"), "lost", "--reason", "no staff for it")
	for _, s := range three {
		w.serve(s)
	}
	st := w.comes("lost", coordinator.Stopped)
	for _, says := range []string{"south", "no staff for it", "submit the plan again"} {
		if !strings.Contains(st.Text, says) {
			t.Errorf("it has stopped: %s", st.Text)
		}
	}
	w.coordinatorSees("lost", "centre", federation.Pending, "")
	w.siteStands("north", "lost", federation.Approved, "stopped")
	if charges, _ := w.ledgerIfAny("south"); len(charges) > 0 {
		t.Error("the site that refused was charged")
	}
	w.do("site", "approve", w.folder("south"), "lost")
	w.do("site", "approve", w.folder("centre"), "lost")
	w.coordinatorSees("lost", "south", federation.Approved, "")
	w.do("coordinator", "submit", w.home(), w.plan)
	w.delivered("lost")
	w.clean("lost")
}

func (w *world) ledgerIfAny(site string) (charges []charge, head string) {
	w.t.Helper()
	if _, err := os.Stat(filepath.Join(w.folder(site), "site.db")); errors.Is(err, os.ErrNotExist) {
		return nil, ""
	}
	return w.ledger(site)
}

const demoPolicy = `policy: 1
protection: optional
max_delta: 1
per_release: true
`

// Data that are changed in the middle of a study are refused until they are as they
// were.
func TestDataChangeInMidRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("changed", long, exact)), three...)
	w.begin()
	w.reaches("changed", 3)
	file := testkit.Get(filepath.Glob(filepath.Join(w.folder("south"), "data", "view_clinic.csv*")))(t)[0]
	whole := testkit.Get(os.ReadFile(file))(t)
	// Of another site: as many columns, other rows.
	other := testkit.Get(os.ReadFile(strings.Replace(file, "/south/", "/north/", 1)))(t)
	subjects := filepath.Join(filepath.Dir(file), filepath.Base(strings.Replace(file, "view_clinic", "subjects", 1)))
	was := testkit.Get(os.ReadFile(subjects))(t)
	others := testkit.Get(os.ReadFile(strings.Replace(subjects, "/south/", "/north/", 1)))(t)
	put := func(path string, data []byte) {
		t.Helper()
		testkit.Do(t, os.WriteFile(path, data, 0o600))
	}
	put(file, other)
	put(subjects, others)
	w.siteStands("south", "changed", federation.Pending, "data")
	if said := w.refused("site", "approve", w.folder("south"), "changed"); !strings.Contains(said,
		"put the data back") {
		t.Errorf("approving says %q", said)
	}
	_, head := w.ledger("south")
	put(file, whole)
	put(subjects, was)
	w.siteStands("south", "changed", federation.Approved, "")
	if _, now := w.ledger("south"); head == "" || now == "" {
		t.Error("nothing was ever charged")
	}
	w.delivered("changed")
	w.same("changed")
	w.clean("changed")
}

// By a rule of its policy, a site's program approves what fits without a person, and
// nothing else.
func TestPreApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regressionPlan("fits", "rounds: 5", private)), three...)
	dear := strings.Replace(private, "epsilon: 3", "epsilon: 8", 1)
	w.do("coordinator", "submit", w.home(), w.beside("dear", regressionPlan("dear", "rounds: 5", dear)))
	w.do("coordinator", "submit", w.home(), w.beside("open", regressionPlan("open", "rounds: 5", exact)))
	w.do("coordinator", "submit", w.home(), w.beside("other", factorPlan("other", "", private)))
	rule := demoPolicy + "pre_approval: {methods: [regression], study: {epsilon: 3, delta: 1e-5}}\n"
	for _, s := range three {
		testkit.Do(t, os.WriteFile(filepath.Join(w.folder(s), "policy.yaml"), []byte(rule), 0o600))
	}
	w.coordinate()
	w.join()
	for _, s := range three {
		w.serve(s)
	}
	w.delivered("fits")
	w.clean("fits")
	for _, s := range three {
		for _, name := range []string{"dear", "open", "other"} {
			w.siteStands(s, name, federation.Pending, "")
		}
		if charges, _ := w.ledger(s); len(charges) == 0 {
			t.Errorf("site %s was never charged", s)
		}
	}
}
