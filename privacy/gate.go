// Package privacy is the one gate through which anything may leave a site.
//
// A [Release] can only be made here, and the engine sends nothing else. What a
// study may ask a site for is listed from its plan ([Listed]); the gate grants
// what is listed, as often as it is listed, in rounds that rise.
// [Gate.Admit] checks a request against the plan's [Guarantee] and the site's
// [policy.Policy], with everything that the ledger holds, and commits its charge to
// the ledger together with a key for its noise. Only then is there a [Session].
// One for a differential request takes each subject's vector, clips, quantises
// and sums, adds noise, and hands the noised sums back, which nobody can
// change. [Session.Seal] writes them into the release and commits the finished
// bytes to the outbox, which wipes the key. So a task that is computed again
// after a crash finds its charge and its key and gives the same bytes: nothing
// is charged twice, nothing is forfeited, and one task is never answered in
// different words.
//
// What has been charged, people read through package privacy/ledger, which charges
// nothing.
//
// Requests without protection pass the same gate, and their releases are marked
// as what they are.
//
// What this package trusts is the method's code at the site: a function that is
// handed a row could write it elsewhere. The types see to it that nobody does
// so by mistake.
package privacy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/dataset"
	"parley/privacy/internal/noise"
	"parley/privacy/masks"
	"parley/privacy/policy"
	"parley/sitestore"
)

// Errors that a caller branches on.
var (
	// ErrRefused means that the plan's list, its guarantee or the site's policy
	// does not allow the request.
	ErrRefused = errors.New("refused by the site's policy")
	// ErrConflict means that a release was asked for again, but by another task.
	ErrConflict = errors.New("another task has already been answered under this release's name")
)

// Ask names the task that a release answers.
type Ask struct {
	Study  string   // hexadecimal digest of the plan
	Site   string   // who is asked
	Round  int      // the coordinator's count, from 1
	Kind   string   // what is asked, in the method's words
	Task   [32]byte // identity of the task
	Common [32]byte // digest of the task without the site's name, which all sites of a round share
	// Of the task of an opener, as [Gate.Vet] fills them in: the round of the sum, and whose masks are taken
	// away, as places among the plan's sites.
	Opens int
	Set   string
}

func (a Ask) release() string { return fmt.Sprintf("%s/%s/%d", a.Study, a.Site, a.Round) }

// Listed is something that a study may ask a site for, and how often.
type Listed struct {
	Kind    string // of the task; one of a kind in a list
	Times   int    // at most, over the whole study
	Request Request
	// Again says that it repeats another task, because an opener of its total has left. Of all that repeat one, a study
	// asks for one, of which the first in its list costs most.
	Again bool
}

// Requests returns every request of a list as often as it is listed, and of those that repeat one the costliest.
func Requests(list []Listed) []Request {
	var all []Request
	again := false
	for _, l := range list {
		if l.Again && again {
			continue
		}
		again = again || l.Again
		for range l.Times {
			all = append(all, l.Request)
		}
	}
	return all
}

// Study is what the gate must know of the study that it serves. It comes from
// the plan that the site's people agreed to, never from a task.
type Study struct {
	Digest string // hexadecimal, of the plan
	Site   string // whose data the gate guards
	Method string // name of the method
	Sites  int    // sites of the plan
	Quorum int    // contributions without which the study ends
	Person string // column of the data whose rows with the same cell are one person; "" if every row is another
	// at this site, for the limits that depend on it; 0 if it is not known. Others may learn it from what is refused
	Subjects int
	Requests []Listed // all that the gate grants
	Rounds   int      // what the plan comes to if each has one task of one site; 0 if nobody has counted
	// Data returns the fingerprint of the data when the first task is charged: other data
	// never meet the same noise. Nil where the data cannot be others.
	Data func() ([32]byte, error)
	// Guarantee is what the plan promises in total; nil if it promises nothing.
	Guarantee *Guarantee
	// Party holds the site's own keys and what all sites know of each other, for a plan with a
	// secure sum; nil for any other.
	Party *masks.Party
	// Collusion is how many sites may work together with the coordinator in a plan with a secure sum and
	// noise; −1 in any other.
	Collusion int
}

// Noised says whether everything that the study may release has differential protection.
// Then nothing else that a site tells may depend on its rows.
func (s Study) Noised() bool {
	return !slices.ContainsFunc(s.Requests, func(l Listed) bool { return l.Request.Protection != Differential })
}

// Journal is the durable record that the gate writes: [sitestore.Store], or
// [sitestore.Memory] where a simulation may forget.
type Journal interface {
	Release(id string) (r sitestore.Release, ok bool, err error)
	// Free fails if there is no room for so many bytes.
	Free(bytes int64) error
	// Reserve fails with sitestore.ErrMoved if the line cannot get its place, and
	// with sitestore.ErrReserved if the release has been charged.
	Reserve(r sitestore.Reservation, key [32]byte) error
	Commit(release string, sealed, state []byte) error
	State(study string) ([]byte, error)
	// Reservations returns the ledger after the first so many lines.
	Reservations(after int) ([]sitestore.Reservation, error)
}

// Gate guards one site's data in one study.
type Gate struct {
	study   Study
	policy  policy.Policy
	journal Journal
	data    dataset.Source

	now       func() time.Time
	simulated *noise.Simulation // nil where noise protects people

	mu     sync.Mutex
	book   *book
	limits *limits  // nil before the first request
	live   *Session // the last one that was granted
	last   map[string]int
}

// Option changes how a gate works.
type Option func(*Gate)

// Clock makes a gate take the time of the ledger's lines from now. Nothing but
// that text depends on it.
func Clock(now func() time.Time) Option { return func(g *Gate) { g.now = now } }

// Simulate makes a gate take its noise from elsewhere than the operating
// system's generator. Only package privacytest can make a simulation; releases
// and charges are marked.
func Simulate(s noise.Simulation) Option { return func(g *Gate) { g.simulated = &s } }

// NewGate returns the gate in front of data, for one study.
func NewGate(study Study, rules policy.Policy, journal Journal, data dataset.Source, options ...Option) *Gate {
	g := &Gate{study: study, policy: rules, journal: journal, data: data, now: time.Now, book: newBook(study.Digest)}
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
	r, err := g.find(a)
	return Release{sealed: r.Sealed}, r.Sealed != nil, err
}

// Digest returns SHA-256 of the release that is stored for a round; ok is false
// if there is none.
func (g *Gate) Digest(round int) (digest [32]byte, ok bool, err error) {
	a := Ask{Study: g.study.Digest, Site: g.study.Site, Round: round}
	r, _, err := g.journal.Release(a.release())
	return sha256.Sum256(r.Sealed), r.Sealed != nil, err
}

// Protection is that of a kind of task; empty if the plan lists none of the kind.
func (g *Gate) Protection(kind string) Protection {
	for _, l := range g.study.Requests {
		if l.Kind == kind {
			return l.Request.Protection
		}
	}
	return ""
}

// find returns what is kept for a task.
func (g *Gate) find(a Ask) (r sitestore.Release, err error) {
	if a.Study != g.study.Digest || a.Site != g.study.Site {
		return r, fmt.Errorf("a task for site %q in study %.12s reached the gate of site %q in study %.12s", a.Site,
			a.Study, g.study.Site, g.study.Digest)
	}
	r, charged, err := g.journal.Release(a.release())
	if err != nil || !charged {
		return sitestore.Release{}, err
	}
	if r.Task != a.Task {
		return sitestore.Release{}, fmt.Errorf("round %d of study %.12s: %w", a.Round, a.Study, ErrConflict)
	}
	return r, nil
}
