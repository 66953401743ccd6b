// Package privacy is the one gate through which anything may leave a site.
//
// A [Release] can only be made here, and the engine sends nothing else. Before
// a row is read, the method declares a [Request]; [Gate.Admit] checks it
// against the site's [Policy] and commits it to the ledger. Only then is there
// a [Session], and only a session leads to the rows. [Session.Seal] commits
// the finished bytes to the outbox before they are returned. So a crash
// forfeits what was charged, and a retry sends the bytes that were stored:
// one task is never answered twice in different words.
//
// This version knows one protection, [Unprotected]: what leaves is exact. Such
// releases pass the same gate and are marked as what they are.
package privacy

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/sitestore"
)

// Errors that a caller branches on.
var (
	// ErrRefused means that the site's policy does not allow the request.
	ErrRefused = errors.New("refused by the site's policy")
	// ErrConflict means that a release was asked for again, but by another task.
	ErrConflict = errors.New("another task has already been answered under this release's name")
)

// Protection says how a release is protected.
type Protection string

// Unprotected marks exact statistics: no differential privacy.
const Unprotected Protection = "none"

// Content describes one part of what a release would hold, for the person who
// approves it.
type Content struct {
	What   string `cbor:"what" json:"what"`     // in plain words
	Values int    `cbor:"values" json:"values"` // how many numbers
}

// Request is what a method declares before it sees a row.
type Request struct {
	Protection Protection `cbor:"protection" json:"protection"`
	Contents   []Content  `cbor:"contents" json:"contents"`
}

// Policy is what a site allows. The zero Policy refuses every unprotected release.
type Policy struct {
	AllowUnprotected bool
}

func (p Policy) check(r Request) error {
	switch {
	case r.Protection != Unprotected:
		return fmt.Errorf("%w: protection %q is not known here", ErrRefused, r.Protection)
	case !p.AllowUnprotected:
		return fmt.Errorf("%w: it demands differential privacy, and the plan has none", ErrRefused)
	}
	return nil
}

// Ask names the task that a release answers.
type Ask struct {
	Study string   // hexadecimal digest of the plan
	Site  string   // who is asked
	Round int      // the coordinator's count, from 1
	Kind  string   // what is asked, in the method's words
	Task  [32]byte // SHA-256 of the task's bytes
}

func (a Ask) release() string { return fmt.Sprintf("%s/%s/%d", a.Study, a.Site, a.Round) }

// Journal is the durable record that the gate writes: [sitestore.Store], or
// [sitestore.Memory] where a simulation may forget.
type Journal interface {
	Release(id string) (r sitestore.Release, ok bool, err error)
	Reserve(sitestore.Reservation) error
	Commit(release string, sealed, state []byte) error
	State(study string) ([]byte, error)
}

// Gate guards one site's data.
type Gate struct {
	policy  Policy
	journal Journal
	data    dataset.Source
}

// NewGate returns the gate in front of data.
func NewGate(policy Policy, journal Journal, data dataset.Source) *Gate {
	return &Gate{policy: policy, journal: journal, data: data}
}

// Stored returns the release that already answers a task, if there is one.
// ErrConflict is returned if the release answers another task.
func (g *Gate) Stored(a Ask) (Release, bool, error) {
	r, ok, err := g.journal.Release(a.release())
	if err != nil || !ok {
		return Release{}, false, err
	}
	if r.Task != a.Task {
		return Release{}, false, fmt.Errorf("round %d of study %.12s: %w", a.Round, a.Study, ErrConflict)
	}
	return Release{sealed: r.Sealed}, r.Sealed != nil, nil
}

// Admit checks a request against the policy and commits its charge to the
// ledger; the charge is durable when Admit returns, and is never taken back.
// ErrRefused is returned if the policy forbids it.
func (g *Gate) Admit(a Ask, r Request) (*Session, error) {
	if err := g.policy.check(r); err != nil {
		return nil, err
	}
	request, err := wire.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	state, err := g.journal.State(a.Study)
	if err != nil {
		return nil, err
	}
	if err := g.journal.Reserve(sitestore.Reservation{Release: a.release(), Study: a.Study, Task: a.Task, Request: request}); err != nil {
		return nil, err
	}
	return &Session{gate: g, ask: a, request: r, state: state}, nil
}

// Session is the right to answer one task, paid for in the ledger.
type Session struct {
	gate    *Gate
	ask     Ask
	request Request
	state   []byte
	sealed  bool
}

// Data is the site's own data.
func (s *Session) Data() dataset.Source { return s.gate.data }

// State is what the method sealed with its last release of this study; nil
// before the first.
func (s *Session) State() []byte { return s.state }

// Seal makes body the one release of this session, and commits it together
// with the state that the method wants back in its next session. A second
// call is an error.
func (s *Session) Seal(body, state []byte) (Release, error) {
	if s.sealed {
		return Release{}, errors.New("this session has already sealed its release")
	}
	sealed, err := wire.Marshal(envelope{
		Version: envelopeVersion, Study: s.ask.Study, Site: s.ask.Site, Round: s.ask.Round, Kind: s.ask.Kind,
		Task: s.ask.Task[:], Request: s.request, Body: body,
	})
	if err != nil {
		return Release{}, fmt.Errorf("encoding the release: %w", err)
	}
	if err := s.gate.journal.Commit(s.ask.release(), sealed, state); err != nil {
		return Release{}, err
	}
	s.sealed = true
	return Release{sealed: sealed}, nil
}

// Release is a contribution that may leave the site. Only the gate makes one.
type Release struct {
	sealed []byte
}

// Bytes are what is sent; they must not be changed.
func (r Release) Bytes() []byte { return r.sealed }

// envelope is a release as it travels; its receiver reads it through [Open].
type envelope struct {
	Version int     `cbor:"version"`
	Study   string  `cbor:"study"`
	Site    string  `cbor:"site"`
	Round   int     `cbor:"round"`
	Kind    string  `cbor:"kind"`
	Task    []byte  `cbor:"task"`
	Request Request `cbor:"request"`
	Body    []byte  `cbor:"body"`
}

const envelopeVersion = 1

// Opened is a release as its receiver sees it.
type Opened struct {
	Ask
	Request Request
	Body    []byte // the method's own encoding
}

// Open decodes a release's bytes. They come from another organisation:
// anything malformed is an error, and nothing in them is believed further.
func Open(sealed []byte) (Opened, error) {
	var e envelope
	if err := wire.Unmarshal(sealed, &e); err != nil {
		return Opened{}, fmt.Errorf("decoding a release: %w", err)
	}
	if e.Version != envelopeVersion {
		return Opened{}, fmt.Errorf("decoding a release: its version is %d, this program knows %d", e.Version, envelopeVersion)
	}
	o := Opened{Ask: Ask{Study: e.Study, Site: e.Site, Round: e.Round, Kind: e.Kind}, Request: e.Request, Body: e.Body}
	if len(e.Task) != sha256.Size {
		return Opened{}, fmt.Errorf("decoding a release: its task digest has %d bytes, not %d", len(e.Task), sha256.Size)
	}
	copy(o.Task[:], e.Task)
	return o, nil
}
