package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	"parley/privacy/ledger"
	"parley/report"
	"parley/study"
)

// ending is what the site may have at the end of a study, as it has come. It is kept until
// the site's own report is made of it.
type ending struct {
	Left bool   `json:"left,omitempty"`
	Body []byte `json:"body"`
}

func endingFile(digest string) string { return filepath.Join("studies", digest, "ending.json") }

// keptEnding reads it; nil if there is none.
func (f *Folder) keptEnding(digest string) (*ending, error) {
	return federation.Kept[ending](&f.Folder, endingFile(digest))
}

// over says whether the site has what it may have of a study.
func (f *Folder) over(digest string) (bool, error) {
	kept, err := f.keptEnding(digest)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	ended, err := f.Ended(digest)
	return ended != nil, err
}

// end keeps what the site may have. The coordinator hears so before a row is looked at:
// whether the site's own report can be made, and how long that takes, depends on rows and on a
// share that the coordinator has chosen. What comes after the first is not looked at.
func (a *answering) end(body []byte, left bool) error {
	d := a.daemon
	if over, err := d.Folder.over(a.digest); err != nil || over {
		return err
	}
	e, err := federation.ParseEnding(body)
	if err != nil {
		return err
	}
	if err := d.Folder.WriteJSON(endingFile(a.digest), ending{Left: left, Body: body}); err != nil {
		return err
	}
	said := "its results have come, and the site's own report is being made"
	if len(e.Files) == 0 {
		said = "it has no results: " + e.Words
	}
	a.set(federation.Done, "", said)
	return nil
}

// toReport has the report made of a study that is over.
func (d *Daemon) toReport(digest string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreported[digest] = true
	select {
	case d.over <- struct{}{}:
	default:
	}
}

// report makes what the site's own people may see of studies that are over, one after the
// other. Whatever happens to it stays at the site. One that could not be made is tried again when
// the files with the data are others.
func (d *Daemon) report(ctx context.Context) {
	failed := map[string]string{} // the files then, by study
	for ctx.Err() == nil {
		d.mu.Lock()
		list := slices.Sorted(maps.Keys(d.unreported))
		d.mu.Unlock()
		for _, digest := range list {
			stamp := d.Folder.stamp()
			if failed[digest] == stamp {
				continue
			}
			what, bad, err := d.written(ctx, digest)
			if ctx.Err() != nil {
				return // it is made when the program runs again
			}
			if err != nil { // of the disk, which may pass
				d.Log.Error(fmt.Sprintf("the results of study %.12s could not be written, and are tried again: %v",
					digest, err), "study", digest)
				wire.Pause(ctx, d.Again)
				continue
			}
			d.mu.Lock()
			if d.unreported[digest] = false; bad {
				failed[digest] = stamp
			} else {
				delete(d.unreported, digest)
			}
			a := d.studies[digest]
			d.mu.Unlock()
			if what == "" {
				continue
			}
			if a != nil {
				a.set(federation.Done, "", what)
			}
			if err := d.Folder.Audit.Add("ended", digest, d.Folder.Config.Site, what); err != nil {
				d.Log.Error("the audit log could not be written: " + err.Error())
			}
		}
		select {
		case <-d.over:
		case <-time.After(10 * look):
		case <-ctx.Done():
		}
	}
}

// written writes the results of a study that is over: what everybody may read, then the
// site's own report, and then that they are there. It says where, nothing if that was done; and
// whether the own report could not be made.
func (d *Daemon) written(ctx context.Context, digest string) (what string, failed bool, err error) {
	f := d.Folder
	kept, err := f.keptEnding(digest)
	if err != nil || kept == nil {
		return "", false, err
	}
	e, err := federation.ParseEnding(kept.Body)
	if err != nil {
		return "", false, err
	}
	record := Ended{Left: kept.Left, Words: e.Words, At: time.Now().UTC().Truncate(time.Second)}
	if what = "the site has left it: " + e.Words; !kept.Left {
		p, err := f.Plan(digest)
		if err != nil {
			return "", false, err
		}
		path, err := f.ResultsPath(p)
		if err != nil {
			return "", false, err
		}
		if record.Missing, err = keepFiles(path, e.Files); err != nil {
			return "", false, err
		}
		if before, err := f.Ended(digest); err != nil {
			return "", false, err
		} else if before != nil { // its own report could not be made then
			record.Missing = before.Missing
		}
		what = "its results are in " + path
		if len(record.Missing) > 0 {
			what += fmt.Sprintf("; %s are with the coordinator, until somebody here asks for them: parley site "+
				"results %s %s", names(record.Missing), f.Path, p.Name)
		}
		if err := d.own(ctx, p, path, e.Share); err != nil {
			record.Failed = err.Error()
			what += "; the site's own report could not be made, and is tried again when the data or the program are " +
				"others: " + record.Failed
		}
	}
	failed = record.Failed != ""
	if err := f.WriteJSON(filepath.Join("studies", digest, "ended.json"), record); err != nil || failed {
		return what, failed, err
	}
	return what, false, os.Remove(f.File(endingFile(digest)))
}

