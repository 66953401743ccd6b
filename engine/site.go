package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/method"
	"parley/privacy"
	"parley/sitestore"
)

// Store is what a site keeps: [sitestore.Store] or [sitestore.Memory].
type Store interface {
	privacy.Journal
	// Head returns how many records of a study's history are kept, and its head.
	Head(study string) (n int, head [32]byte, err error)
	Records(study string, from int) ([][]byte, error)
	// Append keeps records from position first on. It refuses gaps, and records
	// that differ from what is kept.
	Append(study string, first int, records [][]byte) error
	Decisions(study string) ([]string, error)
	// Last returns the number of the ledger's last line, and its hash.
	Last() (lines int, hash [32]byte, err error)
}

// Site is the loop at one site of one study: it answers tasks, each once,
// through the site's gate. Its methods may be called concurrently: a task that
// comes again while it is computed waits for the one computation.
type Site struct {
	Name     string
	Study    string   // hexadecimal digest of the plan that the site agreed to
	Revision int      // of the method at this site
	Sites    []string // of the plan
	// Minimum is how many sites must be left in the study, and must have contributed
	// when this one has done so twice, by the history that the coordinator shows; 0 for
	// any. A coordinator that invents sites defeats it.
	Minimum int
	// AnswerAfter is the least time between a task with differential protection
	// and its answer, so that computing does not show in it.
	AnswerAfter time.Duration
	// Closed, if not empty, refuses every task that was not answered before, in these
	// words.
	Closed string
	Half   method.Site
	Gate   *privacy.Gate
	Store  Store
	// Marks, if not nil, keeps how far the ledger has come outside of Store, so
	// that an older copy of that is noticed.
	Marks Marks

	one    chan struct{} // holds one token: the right to handle a task
	census *census       // after the first kept records of the history
	kept   int
}

// Marks keeps a site's ledger marks outside of its store.
type Marks interface {
	// Load returns the longest mark that was kept; the zero Mark before the first.
	Load() (Mark, error)
	// Keep makes a mark durable.
	Keep(Mark) error
}

// NewSite returns s, ready to answer.
func NewSite(s Site) *Site {
	s.one = make(chan struct{}, 1)
	s.census = newCensus(len(s.Sites))
	return &s
}

