package site

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/host"
	"parley/engine/wire"
	"parley/federation"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
)

// answering is a study as the daemon sees it.
type answering struct {
	daemon *Daemon
	digest string
	plan   *study.Plan // nil if this program cannot read it

	mu      sync.Mutex
	needs   string // what must be installed here
	stopped string // why the coordinator does not go on
	word    string // see package federation
	text    string // why, for the coordinator
	local   string // more of it, for the site's own people
	since   time.Time
	working time.Time // since when a task is computed; zero if none is
	checked string    // what the decision was last checked against
	retry   time.Time // when trouble is tried again; zero for never
	cancel  context.CancelFunc
	done    chan struct{} // closed when the answering has stopped
}

// longWork is from when on the coordinator hears that a task is computed: a hello
// for each short one would be more than all the rest.
const longWork = 10 * time.Second

// standing is what the coordinator is told.
func (a *answering) standing() federation.Standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := federation.Standing{Study: a.digest, Word: a.word, Text: a.text}
	switch {
	case a.needs != "":
		s.Word, s.Text = federation.Unable, a.needs
	case s.Word == federation.Approved && !a.working.IsZero() && time.Since(a.working) > longWork:
		s.Word = federation.Computing
	}
	return s
}

// setNeeds takes in what the coordinator says of the study.
func (a *answering) setNeeds(needs, stopped string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range []struct{ old, now string }{{a.needs, needs}, {a.stopped, stopped}} {
		if x.now != x.old && x.now != "" {
			a.daemon.Log.Warn(fmt.Sprintf("study %s: %s", a.name(), x.now), "study", a.digest)
		}
	}
	a.needs, a.stopped = needs, stopped
}

// set says where the site stands. text is for others, local for its own people.
func (a *answering) set(word, text, local string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.word == word && a.text == text && a.local == local {
		return
	}
	if a.word != word || a.text != text { // of what is local, and when it comes, a hello says nothing
		a.daemon.tell()
	}
	a.word, a.text, a.local, a.since = word, text, local, time.Now()
	if local == "" {
		local = text
	}
	if local != "" {
		local = ": " + local
	}
	a.daemon.Log.Info(fmt.Sprintf("study %s: %s%s", a.name(), word, local), "study", a.digest, "word", word)
}

func (a *answering) name() string {
	if a.plan == nil {
		return a.digest[:12]
	}
	return a.plan.Name
}

// look takes up what was decided about the study, and checks whether it still
// holds.
func (a *answering) look(ctx context.Context) error {
	f := a.daemon.Folder
	now := f.circumstances(a.digest)
	a.mu.Lock()
	same := now == a.checked && (a.retry.IsZero() || time.Now().Before(a.retry))
	a.mu.Unlock()
	if same {
		return nil
	}
	a.stop()
	decision, err := f.Decision(a.digest)
	if err != nil {
		return err
	}
	_, again, err := a.touched(decision)
	if err != nil {
		return err
	}
	if decision == nil || again {
		if decision, err = a.unasked(ctx); err != nil {
			return err
		}
		if decision != nil { // which has changed what now stands for
			return a.look(ctx)
		}
	}
	a.mu.Lock()
	a.checked, a.retry = now, time.Time{}
	a.mu.Unlock()
	switch {
	case decision == nil:
		a.set(federation.Pending, "", fmt.Sprintf("a person must decide: parley site show %s %s, then approve or "+
			"refuse", problem.Shell(f.Path), a.name()))
	case decision.Approval == nil:
		charged, err := a.charged()
		if err != nil {
			return err
		}
		if !charged {
			a.set(federation.Refused, decision.Refused, "")
			return nil
		}
		a.start(ctx, decision)
	default:
		a.start(ctx, decision)
	}
	return nil
}

// charged says whether the site was ever charged for the study.
func (a *answering) charged() (bool, error) {
	charged, err := ledger.Read(a.daemon.store)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(charged.Entries, func(e ledger.Entry) bool { return e.Study == a.digest }), nil
}

