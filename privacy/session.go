package privacy

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/privacy/internal/noise"
	"parley/privacy/masks"
)

// Session is the right to answer one task, paid for in the ledger. It is used
// by one goroutine at a time, and ends with Seal or Close.
type Session struct {
	gate    *Gate
	ask     Ask
	request Request
	state   []byte
	data    [32]byte // fingerprint
	key     [noise.KeySize]byte
	used    map[string]int // how often each sum was made
	made    []sentSum      // noised sums that the release holds
	totals  map[string]masks.Vector
	openers []int // who opens the total, if not the plan's openers
	ended   bool
}

var errEnded = errors.New("the session has ended")

// Data is the site's own data, until the session ends. It is an error to ask
// for it in a session that was granted for noised sums.
func (s *Session) Data() (dataset.Source, error) {
	if s.request.Protection != Unprotected {
		return nil, fmt.Errorf("a session with protection %q gives no rows, only the sums that were declared",
			s.request.Protection)
	}
	return s.source(), nil
}

// State is what the method sealed with its last release of this study; nil
// before the first.
func (s *Session) State() []byte { return s.state }

// Seal makes the one release of this session of every noised sum that it has
// made and of body, and commits it together with the state that the method
// wants back in its next session. Under [Differential] protection body must
// follow from the noised sums, the task and the plan. Sealing ends the session;
// a second call is an error.
func (s *Session) Seal(body, state []byte) (Release, error) {
	if s.ended {
		return Release{}, errEnded
	}
	sent := envelope{Request: s.request, Sums: s.made, frame: frame{
		Version: envelopeVersion, Study: s.ask.Study, Site: s.ask.Site, Round: s.ask.Round, Kind: s.ask.Kind,
		Task: s.ask.Task[:], Seeded: s.gate.seeds(s.request), Body: body,
	}}
	if s.request.Masked {
		if len(body) > 0 {
			return Release{}, errors.New("a masked release has no body")
		}
		masked, err := s.mask()
		if err != nil {
			return Release{}, fmt.Errorf("masking the release: %w", err)
		}
		sent.Sums, sent.Masked = nil, masked
	}
	sealed, err := wire.Marshal(sent)
	if err != nil {
		return Release{}, fmt.Errorf("encoding the release: %w", err)
	}
	if most := s.request.MaxBytes(); len(sealed) > most {
		return Release{}, fmt.Errorf("a release of %d bytes, and what was declared takes at most %d", len(sealed), most)
	}
	if err := s.gate.journal.Commit(s.ask.release(), sealed, state); err != nil {
		return Release{}, err
	}
	s.Close()
	return Release{sealed: sealed}, nil
}

// Close ends the session: it gives no more sums, the data that it handed out
// yield no more rows, and its key is gone from it.
func (s *Session) Close() {
	s.ended = true
	clear(s.key[:])
}

// seeds says whether a request's noise is a simulation's.
func (g *Gate) seeds(r Request) bool { return r.Protection == Differential && g.simulated != nil }

// stream is the source of one vector of random numbers. It depends on the
// release's key, on the task, on the data and on what the vector is for, so
// that a computation that is repeated repeats it, and nothing else does.
func (s *Session) stream(purpose, sum string, use int, exact [][]int64) (noise.Source, error) {
	h := sha256.New()
	var b [8]byte
	for _, block := range exact {
		binary.LittleEndian.PutUint64(b[:], uint64(len(block)))
		h.Write(b[:])
		for _, x := range block {
			binary.LittleEndian.PutUint64(b[:], uint64(x))
			h.Write(b[:])
		}
	}
	info := fmt.Sprintf("parley noise 1/%s/%d/%q/%x/%x/%x", purpose, use, sum, s.ask.Task, s.data, h.Sum(nil))
	key, err := hkdf.Key(sha256.New, s.key[:], nil, info, noise.KeySize)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of a stream of noise: %w", err)
	}
	return noise.Keyed([noise.KeySize]byte(key)), nil
}

// source is the site's data for as long as the session lasts.
func (s *Session) source() dataset.Source { return sessionData{s.gate.data, s} }

type sessionData struct {
	dataset.Source
	s *Session
}

func (d sessionData) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		if d.s.ended {
			yield(nil, errEnded)
			return
		}
		for row, err := range d.Source.Rows(ctx) {
			if d.s.ended {
				yield(nil, errEnded)
				return
			}
			if err != nil {
				err = &ReadError{err}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// use takes one of the uses of a sum that were paid for.
func (s *Session) use(name string, unit Unit) (sum Sum, use int, err error) {
	i := slices.IndexFunc(s.request.Sums, func(x Sum) bool { return x.Name == name })
	switch {
	case i < 0:
		return Sum{}, 0, fmt.Errorf("the request declared no sum %q", name)
	case s.request.Sums[i].Unit != unit:
		return Sum{}, 0, fmt.Errorf("sum %q was declared for unit %q, not %q", name, s.request.Sums[i].Unit, unit)
	case s.ended:
		return Sum{}, 0, fmt.Errorf("sum %q: %w", name, errEnded)
	case s.used[name] >= s.request.Sums[i].Mechanism.Count:
		return Sum{}, 0, fmt.Errorf("sum %q was declared %d times, and has been made as often", name, s.used[name])
	}
	s.used[name]++
	return s.request.Sums[i], s.used[name], nil
}
