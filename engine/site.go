package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	Half        method.Site
	Gate        *privacy.Gate
	Store       Store
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
	return e.Err.Error() + "\n  hint: the coordinator has lost what this site has seen; let it follow the longest history that a site has kept"
}

// Unwrap returns the cause.
func (e *ForkedError) Unwrap() error { return e.Err }

// RolledBackError says that a site's store is not the one that it was: others
// have seen more of it. A person must decide whether the site may go on with
// what there is; until then it answers nothing. See [Decision].
type RolledBackError struct {
	Shown Mark // of the ledger, as others have seen it; zero if it agrees
	Round int  // up to which releases are missing; 0 if none is
}

func (e *RolledBackError) Error() string {
	what := "an older or other copy of this site's store is in its place"
	if e.Shown.Lines > 0 {
		what += fmt.Sprintf(": its ledger has had %d lines, and does not have these", e.Shown.Lines)
	}
	if e.Round > 0 {
		what += fmt.Sprintf("; releases up to round %d are missing", e.Round)
	}
	return what + "\n  hint: bring the right store back; or, if it is lost, a person must decide to go on without it"
}

// Decision is what a person decides who lets a site go on after a loss. It goes
// into the site's store.
func (e *RolledBackError) Decision() string {
	data, err := json.Marshal(loss{e.Shown.Lines, hex.EncodeToString(e.Shown.Hash), e.Round})
	if err != nil {
		panic(err) // numbers and a string
	}
	return lossDecision + string(data)
}

const lossDecision = "go on after a loss: "

type loss struct {
	Lines int    `json:"ledger_lines"`
	Hash  string `json:"ledger_hash"`
	Round int    `json:"releases_to_round"`
}

