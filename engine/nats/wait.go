package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// watch is what is known of a value that somebody here waits for, or did.
type watch struct {
	wakes  uint64 // reasons to look that tell of no revision, counted
	hint   uint64 // the newest revision that a wake told of; it may lie
	looked uint64 // wakes when it was last looked at; that look found
	seen   uint64 // this revision,
	size   int    // of so many bytes,
	at     time.Time
	idle   int // times that a look has found nothing new, least or more, up to seldomer
	least  int
	came   []byte // the value itself, if a wake has brought it since, of this revision
	of     uint64
	// waiting has a channel with room for one for each that waits
	waiting map[chan struct{}]struct{}
}

// signal is called with the lock of the connection held.
func (w *watch) signal(revision uint64) {
	if w.hint = max(w.hint, revision); revision == 0 {
		w.wakes++
	}
	for c := range w.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// woken takes a wake from the broker. A reply that another end has sent astray has headers of the broker's storage,
// or no revision that could be one: it is worth a look, and no more.
func (c *Conn) woken(m *nats.Msg) {
	revision, value := uint64(0), []byte(nil)
	if len(m.Data) >= 8 && m.Data[0] == 0 && len(m.Header) == min(1, len(m.Header[accountHeader])) {
		revision, value = binary.BigEndian.Uint64(m.Data), m.Data[8:]
		c.mu.Lock()
		c.heard = time.Now()
		c.mu.Unlock()
	}
	c.wake(m.Subject, revision, value)
}

// accountHeader is what the server within this program gives to what passes from one account to the other.
const accountHeader = "Nats-Request-Info"

func (c *Conn) wake(subject string, revision uint64, value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[subject]
	if w == nil || revision != 0 && revision == w.seen {
		return // nobody waits, or it has been read already
	}
	if revision < w.seen { // late, or the broker has come back older
		revision = 0
	}
	if revision == 0 || len(value) > 0 && revision > max(w.seen, w.of) {
		w.came, w.of = value, revision
	}
	w.signal(revision)
}

// brought is the value that a wake has brought, if it is later than the one seen; whoever opens it sees who sealed it.
func (c *Conn) brought(p place, w *watch, seen uint64) (value []byte, revision uint64, ok bool) {
	most := c.mostOf(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	value, revision = w.came, w.of
	w.came, w.of = nil, 0
	if ok = revision > max(seen, w.seen) && revision >= w.hint && len(value) <= most; ok {
		w.seen, w.size, w.at, w.idle = revision, len(value), time.Now(), w.least
	}
	return value, revision, ok
}

// Wait implements [wire.Wire]. Without a connection it goes on waiting; it fails
// if ctx ends, the connection is closed, or the value may not be read.
func (c *Conn) Wait(ctx context.Context, key string, seen uint64) ([]byte, uint64, error) {
	p, err := locate(key)
	if err != nil {
		return nil, 0, err
	}
	signal := make(chan struct{}, 1)
	w := c.watch(p, signal)
	defer c.unwatch(w, signal)
	for tries := 0; ; {
		_, err := c.connection(ctx) // first: its beginning wakes everybody
		if cause := context.Cause(ctx); cause != nil {
			return nil, 0, cause
		}
		if errors.Is(err, errClosed) {
			return nil, 0, err
		}
		if value, revision, ok := c.brought(p, w, seen); ok {
			return value, revision, nil
		}
		wakes, next := c.due(w, seen)
		if next > 0 {
			if err := c.idle(ctx, signal, next); err != nil {
				return nil, 0, err
			}
			continue
		}
		value, revision, whole, err := c.read(ctx, p)
		if err := context.Cause(ctx); err != nil {
			return nil, 0, err
		}
		if errors.Is(err, errRefused) || errors.Is(err, errClosed) {
			return nil, 0, err
		}
		good := err == nil && whole
		newest := c.lookedAt(w, wakes, revision, len(value), good)
		switch {
		case good && revision > seen:
			return value, revision, nil
		case good && newest && (revision == 0 || revision == seen):
			tries = 0
			continue
		case good && tries >= stale: // that was no server that is behind: the broker has lost values, or a wake lied
			if revision != 0 && revision != seen {
				return value, revision, nil
			}
			c.forget(w)
			tries = 0
			continue
		}
		// No connection, parts of another put, or a server of a cluster that does not
		// have the newest yet.
		tries++
		hurry := signal
		if err == nil {
			hurry = nil // signals cannot make this end read without pause
		}
		if err := c.idle(ctx, hurry, min(shortly<<min(tries, 10), pauseMost)); err != nil {
			return nil, 0, err
		}
	}
}

const (
	shortly    = 25 * time.Millisecond
	looksEvery = 50 * time.Millisecond
	seldomer   = 2 // times that the time between two looks is doubled
	pauseMost  = 5 * time.Second
	stale      = 5 // looks after which an older revision than the one seen is believed
)

// idle waits until it is time, or there is a signal.
func (c *Conn) idle(ctx context.Context, signal chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-signal:
	case <-c.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (c *Conn) watch(p place, signal chan struct{}) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[p.wake()]
	if w == nil {
		w = &watch{wakes: 1, waiting: map[chan struct{}]struct{}{}}
		if p.bucket == control { // a lost wake holds no study up
			w.idle, w.least = seldomer, seldomer
		}
		c.watched[p.wake()] = w
	}
	w.waiting[signal] = struct{}{}
	return w
}

func (c *Conn) unwatch(w *watch, signal chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(w.waiting, signal)
}

// due says after how long a look is worth its bytes for somebody who has seen a revision; at most 0 for now. Long
// values are looked at less often, as are those where nothing new was found, and those of many sites no more often
// than looksEvery for all together. A site that was just woken by one value hears of others, too.
func (c *Conn) due(w *watch, seen uint64) (wakes uint64, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.wakes != w.looked || w.hint > w.seen || w.seen != 0 && w.seen != seen {
		return w.wakes, 0
	}
	last := w.at
	if c.o.Name != coordinator && c.heard.After(last) {
		last = c.heard
	}
	return w.wakes, time.Until(last.Add(max(c.again, time.Duration(len(c.watched))*looksEvery)<<w.idle +
		min(5*time.Minute, time.Duration(w.size)*time.Second/64)))
}

// lookedAt records what a look found, and says whether it is the newest that was
// told of.
func (c *Conn) lookedAt(w *watch, wakes, revision uint64, size int, good bool) (newest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !good {
		return false
	}
	if w.idle = min(w.idle+1, seldomer); revision != w.seen {
		w.idle = w.least
	}
	w.seen, w.size, w.at = revision, size, time.Now()
	if revision < w.hint {
		return false
	}
	w.looked = wakes
	return true
}

// forget stops believing a wake.
func (c *Conn) forget(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.hint, w.looked = 0, w.wakes
}