// keepFiles writes files of the results, and returns those that were not sent along, or not as they were listed.
func keepFiles(path string, list []federation.File) (missing []federation.File, err error) {
	for _, file := range list {
		data, err := file.Data()
		if err != nil {
			file.Packed = nil
			missing = append(missing, file)
		} else if err := files.Write(filepath.Join(path, "shared", filepath.FromSlash(file.Name)), data); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func names(list []federation.File) string {
	var all []string
	for _, file := range list {
		all = append(all, file.Name)
	}
	return strings.Join(all, ", ")
}

// wantedFile lists the studies for whose missing results somebody at the site has asked.
const wantedFile = "wanted.json"

func (f *Folder) wanted() (list []string, err error) {
	if err = f.ReadJSON(wantedFile, &list); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// Ask asks the coordinator for what is missing of a study's results, which the daemon fetches. It returns what that is.
func (f *Folder) Ask(digest string) (missing string, err error) {
	e, err := f.Ended(digest)
	if err != nil || e == nil || len(e.Missing) == 0 {
		return "", err
	}
	return names(e.Missing), f.Alone(func() error {
		list, err := f.wanted()
		if err != nil || slices.Contains(list, digest) {
			return err
		}
		return f.WriteJSON(wantedFile, append(list, digest))
	})
}

// keepHanded keeps results for which somebody here has asked: those that were listed when the study ended.
func (f *Folder) keepHanded(h federation.Handed) error {
	list, err := f.wanted()
	if err != nil || !slices.Contains(list, h.Study) {
		return err
	}
	e, err := f.Ended(h.Study)
	if err != nil || e == nil {
		return err
	}
	p, err := f.Plan(h.Study)
	if err != nil {
		return err
	}
	path, err := f.ResultsPath(p)
	if err != nil {
		return err
	}
	for i, m := range e.Missing {
		if at := slices.IndexFunc(h.Files, func(file federation.File) bool {
			return file.Name == m.Name && bytes.Equal(file.Digest, m.Digest)
		}); at >= 0 {
			e.Missing[i] = h.Files[at]
		}
	}
	before := names(e.Missing)
	if e.Missing, err = keepFiles(path, e.Missing); err != nil {
		return err
	}
	what := "the coordinator has sent " + before
	if len(e.Missing) > 0 {
		what = names(e.Missing) + ": the coordinator has others now than it listed at the end, or they are too large " +
			"to be sent; ask its people"
	}
	if err := f.WriteJSON(filepath.Join("studies", h.Study, "ended.json"), e); err != nil {
		return err
	}
	if err := f.Alone(func() error {
		list, err := f.wanted()
		if err != nil {
			return err
		}
		return f.WriteJSON(wantedFile, slices.DeleteFunc(list, func(digest string) bool { return digest == h.Study }))
	}); err != nil {
		return err
	}
	return f.Audit.Add("fetched", h.Study, f.Config.Site, what)
}

// own makes the site's own report. A panic is a failure like any other.
func (d *Daemon) own(ctx context.Context, p *study.Plan, path string, share []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	h, err := d.Folder.host(ctx, p, true)
	if err != nil {
		return err
	}
	data, err := h.Fingerprint(ctx)
	if err != nil {
		return err
	}
	result, err := h.Report(ctx, p, share)
	if err != nil {
		return err
	}
	dir, err := report.OpenSite(path, p, d.Folder.Config.Site, data)
	if err != nil {
		return err
	}
	charged, err := ledger.Read(d.store)
	if err != nil {
		return err
	}
	return dir.Write(result, charged, &h.Policy)
}

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
	st = StudyStatus{Study: digest, State: federation.Pending}
	p, unread := f.Plan(digest)
	if unread == nil {
		st.Name = p.Name
	}
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
	case unread != nil:
		return st, unread
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
	s := Status{Serving: serving, Site: d.Folder.Config.Site, Connected: serving && d.conn.Connected(),
		Trouble: d.conn.Trouble()}
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
	looked := d.looked
	d.mu.Unlock()
	slices.SortFunc(s.Studies, func(a, b StudyStatus) int { return strings.Compare(a.Study, b.Study) })
	if looked.Equal(d.wrote) && reflect.DeepEqual(s, d.status) {
		return nil
	}
	err := d.Folder.WriteJSON("status.json", s)
	if err == nil {
		d.wrote, d.status = looked, s
	}
	return err
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
		{federation.Pending, "for a person to decide about %s"},
		{federation.Unable, "for something to be mended in %s"},
		{federation.Approved, "for tasks of %s"}, {federation.Computing, "for %s to be computed"},
		{federation.Done, "for the coordinator to close %s"},
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
