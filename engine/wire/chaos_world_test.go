package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"parley/engine/wire"
	"parley/sitestore"
)

// errKilled is what every operation of a process returns that was killed.
var errKilled = errors.New("killed")

// process is one that may be killed at any operation of its disk.
type process struct {
	*chaos
	mu     sync.Mutex
	cancel context.CancelCauseFunc
	dead   bool
}

func (p *process) start(ctx context.Context) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = false
	ctx, p.cancel = context.WithCancelCause(ctx)
	return ctx
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	if p.cancel != nil {
		p.cancel(errKilled)
	}
}

// fault is called before and after each operation: the process may die there.
func (p *process) fault(chance float64) error {
	if p.happens(chance) {
		p.kill()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	return nil
}

// chaos is everything that goes wrong in one history.
type chaos struct {
	mu    sync.Mutex
	rng   *rand.Rand
	quiet bool
	trace *trace
}

func (c *chaos) happens(chance float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.quiet && c.rng.Float64() < chance
}

func (c *chaos) upTo(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chaos) sleep(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(c.upTo(int(most)))):
	case <-ctx.Done():
	}
}

// trace is every release that was ever stored, by its name.
type trace struct {
	mu     sync.Mutex
	stored map[string][]byte
	wrong  error
}

func (t *trace) store(site, release string, sealed []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.stored[release]; ok && !bytes.Equal(old, sealed) {
		t.wrong = errors.Join(t.wrong, fmt.Errorf("release %s exists in two versions", release))
	}
	t.stored[release] = sealed
}

// forget lets a site make again what a person has decided to do without.
func (t *trace) forget(site string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.stored {
		if i := bytes.Index([]byte(name), []byte("/"+site+"/")); i >= 0 {
			delete(t.stored, name)
		}
	}
}

// disk is a site's store on a disk that is full at times, in a process that may
// be killed before and after each operation.
type disk struct {
	*sitestore.Store
	p    *process
	site string
}

const deadly = 0.02

func (d disk) Free(n int64) error {
	if d.p.happens(0.1) {
		return sitestore.ErrFull
	}
	return d.Store.Free(n)
}

func (d disk) Reserve(r sitestore.Reservation, key [32]byte) error {
	return d.do(func() error { return d.Store.Reserve(r, key) })
}

func (d disk) Commit(release string, sealed, state []byte) error {
	if d.p.happens(0.05) {
		return sitestore.ErrFull
	}
	return d.do(func() error {
		err := d.Store.Commit(release, sealed, state)
		if err == nil {
			d.p.trace.store(d.site, release, sealed)
		}
		return err
	})
}

func (d disk) Append(study string, first int, records [][]byte) error {
	return d.do(func() error { return d.Store.Append(study, first, records) })
}

func (d disk) do(operation func() error) error {
	if err := d.p.fault(deadly); err != nil {
		return err
	}
	if err := operation(); err != nil {
		return err
	}
	return d.p.fault(deadly)
}

// checkpoints is the coordinator's disk.
type checkpoints struct {
	p               *process
	checkpoint, log []byte
}

func (c *checkpoints) Load() (checkpoint, log []byte, err error) { return c.checkpoint, c.log, nil }

func (c *checkpoints) Append(size int64, data []byte) error {
	if err := c.p.fault(deadly); err != nil {
		return err
	}
	c.log = append(slices.Clone(c.log[:size]), data[:len(data)/2]...)
	if err := c.p.fault(deadly); err != nil {
		return err
	}
	c.log = append(c.log, data[len(data)/2:]...)
	return c.p.fault(deadly)
}

func (c *checkpoints) Replace(data []byte) error {
	if err := c.p.fault(deadly); err != nil {
		return err
	}
	c.checkpoint = data
	return c.p.fault(deadly)
}

// weather is a wire that is slow, loses, repeats, and brings back old values.
type weather struct {
	*wire.Memory
	*chaos
	mu  sync.Mutex
	old map[string][][]byte
}

var errWeather = errors.New("connection reset by peer")

func (w *weather) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	if w.happens(0.3) {
		w.sleep(ctx, 20*time.Second)
	}
	if w.happens(0.05) {
		return 0, errWeather
	}
	revision, err := w.Memory.Put(ctx, key, value, after)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	w.old[key] = append(w.old[key], value)
	again := w.old[key][w.upTo(len(w.old[key]))]
	w.mu.Unlock()
	if w.happens(0.05) { // an earlier value comes once more, late
		if _, err := w.Memory.Put(ctx, key, again, revision); err != nil && !errors.Is(err, wire.ErrMoved) {
			return 0, err
		}
	}
	if w.happens(0.01) {
		w.Lose()
	}
	if w.happens(0.05) { // it was put, and the writer does not hear of it
		return 0, errWeather
	}
	return revision, nil
}

func (w *weather) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if w.happens(0.03) {
		return nil, 0, errWeather
	}
	return w.Memory.Get(ctx, key)
}

func (w *weather) Wait(ctx context.Context, key string, seen uint64) ([]byte, uint64, error) {
	if w.happens(0.03) {
		return nil, 0, errWeather
	}
	return w.Memory.Wait(ctx, key, seen)
}
