package privacy

import (
	"errors"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/privacy/internal/noise"
)

// Session is the right to answer one task, paid for in the ledger. It is used
// by one goroutine at a time.
type Session struct {
	gate    *Gate
	ask     Ask
	request Request
	state   []byte
	source  noise.Source
	used    map[string]int // how often each sum was made
	sealed  bool
}

// Data is the site's own data. It is an error to ask for it in a session that
// was granted for noised sums.
func (s *Session) Data() (dataset.Source, error) {
	if s.request.Protection != Unprotected {
		return nil, fmt.Errorf("a session with protection %q gives no rows, only the sums that were declared", s.request.Protection)
	}
	return s.gate.data, nil
}

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
		Task: s.ask.Task[:], Request: s.request, Seeded: s.request.Protection == Differential && s.source.Seeded(), Body: body,
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
