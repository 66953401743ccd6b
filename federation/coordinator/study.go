package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/engine"
	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	"parley/internal/version"
	"parley/method"
	"parley/privacy"
	"parley/report"
	"parley/study"
)

// running is a study that the daemon serves.
type running struct {
	daemon *Daemon
	digest string

	bucket sync.Mutex // held while it is written to by [running.probe], or removed

	mu       sync.Mutex
	plan     *study.Plan // nil before it has been read
	packed   []byte      // the plan, as it is posted
	state    studyState
	engine   *engine.Coordinator // nil while it is not running
	cancel   context.CancelCauseFunc
	orders   int // that have been followed
	dropped  map[string]bool
	aborted  bool
	again    bool // a person wants what has stopped to be tried again
	round    int
	progress [2]int // steps done, and in all
	links    map[string]*siteLink
	since    time.Time // of the state
	saved    time.Time // when it was last
	repeats  bool      // a history, as its sites have kept it
}

// stands is where the study stands. What it refers to is read under the lock alone.
func (s *running) stands() studyState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

var errAborted = errors.New("it was aborted by a person")

// running lists the studies.
func (d *Daemon) running() []*running {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.studies), func(a, b *running) int {
		return strings.Compare(a.digest, b.digest)
	})
}

// needs says what a site with this program must install for the study, which goes on
// with the revision of its method with which it began.
func (s *running) needs(site federation.Program) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misfit(site)
}

// misfit is needs; the caller holds s.mu.
func (s *running) misfit(site federation.Program) string {
	own, m := s.daemon.program, s.plan.Method.Name
	if r := s.state.Revision; r != 0 && r != own.Methods[m] {
		own.Version, own.Methods = s.state.Version, map[string]int{m: r}
	}
	return federation.VersionMismatch(own, site, m)
}

// posted returns the plan, compressed, if the study has something for the site, and why it has
// stopped, if it has.
func (s *running) posted(site string) (plan []byte, stopped string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plan == nil || !slices.Contains(s.plan.Sites, site) || s.state.delivered(site) {
		return nil, "", false
	}
	if s.state.State == Stopped {
		stopped = "the study has stopped"
		if s.aborted {
			stopped = errAborted.Error()
		}
	}
	return s.packed, stopped, true
}

// follow does what persons have ordered since.
func (s *running) follow(orders []Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := orders[min(s.orders, len(orders)):]
	if len(fresh) > 0 {
		defer s.daemon.news.give()
	}
	for _, o := range fresh {
		s.orders++
		if s.state.State == Ended {
			continue // it was done before the order was seen
		}
		if o.Abort {
			s.aborted = true
			if s.cancel != nil {
				s.cancel(errAborted)
			}
			continue
		}
		if o.Again {
			s.again = true
			continue
		}
		if s.dropped == nil {
			s.dropped = map[string]bool{}
		}
		s.dropped[o.Drop] = true
		if s.engine != nil {
			s.engine.Drop(o.Drop)
		} else if l := s.links[o.Drop]; l != nil && l.giveUp != nil && l.waited.For == forHistory {
			l.giveUp(errDropped)
		}
	}
}

