// Package privacy is the one gate through which anything may leave a site.
//
// A [Release] can only be made here, and the engine sends nothing else. Before
// a row is read, the method declares a [Request]; [Gate.Admit] checks it
// against the plan's [Guarantee] and the site's [Policy], with everything that
// the ledger holds, and commits its charge to the ledger. Only then is there a
// [Session]. One that was granted for a differential request gives no rows: it
// takes each subject's vector, clips, quantises and sums, adds noise, and hands
// the noised sums back. [Session.Seal] commits the finished bytes to the outbox
// before they are returned. So a crash forfeits what was charged, and a retry
// sends the bytes that were stored: one task is never answered twice in
// different words.
//
// Requests without protection pass the same gate, and their releases are marked
// as what they are.
//
// What this package trusts is the method's code at the site: a function that is
// handed a row could write it elsewhere. The types see to it that nobody does
// so by mistake.
package privacy

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/dataset"
	"parley/privacy/internal/noise"
	"parley/sitestore"
)

// Errors that a caller branches on.
var (
	// ErrRefused means that the plan's guarantee or the site's policy does not
	// allow the request.
	ErrRefused = errors.New("refused by the site's policy")
	// ErrConflict means that a release was asked for again, but by another task.
	ErrConflict = errors.New("another task has already been answered under this release's name")
)

// Ask names the task that a release answers.
type Ask struct {
	Study string   // hexadecimal digest of the plan
	Site  string   // who is asked
	Round int      // the coordinator's count, from 1
	Kind  string   // what is asked, in the method's words
	Task  [32]byte // SHA-256 of the task's bytes
}

func (a Ask) release() string { return fmt.Sprintf("%s/%s/%d", a.Study, a.Site, a.Round) }

// Study is what the gate must know of the study that it serves. It comes from
// the plan that the site's people agreed to, never from a task.
type Study struct {
	Digest   string // hexadecimal, of the plan
	Site     string // whose data the gate guards
	Method   string // name of the method
	Sites    int    // sites of the plan
	Quorum   int    // contributions without which the study ends
	Subjects int    // rows at this site, for the limits that depend on it; 0 if nobody has counted
	// Guarantee is what the plan promises in total; nil if it promises nothing.
	Guarantee *Guarantee
}

// Journal is the durable record that the gate writes: [sitestore.Store], or
// [sitestore.Memory] where a simulation may forget.
type Journal interface {
	Release(id string) (r sitestore.Release, ok bool, err error)
	// Reserve fails with sitestore.ErrMoved if the line cannot get its place.
	Reserve(sitestore.Reservation) error
	Commit(release string, sealed, state []byte) error
	State(study string) ([]byte, error)
	// Reservations returns the ledger after the first so many lines.
	Reservations(after int) ([]sitestore.Reservation, error)
}

// Gate guards one site's data in one study.
type Gate struct {
	study   Study
	policy  Policy
	journal Journal
	data    dataset.Source

	now   func() time.Time
	noise func(session string) noise.Source

	mu     sync.Mutex
	book   *book
	limits *limits // nil before the first request
}

// Option changes how a gate works.
type Option func(*Gate)

// Clock makes a gate take the time of the ledger's lines from now. Nothing but
// that text depends on it.
func Clock(now func() time.Time) Option { return func(g *Gate) { g.now = now } }

// Noise makes a gate draw the noise of each session, which has a name of its
// own, from another source than the operating system's generator. Only package
// privacytest can make one, for simulations; releases are marked.
func Noise(source func(session string) noise.Source) Option {
	return func(g *Gate) { g.noise = source }
}

func systemNoise(string) noise.Source { return noise.System() }

// NewGate returns the gate in front of data, for one study.
func NewGate(study Study, policy Policy, journal Journal, data dataset.Source, options ...Option) *Gate {
	g := &Gate{study: study, policy: policy, journal: journal, data: data, now: time.Now, noise: systemNoise, book: newBook(study.Digest)}
	if study.Guarantee != nil { // what was agreed to stays
		promised := *study.Guarantee
		g.study.Guarantee = &promised
	}
	for _, o := range options {
		o(g)
	}
	return g
}

// Stored returns the release that already answers a task, if there is one.
// ErrConflict is returned if the release answers another task.
func (g *Gate) Stored(a Ask) (Release, bool, error) {
	if a.Study != g.study.Digest || a.Site != g.study.Site {
		return Release{}, false, fmt.Errorf("a task for site %q in study %.12s reached the gate of site %q in study %.12s", a.Site, a.Study, g.study.Site, g.study.Digest)
	}
	r, ok, err := g.journal.Release(a.release())
	if err != nil || !ok {
		return Release{}, false, err
	}
	if r.Task != a.Task {
		return Release{}, false, fmt.Errorf("round %d of study %.12s: %w", a.Round, a.Study, ErrConflict)
	}
	return Release{sealed: r.Sealed}, r.Sealed != nil, nil
}
