package sitestore

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// Memory keeps the same promises as [Store] except durability. It serves
// simulations that are thrown away when they end: cross-validation, benchmarks.
type Memory struct {
	mu       sync.Mutex
	ledger   []Reservation
	study    map[string]string // of each reserved release
	releases map[string]Release
	state    map[string][]byte
	manifest map[string][][]byte
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		study:    map[string]string{},
		releases: map[string]Release{},
		state:    map[string][]byte{},
		manifest: map[string][][]byte{},
	}
}

// Release is like [Store.Release].
func (m *Memory) Release(id string) (Release, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.releases[id]
	return r, ok, nil
}

// Reserve is like [Store.Reserve].
func (m *Memory) Reserve(r Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := len(m.ledger) + 1
	if r.Seq != 0 && r.Seq != next {
		return fmt.Errorf("reserving %s: %w", r.Release, ErrMoved)
	}
	if _, ok := m.releases[r.Release]; !ok {
		m.releases[r.Release] = Release{Task: r.Task}
	}
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

// Commit is like [Store.Commit].
func (m *Memory) Commit(release string, sealed, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.releases[release]
	if !ok {
		return fmt.Errorf("storing %s: %w", release, ErrNotReserved)
	}
	if r.Sealed != nil {
		return fmt.Errorf("storing %s: %w", release, ErrCommitted)
	}
	r.Sealed = sealed
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

// Entry is like [Store.Entry].
func (m *Memory) Entry(study string, seq int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept := m.manifest[study]; seq >= 0 && seq < len(kept) {
		return kept[seq], nil
	}
	return nil, nil
}

// Append is like [Store.Append].
func (m *Memory) Append(study string, first int, entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.manifest[study]
	if first > len(kept) {
		return fmt.Errorf("keeping the manifest: %w: entries %d to %d are missing", ErrForked, len(kept), first-1)
	}
	for i, e := range entries {
		if seq := first + i; seq == len(kept) {
			kept = append(kept, e)
		} else if !bytes.Equal(kept[seq], e) {
			return fmt.Errorf("keeping the manifest: %w: entry %d differs", ErrForked, seq)
		}
	}
	m.manifest[study] = kept
	return nil
}

// Close does nothing.
func (m *Memory) Close() error { return nil }