func (s *running) setState(change func(*studyState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.State
	change(&s.state)
	if s.state.State != before {
		s.since = time.Now()
		s.daemon.news.give()
	}
	s.save()
}

// save writes the state; the caller holds s.mu.
func (s *running) save() {
	s.saved = time.Now()
	s.daemon.once.Say(s.daemon.Log, fmt.Sprintf("study %.12s: writing its state", s.digest),
		s.daemon.Folder.saveState(s.digest, s.state))
}

// approve notes that people at a site have approved, and says whether that is new.
func (st *studyState) approve(site string) bool {
	if slices.Contains(st.Approved, site) {
		return false
	}
	st.Approved = append(st.Approved, site)
	return true
}

// leave notes that a site answers no more.
func (st *studyState) leave(site, why string) {
	if st.Left == nil {
		st.Left = map[string]string{}
	}
	st.Left[site] = why
}

// stop ends the study for now: it failed, or was aborted.
func (s *running) stop(err error) {
	s.setState(func(st *studyState) { st.State, st.Text, st.Waited = Stopped, err.Error(), nil })
	s.daemon.Log.Error(fmt.Sprintf("study %.12s has stopped: %v", s.digest, err), "study", s.digest)
	s.daemon.once.Say(s.daemon.Log, "writing the audit log", s.daemon.Folder.Audit.Add("stopped", s.digest, "",
		err.Error()))
}

// load reads what the folder has of the study.
func (s *running) load() error {
	f := s.daemon.Folder
	var err error
	if s.state, err = f.loadState(s.digest); err != nil {
		return err
	}
	plan, err := f.Plan(s.digest)
	if err != nil {
		return err
	}
	encoded, err := plan.Encode()
	if err != nil {
		return err
	}
	orders, err := f.Orders(s.digest)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.plan, s.packed, s.since = plan, federation.Compress(encoded), time.Now()
	s.mu.Unlock()
	s.follow(orders)
	return nil
}

// serve runs the study to its end, and hands its results to the sites.
func (s *running) serve(ctx context.Context) {
	d := s.daemon
	if s.finished() {
		return
	}
	if err := s.reach(ctx, 0); err != nil {
		return // ctx has ended
	}
	served, end := context.WithCancel(ctx)
	defer end()
	d.goOn(served, s.keepTime)
	for ctx.Err() == nil {
		if s.finished() {
			return
		}
		inner, cancel := context.WithCancelCause(ctx)
		s.mu.Lock()
		s.cancel, s.again = cancel, false
		if s.aborted {
			cancel(errAborted)
		}
		s.mu.Unlock()
		err := s.run(inner)
		aborted := errors.Is(context.Cause(inner), errAborted)
		cancel(nil)
		if aborted && s.stands().State != Ended {
			if s.stands().State != Stopped {
				s.stop(errAborted)
			}
			err = s.tell(ctx, nil, nil, errAborted.Error())
		}
		var forked *engine.ForkedError
		var earlier *wire.EarlierError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &earlier):
			d.Log.Warn(fmt.Sprintf("study %.12s: %v", s.digest, err), "study", s.digest)
			if s.reach(ctx, earlier.Seen) != nil {
				return
			}
		case aborted && s.stands().State != Ended:
			return
		case errors.As(err, &forked) && !s.stands().Rebuild:
			// Sites have seen more than this coordinator remembers.
			d.Log.Warn(fmt.Sprintf("study %.12s: %v; the sites are asked for its history", s.digest, forked.Err),
				"study", s.digest)
			s.setState(func(st *studyState) { st.Rebuild = true })
		case files.Failed(err): // it may be full, which passes
			d.once.Say(d.Log, fmt.Sprintf("study %.12s", s.digest), err)
			s.setState(func(st *studyState) { st.Text = err.Error() + "; it is tried again" })
			wire.Pause(ctx, d.Again)
		case err != nil:
			s.stop(err)
			if !s.triedAgain(ctx) {
				return
			}
		}
	}
}