// tellOfLongWork makes the coordinator hear of tasks that take long.
func (d *Daemon) tellOfLongWork() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.studies {
		a.mu.Lock()
		if took := time.Since(a.working); !a.working.IsZero() && took > longWork && took < longWork+time.Second {
			d.tell()
		}
		a.mu.Unlock()
	}
}

// unasked approves the study without asking a person, if the site's policy has a
// rule for it, or if a file of the site's names it.
func (a *answering) unasked(ctx context.Context) (*Decision, error) {
	f := a.daemon.Folder
	policy, err := f.Policy()
	if err != nil {
		return nil, nil // it is told when a person looks
	}
	by := ""
	if policy.PreApproval != nil {
		by = host.ByRule
	}
	named, err := f.namedApproved(a.digest)
	if err != nil {
		return nil, err
	}
	if named {
		by = host.ByFile
	}
	if by == "" {
		return nil, nil
	}
	if err := f.Approve(ctx, a.digest, by); err != nil {
		a.daemon.Log.Info(fmt.Sprintf("study %s is not approved by %s: %v", a.name(), by, err), "study", a.digest)
		return nil, nil
	}
	return f.Decision(a.digest)
}

// circumstances is what a decision was made in: when any of it changes, it is
// checked again.
func (f *Folder) circumstances(digest string) string {
	text := []byte(f.DataPath() + f.stamp())
	for _, path := range []string{f.File(approvedFile), f.File("studies", digest, "decision.json"),
		f.File("studies", digest, "go-on.json"), f.PolicyPath()} {
		text = append(text, stat(path)...)
	}
	return string(text)
}

