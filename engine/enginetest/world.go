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
	"parley/engine/host"
	"parley/engine/local"
	"parley/internal/wire"
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
	sent map[string][]byte // by site and task
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

// store crashes before or after an operation of a site's store.
type store struct {
	*sitestore.Memory
	w *World
}

// Store returns a site's store, whose operations crash.
func (w *World) Store(site string) host.Store { return store{w.Stores[site], w} }

func (j store) Reserve(r sitestore.Reservation, key [32]byte) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Reserve(r, key); err != nil {
		return err
	}
	return j.w.fault()
}

func (j store) Commit(id string, sealed, state []byte) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Commit(id, sealed, state); err != nil {
		return err
	}
	return j.w.fault()
}

func (j store) Append(study string, first int, records [][]byte) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Append(study, first, records); err != nil {
		return err
	}
	return j.w.fault()
}

// Link carries tasks to a site in the same process, and refuses that a release is ever
// sent in two versions.
type Link struct {
	*local.Link
	w *World
}

// Link returns the way to a site.
func (w *World) Link(s *engine.Site) Link { return Link{&local.Link{Site: s}, w} }

// Exchange implements [engine.Link].
func (l Link) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	if most, ok := l.w.Refuses[l.Site.Name]; ok {
		if charges, err := l.w.Stores[l.Site.Name].Reservations(0); err != nil || len(charges) >= most {
			return engine.Reply{}, &engine.Refusal{Public: "no more",
				Err: fmt.Errorf("no more: %w", errors.Join(privacy.ErrRefused, err))}
		}
	}
	r, err := l.Link.Exchange(ctx, task, past)
	if err != nil {
		return r, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	key := fmt.Sprintf("%s/%x", l.Site.Name, engine.TaskID(task))
	if old, ok := l.w.sent[key]; ok && !bytes.Equal(old, r.Release) {
		return engine.Reply{}, fmt.Errorf("the release to task %s was sent in two versions", key)
	}
	l.w.sent[key] = r.Release
	return r, nil
}

// Coordinator puts a whole study of simulated sites together on what the world has
// kept. The caller may change its links before it runs it.
func (w *World) Coordinator(m method.Method, p *study.Plan,
	data map[string]dataset.Source) (*engine.Coordinator, error) {
	half, err := m.Coordinator(p)
	if err != nil {
		return nil, err
	}
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	c := &engine.Coordinator{
		Study: digest.String(), Revision: m.Revision(), Sites: p.Sites, Quorum: p.Quorum, Method: half,
		Simulation: true,
		Requests:   map[string][]privacy.Listed{}, Links: map[string]engine.Link{}, Checkpoints: w,
	}
	for _, name := range p.Sites {
		if c.Requests[name], err = m.Requests(p, name); err != nil {
			return nil, err
		}
		h := host.Host{Site: name, Methods: method.Registry{m}, Data: data[name], Store: w.Store(name),
			Policy: privacy.SimulationPolicy()}
		site, err := h.Open(context.Background(), p)
		if err != nil {
			return nil, err
		}
		c.Links[name] = w.Link(site)
	}
	return c, nil
}

// Task makes a task as a coordinator would whose history has this head.
func Task(study, site string, revision, round int, kind string, body []byte, head [32]byte) ([]byte, error) {
	return wire.Marshal(struct {
		Version  int    `cbor:"version"`
		Study    string `cbor:"study"`
		Revision int    `cbor:"revision"`
		Site     string `cbor:"site"`
		Round    int    `cbor:"round"`
		Kind     string `cbor:"kind"`
		Body     []byte `cbor:"body"`
		Head     []byte `cbor:"head"`
	}{2, study, revision, site, round, kind, body, head[:]})
}