// triedAgain waits until a person wants the study to be tried again, or aborts it;
// false if ctx ends first.
func (s *running) triedAgain(ctx context.Context) bool {
	for {
		changed := s.daemon.news.changed()
		s.mu.Lock()
		again := s.again || s.aborted
		s.again = false
		s.mu.Unlock()
		if again {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// finished says whether nobody waits for anything any more.
func (s *running) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.State == Ended && len(s.state.Delivered) == len(s.plan.Sites)
}

// probe writes to the study's bucket if it is in use.
func (s *running) probe(ctx context.Context, lately time.Duration) error {
	s.bucket.Lock()
	defer s.bucket.Unlock()
	s.mu.Lock()
	used := s.links != nil && s.state.State != Stopped
	s.mu.Unlock()
	if !used || s.finished() {
		return nil
	}
	return s.daemon.probeBucket(ctx, s.digest, lately)
}

// run is the study from where it stands to its end.
func (s *running) run(ctx context.Context) error {
	d, began := s.daemon, s.stands()
	m, ok := d.Folder.Methods.Lookup(s.plan.Method.Name)
	if !ok {
		return fmt.Errorf("method %q is not known", s.plan.Method.Name)
	}
	if r := began.Revision; r != 0 && r != m.Revision() {
		return fmt.Errorf("it began with revision %d of method %s, and this is parley %s with revision %d\n  hint: "+
			"install parley %s here, with revision %d of the method, with which the study began", r, m.Name(),
			version.String(), m.Revision(), began.Version, r)
	}
	half, err := method.ForPlan(m, s.plan).Coordinator(s.plan)
	if err != nil {
		return err
	}
	path, err := d.Folder.ResultsPath(s.plan)
	if err != nil {
		return err
	}
	dir, err := report.OpenResults(path, s.plan, false, time.Now())
	if err != nil {
		return err
	}
	dir.Paper = d.Folder.Methods.Paper(s.plan)
	c := &engine.Coordinator{
		Study: s.digest, Revision: m.Revision(), Sites: s.plan.Sites, Quorum: s.plan.Quorum, Method: half,
		Grace: min(15*time.Second, 10*d.Again), Requests: map[string][]privacy.Listed{},
		Links: map[string]engine.Link{}, Observe: s.observe,
		Checkpoints: engine.FileCheckpoints(filepath.Join(dir.Path(), "checkpoint")),
	}
	if began.Rebuild {
		if c.Follow, err = s.histories(ctx); err != nil {
			return err
		}
	}
	if err := s.connect(c, m); err != nil {
		return err
	}
	s.mu.Lock()
	s.engine = c
	for site := range s.dropped {
		c.Drop(site)
	}
	s.mu.Unlock()
	if began.State != Ended {
		s.setState(func(st *studyState) {
			st.State, st.Text, st.Revision = Running, "", m.Revision()
			if st.Version == "" {
				st.Version = version.String()
			}
		})
	}
	out, err := c.Run(ctx)
	s.mu.Lock()
	s.engine = nil
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := dir.Write(out, time.Now()); err != nil {
		return err
	}
	if began.State != Ended {
		s.setState(func(st *studyState) {
			st.State, st.Rebuild = Ended, false
			maps.DeleteFunc(st.Left, func(site, _ string) bool { return !slices.Contains(out.Left, site) })
			for _, site := range out.Left {
				if st.Left[site] == "" {
					st.leave(site, "it left before")
				}
			}
		})
		d.Log.Info(fmt.Sprintf("study %s is done: %s", s.plan.Name, filepath.Join(dir.Path(), "report.html")),
			"study", s.digest)
		if err := d.Folder.Audit.Add("done", s.digest, "",
			fmt.Sprintf("%d of %d sites to the end", len(s.plan.Sites)-len(out.Left), len(s.plan.Sites))); err != nil {
			return err
		}
	}
	shared, err := sharedFiles(path, s.along())
	if err != nil {
		return err
	}
	if err := s.tell(ctx, out, shared, ""); err != nil {
		return err
	}
	if s.finished() {
		s.bucket.Lock()
		defer s.bucket.Unlock()
		if err := d.conn.Remove(ctx, s.digest); err != nil && ctx.Err() == nil {
			d.Log.Warn(fmt.Sprintf("study %.12s: its values at the broker could not be removed: %v", s.digest, err))
		}
	}
	return context.Cause(ctx)
}

// reach makes this process the study's coordinator, as soon as the broker lets it, with a
// term above one that a site has seen, and a link to each of its sites.
func (s *running) reach(ctx context.Context, seen uint64) error {
	d := s.daemon
	for {
		term, err := wire.Claim(ctx, d.conn, d.Folder.Secrets.Key, s.digest, seen)
		if err == nil {
			links := map[string]*siteLink{}
			for _, site := range s.plan.Sites {
				links[site] = &siteLink{study: s, member: d.member(ctx, site), term: term}
			}
			s.mu.Lock()
			s.links = links
			s.mu.Unlock()
			d.news.give()
			return nil
		}
		if wire.Pause(ctx, time.Second) != nil {
			return context.Cause(ctx)
		}
	}
}

func (s *running) observe(e engine.Event) {
	d := s.daemon
	s.mu.Lock()
	s.progress, s.repeats = [2]int{e.Progress, e.Of}, e.Following
	name := s.plan.Name
	if e.Round != nil {
		s.round = e.Round.Round
	}
	s.mu.Unlock()
	switch {
	case e.Resumed:
		d.Log.Info("study "+name+": continuing from the last checkpoint", "study", s.digest)
	case e.Left != nil:
		d.Log.Warn(fmt.Sprintf("study %s: site %s has left: %v", name, e.Left.Site, e.Left.Reason), "study", s.digest,
			"site", e.Left.Site)
		d.once.Say(d.Log, "writing the audit log", d.Folder.Audit.Add("left", s.digest, e.Left.Site,
			e.Left.Reason.Error()))
		s.setState(func(st *studyState) { st.leave(e.Left.Site, e.Left.Reason.Error()) })
	case e.Round != nil:
		d.Log.Info(fmt.Sprintf("study %s: round %d is done (%d of %d)", name, e.Round.Round, e.Progress, e.Of), "study",
			s.digest, "round", e.Round.Round)
		if d.Watch != nil {
			d.Watch.Round(s.digest)
		}
		if !e.Following && s.stands().Rebuild { // it is in the checkpoint, or can be asked for again
			s.setState(func(st *studyState) { st.Rebuild = false })
		}
	}
}

// tell hands each site what it may have at the end, and returns when all have it, or when
// this coordinator's term turns out to be too low.
func (s *running) tell(ctx context.Context, out *engine.Outcome, files []federation.File, words string) error {
	d := s.daemon
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	turns := make(chan struct{}, handedAtOnce)
	for _, site := range s.plan.Sites {
		s.mu.Lock()
		done := s.state.delivered(site)
		l := s.links[site]
		s.mu.Unlock()
		if done || l == nil {
			continue
		}
		e := federation.Ending{Words: words}
		left := out == nil || slices.Contains(out.Left, site)
		var past engine.History
		if !left {
			e.Share, e.Files, past = out.Shares[site], files, out.Pasts[site]
		} else if words == "" {
			e.Words = "this site has left the study"
		}
		wg.Go(func() {
			if _, here := l.heard(ctx); !here {
				return
			}
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			over := sync.OnceFunc(func() { <-turns })
			defer over()
			data, err := e.Encode()
			if err == nil {
				// A site that is away does not keep others waiting.
				defer time.AfterFunc(handedWithin, over).Stop()
				err = l.end(ctx, data, past, left)
			}
			if earlier := (*wire.EarlierError)(nil); errors.As(err, &earlier) {
				cancel(err)
			}
			if err != nil {
				if ctx.Err() == nil {
					d.Log.Error(fmt.Sprintf("study %.12s, handing site %s its results: %v", s.digest, site, err))
				}
				return
			}
			s.delivered(l.member)
			what := "has its results"
			if left {
				what = "need not be told more"
			}
			d.Log.Info(fmt.Sprintf("study %s: site %s %s", s.plan.Name, site, what), "study", s.digest, "site", site)
		})
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save()
	return context.Cause(ctx)
}

// delivered notes that a site has what it may have. The state is written now and then, and at the end: a site that is
// handed its results twice says that it has them.
func (s *running) delivered(m *member) {
	s.mu.Lock()
	s.state.deliver(m.site)
	if time.Since(s.saved) > time.Second {
		s.save()
	}
	s.mu.Unlock()
	m.news.give()
}

// Results are handed to so many sites at once: encoded, those of a large study take
// megabytes for each. After handedWithin the next has its turn.
const (
	handedAtOnce = 4
	handedWithin = 5 * time.Second
	handedEvery  = 5 * time.Second // to one that asks
)

// A study of more than manySites hands each so many bytes of its results, and the rest to those whose people ask: a
// model and a report grow with sites, and so what all are handed would with the square.
const (
	manySites = 50
	fewBytes  = 1 << 10
)

// along is how many bytes of the results each site is handed at the end.
func (s *running) along() int {
	if len(s.plan.Sites) > manySites {
		return fewBytes
	}
	return nats.MaxValue / 2
}

// sharedFiles are those of the results that sites may have, with so many bytes of their contents.
func sharedFiles(dir string, most int) (list []federation.File, err error) {
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !federation.Shared(name) {
			return err
		}
		data, err := fs.ReadFile(root, name)
		list = append(list, federation.PackFile(name, data))
		return err
	})
	return federation.SentAlong(list, most), err
}

// handed are the results of a study for a site that asks for them; none if it may have none.
func (d *Daemon) handed(digest, site string) *federation.Handed {
	h := &federation.Handed{Study: digest}
	d.mu.Lock()
	s := d.studies[digest]
	d.mu.Unlock()
	if s == nil {
		return h
	}
	st := s.stands()
	if _, left := st.Left[site]; left || st.State != Ended || s.plan == nil || !slices.Contains(s.plan.Sites, site) {
		return h
	}
	path, err := d.Folder.ResultsPath(s.plan)
	if err == nil {
		h.Files, err = sharedFiles(path, nats.MaxValue/2)
	}
	if err != nil {
		d.Log.Error(fmt.Sprintf("study %.12s: its results, for which site %s asks: %v", digest, site, err))
	}
	return h
}
