// Package enginetest lets whole studies crash in tests: a [World] is what survives
// of a process, and counts the operations until the next one fails. Only tests
// import it.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley/dataset"
	"parley/engine"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

// ErrCrash is what every operation of a crashed process returns.
var ErrCrash = errors.New("crash")

// World is what survives a crash: the sites' stores, the checkpoint with its log, and a
// record of every release that ever left a site. It is the place of a coordinator's
// checkpoints.
type World struct {
	Stores     map[string]*sitestore.Memory
	Checkpoint []byte
	Log        []byte
	Appended   int // bytes that were ever added to the log
	// Refuses names sites whose policy refuses after so many charges.
	Refuses map[string]int

	mu   sync.Mutex
	sent map[string][]byte // by site and round
	left int               // operations until the crash; negative: none
	dead bool
}

// New returns a world of fresh sites in which nothing crashes.
func New(sites ...string) *World {
	w := &World{Stores: map[string]*sitestore.Memory{}, sent: map[string][]byte{}, left: -1}
	for _, s := range sites {
		w.Stores[s] = sitestore.NewMemory()
	}
	return w
}

// WithoutCheckpoint is the world after the coordinator has lost everything: the
// sites' stores are the same ones.
func (w *World) WithoutCheckpoint() *World {
	return &World{Stores: w.Stores, sent: w.sent, left: -1}
}

// Start begins another process, which crashes after so many operations; a negative
// number lets it live.
func (w *World) Start(operations int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.dead = operations, false
}

// fault counts one operation. Those after the one that crashes fail as well: the
// whole process is gone.
func (w *World) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = w.dead || w.left == 0
	w.left--
	if w.dead {
		return ErrCrash
	}
	return nil
}

// Load implements [engine.Checkpoints].
func (w *World) Load() (checkpoint, log []byte, err error) { return w.Checkpoint, w.Log, nil }

// Append implements [engine.Checkpoints]: it crashes before it does anything, with a
// part of the data written, or after it.
func (w *World) Append(size int64, data []byte) error {
	if err := w.fault(); err != nil {
		return err
	}
	if int64(len(w.Log)) < size {
		return fmt.Errorf("append after %d bytes of a log that has %d", size, len(w.Log))
	}
	w.Log = append(slices.Clone(w.Log[:size]), data[:len(data)/2]...)
	if err := w.fault(); err != nil {
		return err
	}
	w.Log = append(w.Log, data[len(data)/2:]...)
	w.Appended += len(data)
	return w.fault()
}

// Replace implements [engine.Checkpoints]: it crashes before or after.
func (w *World) Replace(b []byte) error {
	if err := w.fault(); err != nil {
		return err
	}
	w.Checkpoint = b
	return w.fault()
}

// journal crashes before or after an operation of a site's store.
type journal struct {
	*sitestore.Memory
	w *World
}

// Journal returns a site's store, whose operations crash.
func (w *World) Journal(site string) privacy.Journal { return journal{w.Stores[site], w} }

func (j journal) Reserve(r sitestore.Reservation) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Reserve(r); err != nil {
		return err
	}
	return j.w.fault()
}

func (j journal) Commit(id string, sealed, state []byte) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Commit(id, sealed, state); err != nil {
		return err
	}
	return j.w.fault()
}

// Link carries tasks to a site in the same process, and refuses that a release is ever
// sent in two versions.
type Link struct {
	Site *engine.Site
	w    *World
}

// Link returns the way to a site.
func (w *World) Link(s *engine.Site) Link { return Link{s, w} }

// Exchange implements [engine.Link].
func (l Link) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	if most, ok := l.w.Refuses[l.Site.Name]; ok {
		if charges, err := l.w.Stores[l.Site.Name].Reservations(0); err != nil || len(charges) >= most {
			return nil, fmt.Errorf("no more: %w", errors.Join(privacy.ErrRefused, err))
		}
	}
	r, err := l.Site.Handle(ctx, task)
	if err != nil {
		return nil, err
	}
	o, err := privacy.Open(r.Bytes())
	if err != nil {
		return nil, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	key := fmt.Sprintf("%s/%d", o.Site, o.Round)
	if old, ok := l.w.sent[key]; ok && !bytes.Equal(old, r.Bytes()) {
		return nil, fmt.Errorf("release %s was sent in two versions", key)
	}
	l.w.sent[key] = r.Bytes()
	return r.Bytes(), nil
}

// Coordinator puts a whole study of simulated sites together on what the world has
// kept. The caller may change its links before it runs it.
func (w *World) Coordinator(m method.Method, p *study.Plan, data map[string]dataset.Source) (*engine.Coordinator, error) {
	half, err := m.Coordinator(p)
	if err != nil {
		return nil, err
	}
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	c := &engine.Coordinator{Study: digest.String(), Sites: p.Sites, Quorum: p.Quorum, Method: half, Links: map[string]engine.Link{}, Checkpoints: w}
	for _, name := range p.Sites {
		half, err := m.Site(p, name)
		if err != nil {
			return nil, err
		}
		terms, err := privacy.StudyOf(p, name)
		if err != nil {
			return nil, err
		}
		gate := privacy.NewGate(terms, privacy.SimulationPolicy(), w.Journal(name), data[name])
		c.Links[name] = w.Link(&engine.Site{Name: name, Study: digest.String(), Half: half, Gate: gate, Manifest: w.Stores[name]})
	}
	return c, nil
}
