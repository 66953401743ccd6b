package privacy

import (
	"context"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
)

// Session is the right to answer one task, paid for in the ledger. It is used
// by one goroutine at a time.
type Session struct {
	gate    *Gate
	ask     Ask
	request Request
	state   []byte
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

// Sum makes one noised sum over the site's subjects, as the request declared
// it under name.
//
// The contribution of a row is what it writes to v, which is zero and as long
// as the longest block, and the block that it returns; −1 contributes nothing.
// A contribution with NaN or ±Inf in v, or with a block that there is not,
// counts as nothing, and nobody is told. Of v only the block's length is used.
// v is clipped to the declared bound, so a row weighs no more than it may. The
// row and v must not be kept.
//
// Errors do not depend on what rows hold: the name was not declared, was used
// as often as declared, the data could not be read, or ctx has ended.
func (s *Session) Sum(ctx context.Context, name string, contribution func(row *dataset.Row, v []float64) (block int)) (*Noised, error) {
	return nil, errors.New("noised sums are not there yet")
}

// Whole makes one noised vector of everything that the site holds, as the
// request declared it under name, with unit [WholeSite] and one block.
//
// The function computes it into v, which is zero and as long as the block. If
// it fails, or leaves NaN or ±Inf in v, then noise alone is released: that a
// site's rows do not allow a computation is a fact about them. Errors are as
// for [Session.Sum].
func (s *Session) Whole(ctx context.Context, name string, compute func(data dataset.Source, v []float64) error) (*Noised, error) {
	return nil, errors.New("noised sums are not there yet")
}

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