// covers says whether a decision lets a loss pass, in part or whole.
func (l loss) covers(e *RolledBackError) (ledger, releases bool) {
	return l.Lines == e.Shown.Lines && l.Hash == hex.EncodeToString(e.Shown.Hash), l.Round >= e.Round
}

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
//   - a [*RolledBackError]: a person must decide;
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
		return Answer{}, refuse("task for site %q of study %.12s reached site %q of study %.12s", t.Site, t.Study, s.Name, s.Study)
	case t.Revision != s.Revision:
		return Answer{}, refuse("the coordinator's program has revision %d of the method, and this site's has %d: both need the same one", t.Revision, s.Revision)
	}
	if err := s.remember(nil); err != nil {
		return Answer{}, err
	}
	ask := privacy.Ask{Study: t.Study, Site: t.Site, Round: t.Round, Kind: t.Kind, Task: TaskID(encoded)}
	if r, ok, err := s.Gate.Stored(ask); err != nil || ok {
		return s.answer(r, refusalOf(err))
	}
	records, err := s.verify(t, past)
	if err != nil {
		return Answer{}, err
	}
	if err := s.Gate.Check(ask); err != nil {
		return Answer{}, refusalOf(err)
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
		return r, refusalOf(err)
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

// refusalOf makes a refusal of what the gate will never grant.
func refusalOf(err error) error {
	switch {
	case errors.Is(err, privacy.ErrRefused):
		return &Refusal{Public: err.Error(), Err: err} // policies and ledgers speak of charges, never of data
	case errors.Is(err, privacy.ErrConflict):
		return &ForkedError{err}
	}
	return err
}

// verified is the part of a history that is new, and is to be kept.
type verified struct {
	first   int
	records [][]byte
	census  *census
}

// verify holds the past that came with a task against the task, the history
// that was kept, the plan's sites, and this site's own outbox and ledger. It
// changes nothing.
func (s *Site) verify(t task, past Past) (v verified, err error) {
	kept, head, err := s.Store.Head(s.Study)
	if err != nil {
		return v, err
	}
	if past.First < 0 || len(past.Own) > len(past.Records)+len(s.Sites) {
		return v, refuse("the task's past makes no sense")
	}
	if past.First > kept {
		return v, &BehindError{kept}
	}
	if past.First+len(past.Records) < kept {
		return v, &ForkedError{fmt.Errorf("%w: the task was given out before the last one that this site has seen", sitestore.ErrForked)}
	}
	overlap, err := s.Store.Records(s.Study, past.First)
	if err != nil {
		return v, err
	}
	for i, r := range overlap {
		if !bytes.Equal(past.Records[i], r) {
			return v, &ForkedError{fmt.Errorf("%w: record %d differs", sitestore.ErrForked, past.First+i)}
		}
	}
	if err := s.catchUp(kept); err != nil {
		return v, err
	}
	v = verified{first: kept, records: past.Records[len(overlap):], census: s.census.clone()}
	for i, data := range v.records {
		head = sitestore.Next(head, data)
		r, err := decodeRecord(data)
		if err == nil {
			err = v.census.follow(&r)
		}
		if err != nil {
			return v, &Refusal{Public: "the task's past makes no sense", Err: fmt.Errorf("record %d: %w", kept+i, err)}
		}
	}
	if !bytes.Equal(t.Head, head[:]) {
		return v, &ForkedError{fmt.Errorf("%w: the task's past does not lead to where the task says that it does", sitestore.ErrForked)}
	}
	if n := len(v.census.staying); n < s.Minimum {
		return v, refuse("only %d sites are left in the study, and this site's policy wants at least %d", n, s.Minimum)
	}
	// By its third contribution a site wants to see that others have contributed,
	// too; earlier, those who are slower may not have come to it.
	if n := v.census.contributing(); n < s.Minimum && v.census.times[slices.Index(s.Sites, s.Name)] >= 2 {
		return v, refuse("only %d sites have contributed to the study, and this site's policy wants at least %d", n, s.Minimum)
	}
	return v, s.own(past)
}

// own holds what the past says of this site's releases and ledger against them.
func (s *Site) own(past Past) error {
	at := slices.Index(s.Sites, s.Name)
	counted := 0
	for _, data := range past.Records {
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if r.All || slices.Contains(r.Sites, at) {
			counted++
		}
		if slices.Contains(r.Left, at) {
			return refuse("by the coordinator's history this site has left the study")
		}
	}
	if counted != len(past.Own) {
		return refuse("the coordinator's history counts %d releases of this site, and names %d", counted, len(past.Own))
	}
	missing, before := 0, 0
	for _, c := range past.Own {
		if c.Round <= before { // the rounds of a site's tasks rise
			return refuse("the coordinator's history counts a release of this site for round %d after one for round %d", c.Round, before)
		}
		before = c.Round
		digest, ok, err := s.Gate.Digest(c.Round)
		switch {
		case err != nil:
			return err
		case !ok:
			missing = max(missing, c.Round)
		case !bytes.Equal(c.Digest, digest[:]):
			return refuse("the coordinator's history counts another release of this site for round %d than it has sent", c.Round)
		}
	}
	return s.rolledBack(past.Ledger, missing)
}

// rolledBack returns a [*RolledBackError] if the ledger is not the one that was
// shown, or releases up to a round are missing, and nobody has decided to go on.
func (s *Site) rolledBack(shown Mark, missing int) error {
	e := &RolledBackError{Round: missing}
	if shown.Lines > 0 {
		lines, err := s.Store.Reservations(shown.Lines - 1)
		if err != nil {
			return err
		}
		if len(lines) == 0 || !bytes.Equal(lines[0].Hash[:], shown.Hash) {
			e.Shown = shown
		}
	}
	if e.Shown.Lines == 0 && e.Round == 0 {
		return nil
	}
	decisions, err := s.Store.Decisions(s.Study)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		text, ok := strings.CutPrefix(d, lossDecision)
		var l loss
		if !ok || json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		ledger, releases := l.covers(e)
		if ledger {
			e.Shown = Mark{}
		}
		if releases {
			e.Round = 0
		}
	}
	if e.Shown.Lines == 0 && e.Round == 0 {
		return nil
	}
	return e
}

// catchUp makes the census that of the kept history.
func (s *Site) catchUp(kept int) error {
	if s.kept == kept {
		return nil
	}
	records, err := s.Store.Records(s.Study, 0)
	if err != nil {
		return err
	}
	c := newCensus(len(s.Sites))
	for _, data := range records {
		r, err := decodeRecord(data)
		if err == nil {
			err = c.follow(&r)
		}
		if err != nil {
			return fmt.Errorf("the history that this site has kept: %w", err)
		}
	}
	s.census, s.kept = c, len(records)
	return nil
}

// History returns the records of the study that this site has kept, for a
// coordinator that has lost its own.
func (s *Site) History() ([][]byte, error) { return s.Store.Records(s.Study, 0) }

// keep makes what was verified part of the kept history.
func (s *Site) keep(v verified) error {
	if err := s.Store.Append(s.Study, v.first, v.records); err != nil {
		return err
	}
	s.census, s.kept = v.census, v.first+len(v.records)
	return nil
}
