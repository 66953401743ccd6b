package wire

import (
	"bytes"
	"context"
	"sync"
)

// Memory is a wire within one process.
type Memory struct {
	mu      sync.Mutex
	values  map[string]entry
	changed map[string]chan struct{} // closed when the value changes
}

type entry struct {
	value    []byte
	revision uint64
}

// NewMemory returns a wire without values.
func NewMemory() *Memory {
	return &Memory{values: map[string]entry{}, changed: map[string]chan struct{}{}}
}

// Put implements [Wire].
func (m *Memory) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.values[key]
	if e.revision != after {
		return 0, ErrMoved
	}
	m.set(key, entry{bytes.Clone(value), after + 1})
	return after + 1, nil
}

func (m *Memory) set(key string, e entry) {
	m.values[key] = e
	if c := m.changed[key]; c != nil {
		close(c)
		delete(m.changed, key)
	}
}

// Get implements [Wire].
func (m *Memory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.values[key]
	return e.value, e.revision, nil
}

// Wait implements [Wire].
func (m *Memory) Wait(ctx context.Context, key string, seen uint64) ([]byte, uint64, error) {
	for {
		m.mu.Lock()
		e := m.values[key]
		if e.revision != seen && e.revision != 0 {
			m.mu.Unlock()
			return e.value, e.revision, nil
		}
		c := m.changed[key]
		if c == nil {
			c = make(chan struct{})
			m.changed[key] = c
		}
		m.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

// Lose forgets every value, as a broker does that has lost its disk.
func (m *Memory) Lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.values {
		m.set(key, entry{})
		delete(m.values, key)
	}
}