// stamp is the sizes and times of the files with the site's data.
func (f *Folder) stamp() string {
	sum := sha256.New()
	for _, path := range append([]string{f.DataPath()}, dataset.Files(f.DataPath())...) {
		sum.Write(stat(path))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// stat is a line for the size and the time of a file, wherever it lies.
func stat(path string) []byte {
	info, err := os.Stat(path)
	name := filepath.Base(path)
	switch {
	case err != nil:
		return fmt.Appendf(nil, "%s -\n", name)
	case info.IsDir(): // whose time changes with any file in it
		return fmt.Appendf(nil, "%s\n", name)
	}
	return fmt.Appendf(nil, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
}

// touched says whether the files with the data have been written since a decision. Where
// nothing that others see may depend on rows, this stands for a change of the data: whether
// they are others, and not only written again, shows when a person looks. What began is
// not approved again by a rule.
func (a *answering) touched(d *Decision) (touched, again bool, err error) {
	f := a.daemon.Folder
	if d == nil || d.Approval == nil || d.Files == "" || d.Files == f.stamp() {
		return false, false, nil
	}
	charged, err := a.charged()
	return true, !charged && (d.Approval.By == host.ByRule || d.Approval.By == host.ByFile), err
}

// stop ends the answering, and waits for it. What was charged is finished.
func (a *answering) stop() {
	a.mu.Lock()
	cancel, done := a.cancel, a.done
	a.cancel, a.done = nil, nil
	a.checked = ""
	a.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// start answers the study's tasks in the background.
func (a *answering) start(ctx context.Context, decision *Decision) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	a.mu.Lock()
	a.cancel, a.done = cancel, done
	a.mu.Unlock()
	a.daemon.wg.Go(func() {
		defer close(done)
		defer cancel()
		a.serve(ctx, decision)
	})
}

// serve answers, and says why it does not.
func (a *answering) serve(ctx context.Context, decision *Decision) {
	f := a.daemon.Folder
	err := a.answer(ctx, decision)
	var rolledBack *engine.RolledBackError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &rolledBack):
		if err := f.WriteJSON(f.rollback(a.digest), rolledBack); err != nil {
			a.daemon.Log.Error(err.Error())
		}
		a.set(federation.Unable, "a person at the site must decide: its store is older than what others have seen "+
			"of it",
			fmt.Sprintf("%v\n  to go on: parley site go-on %s %s", rolledBack, problem.Shell(f.Path), a.name()))
	case err != nil && decision.Approval == nil:
		a.set(federation.Refused, decision.Refused, err.Error())
	case errors.Is(err, engine.ErrChanged):
		a.set(federation.Pending, "", err.Error()) // whatever has changed: that it was a row would tell of it
	case errors.Is(err, privacy.ErrRefused):
		a.set(federation.Refused, "the site's policy or ledger does not allow it", err.Error())
	case err != nil:
		a.set(federation.Unable, "something has to be mended there", err.Error())
		a.mu.Lock()
		a.retry = time.Now().Add(a.daemon.Again)
		a.mu.Unlock()
	}
}

func (a *answering) answer(ctx context.Context, decision *Decision) error {
	d, f := a.daemon, a.daemon.Folder
	h, err := f.host(ctx, a.plan, true)
	if err != nil {
		return err
	}
	h.Store, h.Options = d.store, d.Privacy
	over, err := f.over(a.digest)
	if err != nil {
		return err
	}
	if decision.Approval != nil && !over { // afterwards the data may change
		noised, err := h.Noised(a.plan)
		if err != nil {
			return err
		}
		if touched, _, err := a.touched(decision); err != nil {
			return err
		} else if touched && noised {
			return fmt.Errorf("%w: the files with the data have been written since it was approved\n  hint: approve "+
				"it again", engine.ErrChanged)
		}
		if err := h.Approved(ctx, a.plan, f.Config.Coordinator, decision.Approval); err != nil {
			return err
		}
	}
	loop, err := h.Open(ctx, a.plan)
	if err != nil {
		return err
	}
	if decision.Approval == nil { // what it has sent may still be asked for again
		loop.Closed = "the site has refused to take part: " + decision.Refused
	}
	if err := a.decided(h); err != nil {
		return err
	}
	if over {
		a.set(federation.Done, "", "")
	} else if decision.Approval == nil {
		a.set(federation.Withdrawn, decision.Refused, "")
	} else {
		a.set(federation.Approved, "", "")
	}
	receipts := f.Receipts()
	server := &wire.Server{
		Wire: d.conn, Key: f.Secrets.Key, Peer: f.Coordinator, Site: loop, Life: d.life, Again: d.Again,
		Audit: func(line string) { d.audit("noted", a.digest, line) },
		Keep:  func(r wire.Receipt) error { return receipts.Confirm(r.Study, r) },
		Kept: func() (r wire.Receipt, err error) {
			return r, receipts.Confirmed(a.digest, &r)
		},
		Working: func(begins bool) { a.work(begins, h) },
		End:     a.end,
		Over: func() {
			// it is not made again for whoever asks again
			if ended, err := f.Ended(a.digest); err == nil && ended == nil {
				d.toReport(a.digest)
			}
		},
	}
	return server.Serve(ctx)
}

// work notes that a task is computed, or that it has been, and what its rows have shown, for
// the site's own people.
func (a *answering) work(begins bool, h *host.Host) {
	if shown := h.Shown(); !begins && shown != "" {
		a.mu.Lock()
		word, text := a.word, a.text
		a.mu.Unlock()
		a.set(word, text, shown)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if begins {
		a.working = time.Now()
		return
	}
	if time.Since(a.working) > longWork {
		a.daemon.tell()
	}
	a.working = time.Time{}
	if a.daemon.Watch != nil {
		a.daemon.Watch.Answered(a.digest)
	}
}

// decided takes up that a person lets the site go on after a loss.
func (a *answering) decided(h *host.Host) error {
	f := a.daemon.Folder
	name := filepath.Join("studies", a.digest, "go-on.json")
	e, err := federation.Kept[engine.RolledBackError](&f.Folder, name)
	if e == nil || err != nil {
		return err
	}
	if err := h.GoOn(a.digest, e); err != nil {
		return err
	}
	os.Remove(f.File(f.rollback(a.digest)))
	return os.Remove(f.File(name))
}
