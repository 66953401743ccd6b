package sitestore

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory keeps the same promises as [Store] except durability. It serves
// simulations that are thrown away when they end: cross-validation, benchmarks.
type Memory struct {
	mu        sync.Mutex
	ledger    []Reservation
	study     map[string]string // of each reserved release
	releases  map[string]Release
	state     map[string][]byte
	history   map[string]*history
	terms     map[string][]byte
	decisions map[string][]string
	site      string
}

type history struct {
	records [][]byte
	head    [32]byte
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		study:     map[string]string{},
		releases:  map[string]Release{},
		state:     map[string][]byte{},
		history:   map[string]*history{},
		terms:     map[string][]byte{},
		decisions: map[string][]string{},
	}
}

// Bind is like [Store.Bind].
func (m *Memory) Bind(site string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.site != "" && m.site != site {
		return fmt.Errorf("binding the store to its site: %w: it is that of %q, not of %q", ErrOtherSite, m.site, site)
	}
	m.site = site
	return nil
}

// Free always has some.
func (m *Memory) Free(int64) error { return nil }

// Release is like [Store.Release].
func (m *Memory) Release(id string) (Release, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.releases[id]
	r.Key = bytes.Clone(r.Key) // ours is wiped when the release is stored
	return r, ok, nil
}

// Reserve is like [Store.Reserve].
func (m *Memory) Reserve(r Reservation, key [32]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := len(m.ledger) + 1
	if r.Seq != 0 && r.Seq != next {
		return fmt.Errorf("reserving %s: %w", r.Release, ErrMoved)
	}
	if _, ok := m.releases[r.Release]; ok {
		return fmt.Errorf("reserving %s: %w", r.Release, errReserved)
	}
	m.releases[r.Release] = Release{Task: r.Task, Key: bytes.Clone(key[:])}
	r.Seq, r.Request = next, bytes.Clone(r.Request)
	var previous []byte
	if next > 1 {
		previous = m.ledger[next-2].Hash[:]
	}
	copy(r.Hash[:], r.chain(previous))
	m.ledger = append(m.ledger, r)
	m.study[r.Release] = r.Study
	return nil
}

// Reservations is like [Store.Reservations].
func (m *Memory) Reservations(after int) ([]Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ledger[min(max(after, 0), len(m.ledger)):]), nil
}

// Last is like [Store.Last].
func (m *Memory) Last() (lines int, hash [32]byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lines = len(m.ledger); lines > 0 {
		hash = m.ledger[lines-1].Hash
	}
	return lines, hash, nil
}

// Commit is like [Store.Commit].
func (m *Memory) Commit(release string, sealed, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.releases[release]
	switch {
	case !ok:
		return fmt.Errorf("storing %s: %w", release, errNotReserved)
	case r.Sealed != nil && bytes.Equal(r.Sealed, sealed):
		return nil
	case r.Sealed != nil:
		return fmt.Errorf("storing %s: %w", release, ErrCommitted)
	}
	clear(r.Key)
	r.Sealed, r.Key = sealed, nil
	m.releases[release] = r
	m.state[m.study[release]] = state
	return nil
}

// State is like [Store.State].
func (m *Memory) State(study string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state[study], nil
}

// Head is like [Store.Head].
func (m *Memory) Head(study string) (int, [32]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.kept(study)
	return len(h.records), h.head, nil
}

func (m *Memory) kept(study string) history {
	if h := m.history[study]; h != nil {
		return *h
	}
	return history{}
}

// Records is like [Store.Records].
func (m *Memory) Records(study string, from int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.kept(study).records
	return slices.Clone(records[min(max(from, 0), len(records)):]), nil
}

// Append is like [Store.Append].
func (m *Memory) Append(study string, first int, records [][]byte) error {
	if len(records) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.kept(study)
	if first < 0 || first > len(h.records) {
		return fmt.Errorf("keeping the history: %w: records %d to %d are missing", ErrForked, len(h.records), first-1)
	}
	for i, r := range records {
		if seq := first + i; seq == len(h.records) {
			h.records, h.head = append(h.records, r), Next(h.head, r)
		} else if !bytes.Equal(h.records[seq], r) {
			return fmt.Errorf("keeping the history: %w: record %d differs", ErrForked, seq)
		}
	}
	m.history[study] = &h
	return nil
}

// Agree is like [Store.Agree].
func (m *Memory) Agree(study string, terms []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.terms[study] == nil && terms != nil {
		m.terms[study] = bytes.Clone(terms)
	}
	return m.terms[study], nil
}

// Decide is like [Store.Decide].
func (m *Memory) Decide(_ time.Time, study, decision string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decisions[study] = append(m.decisions[study], decision)
	return nil
}

// Decisions is like [Store.Decisions].
func (m *Memory) Decisions(study string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.decisions[study]), nil
}

// Close does nothing.
func (m *Memory) Close() error { return nil }