// Refusal says that a site will never answer a task, nor any later one of the
// study. Public is what others may know; Err, which may be nil, stays here.
type Refusal struct {
	Public string
	Err    error
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return r.Public
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(format string, a ...any) *Refusal { return &Refusal{Public: fmt.Sprintf(format, a...)} }

// ErrChanged means that a study goes on under other terms than those that were
// agreed to: a person must decide.
var ErrChanged = errors.New("something has changed since this study was agreed to here")

// BehindError says that a site has kept fewer records than a task's past begins
// after: it wants the past from Have on.
type BehindError struct{ Have int }

func (e *BehindError) Error() string {
	return fmt.Sprintf("the site has kept %d records of the history, and was sent only later ones", e.Have)
}

// ForkedError says that a site has gone on with another history than the
// coordinator shows: a coordinator that was brought back from an old checkpoint, or
// began anew, while the site has seen more. No site leaves for it.
type ForkedError struct{ Err error }

func (e *ForkedError) Error() string {
	return e.Err.Error() + "\n  hint: the coordinator has lost what this site has seen; let it follow the longest " +
		"history that a site has kept"
}

// Unwrap returns the cause.
func (e *ForkedError) Unwrap() error { return e.Err }

// Answer is what a site says to a task.
type Answer struct {
	Release privacy.Release
	Ledger  Mark // after it
	Records int  // of the history that the site has kept
}

// Handle answers an encoded task. Everything about it is verified before
// anything is kept or charged. A task that was answered before is answered with
// the stored bytes, without reading a row. Errors:
//
//   - a [*Refusal]: the site will not answer;
//   - a [*BehindError]: the same task with an earlier past will be answered;
//   - a [*ForkedError]: the site has seen another history than the coordinator's;
//   - a [*RolledBackError], or ErrChanged: a person must decide;
//   - others are of this machine: its disk, its data, or ctx. Nothing is lost by
//     asking again, and nothing is charged twice. They may quote the site's data.
func (s *Site) Handle(ctx context.Context, encoded []byte, past Past) (Answer, error) {
	select {
	case s.one <- struct{}{}:
		defer func() { <-s.one }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	began := time.Now()
	t, err := decodeTask(encoded)
	if err != nil {
		return Answer{}, &Refusal{Public: "the task cannot be read", Err: err}
	}
	switch {
	case t.Study != s.Study || t.Site != s.Name:
		return Answer{}, refuse("task for site %q of study %.12s reached site %q of study %.12s", t.Site, t.Study,
			s.Name, s.Study)
	case t.Revision != s.Revision:
		return Answer{}, refuse("the coordinator's program has revision %d of the method, and this site's has %d: "+
			"both need the same one", t.Revision, s.Revision)
	}
	if err := s.remember(nil); err != nil {
		return Answer{}, s.whole(err, past, t.Head)
	}
	ask := privacy.Ask{Study: t.Study, Site: t.Site, Round: t.Round, Kind: t.Kind, Task: TaskID(encoded)}
	if ask.Common, err = common(encoded); err != nil {
		return Answer{}, err
	}
	if r, ok, err := s.Gate.Stored(ask); err != nil || ok {
		// Whether it had been computed when somebody ended the wait for it would tell of rows.
		if err := s.wait(ctx, t.Kind, began); err != nil {
			return Answer{}, err
		}
		return s.answer(r, toldOf(err))
	}
	if s.Closed != "" {
		return Answer{}, refuse("%s", s.Closed)
	}
	records, err := s.verify(t, past)
	if err != nil {
		return Answer{}, err
	}
	if ask, err = s.Gate.Vet(ask, t.Body); err != nil {
		return Answer{}, toldOf(err)
	}
	if ask.Opens > 0 {
		if lost, err := s.lost(); err != nil || lost {
			return Answer{}, cmp.Or(err, error(refuse("this site has lost part of its ledger, and with it what it has "+
				"opened: it opens no more sums of this study")))
		}
	}
	if err := s.Gate.Check(ask); err != nil {
		return Answer{}, toldOf(err)
	}
	if err := context.Cause(ctx); err != nil { // nothing is charged for what is not going to be computed
		return Answer{}, err
	}
	if err := s.keep(records); err != nil {
		return Answer{}, err
	}
	r, err := s.compute(ctx, t, ask)
	if err != nil {
		return Answer{}, err
	}
	if err := s.wait(ctx, t.Kind, began); err != nil {
		return Answer{}, err
	}
	return s.answer(r, nil)
}

// compute makes the release that answers a task, and returns what is stored.
func (s *Site) compute(ctx context.Context, t task, ask privacy.Ask) (r privacy.Release, err error) {
	session, err := s.Gate.Admit(ask)
	if err != nil {
		return r, toldOf(err)
	}
	defer session.Close()
	if s.differential(t.Kind) {
		// What was charged is finished although the program is asked to stop. (One
		// that is killed computes the same again.)
		ctx = context.WithoutCancel(ctx)
	}
	a, err := s.run(ctx, method.Task{Site: t.Site, Kind: t.Kind, Body: t.Body}, session)
	var unread *privacy.ReadError
	switch {
	case err == nil:
	case context.Cause(ctx) != nil || errors.As(err, &unread):
		return r, fmt.Errorf("computing %q: %w", t.Kind, err)
	default:
		// The method cannot answer from these rows, today or later. Why is not for
		// others to know.
		return r, &Refusal{Public: "it failed", Err: fmt.Errorf("computing %q: %w", t.Kind, err)}
	}
	if _, err := session.Seal(a.Body, a.State); err != nil && !errors.Is(err, sitestore.ErrCommitted) {
		return r, fmt.Errorf("storing the answer to %q: %w", t.Kind, err)
	}
	r, ok, err := s.Gate.Stored(ask)
	if err == nil && !ok {
		err = errors.New("a release that was stored is not there")
	}
	return r, err
}

// run calls the method's half. A panic is a failure like any other.
func (s *Site) run(ctx context.Context, t method.Task, session *privacy.Session) (a method.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the method panicked: %v", p)
		}
	}()
	return s.Half.Run(ctx, t, session)
}

func (s *Site) differential(kind string) bool { return s.Gate.Protection(kind) == privacy.Differential }

// wait lets an answer with protection go no earlier than the plan says.
func (s *Site) wait(ctx context.Context, kind string, began time.Time) error {
	if s.AnswerAfter == 0 || !s.differential(kind) {
		return nil
	}
	select {
	case <-time.After(time.Until(began.Add(s.AnswerAfter))):
		return nil
	case <-ctx.Done(): // the release is stored, and waits to be asked for
		return context.Cause(ctx)
	}
}

// answer adds where the site stands, and notes that outside of its store before
// it is told to anybody.
func (s *Site) answer(r privacy.Release, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	mark, err := s.mark()
	if err != nil {
		return Answer{}, err
	}
	if err := s.remember(&mark); err != nil {
		return Answer{}, err
	}
	n, _, err := s.Store.Head(s.Study)
	return Answer{Release: r, Ledger: mark, Records: n}, err
}

// remember holds the ledger against the mark that was kept outside of the store,
// and then keeps a newer one, if there is one.
func (s *Site) remember(newer *Mark) error {
	if s.Marks == nil {
		return nil
	}
	known, err := s.Marks.Load()
	if err == nil {
		err = s.rolledBack(known, 0)
	}
	if err != nil || newer == nil || known.Lines == newer.Lines && bytes.Equal(known.Hash, newer.Hash) {
		return err
	}
	return s.Marks.Keep(*newer)
}

func (s *Site) mark() (m Mark, err error) {
	lines, hash, err := s.Store.Last()
	if err == nil && lines > 0 {
		m = Mark{Lines: lines, Hash: hash[:]}
	}
	return m, err
}

// toldOf makes what the gate will never grant a refusal, and a task that contradicts
// an answered one another history.
func toldOf(err error) error {
	switch {
	case errors.Is(err, privacy.ErrRefused):
		return &Refusal{Public: err.Error(), Err: err} // policies and ledgers speak of charges, never of data
	case errors.Is(err, privacy.ErrConflict):
		return &ForkedError{err}
	}
	return err
}
