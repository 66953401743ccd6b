package site

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"parley/federation"
)

// Status is what a site is doing. It is status.json, which the daemon writes. Its
// times are of this machine's clock.
type Status struct {
	Serving     bool                `json:"serving"`
	Site        string              `json:"site"`
	Connected   bool                `json:"connected"`
	Trouble     string              `json:"trouble,omitempty"` // why it is not, or what else keeps it from answering
	Coordinator *federation.Program `json:"coordinator,omitempty"`
	Studies     []StudyStatus       `json:"studies"`
}

// StudyStatus is where the site stands with a study.
type StudyStatus struct {
	Study string    `json:"study"`
	Name  string    `json:"name,omitempty"`
	State string    `json:"state"` // a word of package federation
	Text  string    `json:"text,omitempty"`
	Since time.Time `json:"since"`
}

// ReadStatus reads status.json, and adds studies of which no daemon has said anything.
func (f *Folder) ReadStatus() (s Status, err error) {
	err = f.ReadJSON("status.json", &s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.Site, s.Serving = f.Config.Site, f.Served()
	if s.Studies == nil {
		s.Studies = []StudyStatus{}
	}
	s.Connected = s.Connected && s.Serving
	list, err := f.Studies()
	if err != nil {
		return s, err
	}
	for _, digest := range list {
		if slices.ContainsFunc(s.Studies, func(st StudyStatus) bool { return st.Study == digest }) {
			continue
		}
		st, err := f.lastKnown(digest)
		if err != nil {
			st = StudyStatus{Study: digest, State: federation.Unable, Text: err.Error()}
		}
		s.Studies = append(s.Studies, st)
	}
	slices.SortFunc(s.Studies, func(a, b StudyStatus) int { return strings.Compare(a.Study, b.Study) })
	return s, nil
}

// lastKnown is where a study stands by the folder alone.
func (f *Folder) lastKnown(digest string) (st StudyStatus, err error) {
	p, err := f.Plan(digest)
	if err != nil {
		return st, err
	}
	st = StudyStatus{Study: digest, Name: p.Name, State: federation.Pending}
	ended, err := f.Ended(digest)
	if err != nil {
		return st, err
	}
	decision, err := f.Decision(digest)
	switch {
	case err != nil:
		return st, err
	case ended != nil:
		st.State, st.Text, st.Since = federation.Done, ended.Words, ended.At
	case f.unposted(digest):
		st.State, st.Text = federation.Closed, "the coordinator posts it no more"
	case decision == nil:
	case decision.Approval != nil:
		st.State, st.Since = federation.Approved, decision.At
	default:
		st.State, st.Text, st.Since = federation.Refused, decision.Refused, decision.At
	}
	return st, nil
}

// writeStatus writes status.json if it has changed.
func (d *Daemon) writeStatus(serving bool) error {
	s := Status{Serving: serving, Site: d.Folder.Config.Site, Connected: serving && d.conn.Connected(), Trouble: d.conn.Trouble()}
	d.mu.Lock()
	if s.Trouble == "" {
		s.Trouble = d.twoServe()
	}
	if d.heard {
		p := d.program
		s.Coordinator = &p
	}
	for digest, a := range d.studies {
		if !d.posted[digest] {
			continue
		}
		word := a.standing()
		a.mu.Lock()
		st := StudyStatus{Study: digest, State: word.Word, Text: a.local, Since: a.since.UTC().Truncate(time.Second)}
		if st.Text == "" || a.needs != "" { // what to install comes before all else
			st.Text = word.Text
		}
		if a.stopped != "" {
			st.Text = a.stopped
		}
		if a.plan != nil {
			st.Name = a.plan.Name
		}
		if word.Word == federation.Computing {
			st.Since = a.working.UTC().Truncate(time.Second)
		}
		a.mu.Unlock()
		s.Studies = append(s.Studies, st)
	}
	d.mu.Unlock()
	slices.SortFunc(s.Studies, func(a, b StudyStatus) int { return strings.Compare(a.Study, b.Study) })
	return d.Folder.WriteJSON("status.json", s)
}

// waitsFor says in words what the site waits for.
func (d *Daemon) waitsFor() string {
	if trouble := d.conn.Trouble(); !d.conn.Connected() {
		if trouble == "" {
			return "waiting for a connection to the coordinator's broker"
		}
		return "waiting for the coordinator's broker: " + trouble
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.heard {
		return "connected; waiting for the coordinator, which has posted nothing yet"
	}
	if words := d.twoServe(); words != "" {
		return words
	}
	count := map[string]int{}
	for digest := range d.posted {
		count[d.studies[digest].standing().Word]++
	}
	if len(d.posted) == 0 {
		return "connected; the coordinator has no study for this site"
	}
	var parts []string
	for _, w := range []struct{ word, says string }{
		{federation.Pending, "for a person to decide about %s"}, {federation.Unable, "for something to be mended in %s"},
		{federation.Approved, "for tasks of %s"}, {federation.Computing, "for %s to be computed"}, {federation.Done, "for the coordinator to close %s"},
	} {
		if n := count[w.word]; n == 1 {
			parts = append(parts, fmt.Sprintf(w.says, "1 study"))
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf(w.says, fmt.Sprintf("%d studies", n)))
		}
	}
	if len(parts) == 0 {
		return "connected"
	}
	return "waiting " + strings.Join(parts, ", and ")
}
