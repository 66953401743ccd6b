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
	wakes  uint64 // reasons to look, counted
	hint   uint64 // the newest revision that a wake told of; it may lie
	looked uint64 // wakes when it was last looked at; that look found
	seen   uint64 // this revision,
	size   int    // of so many bytes,
	at     time.Time
	// waiting has a channel with room for one for each that waits
	waiting map[chan struct{}]struct{}
}

// signal is called with the lock of the connection held.
func (w *watch) signal(revision uint64) {
	w.wakes++
	w.hint = max(w.hint, revision)
	for c := range w.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// woken takes a wake from the broker.
func (c *Conn) woken(m *nats.Msg) {
	var revision uint64
	if len(m.Data) == 8 {
		revision = binary.BigEndian.Uint64(m.Data)
	}
	c.wake(m.Subject, revision)
}

func (c *Conn) wake(subject string, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[subject]
	if w == nil || revision != 0 && revision == w.seen {
		return // nobody waits, or it has been read already
	}
	w.signal(revision)
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
		if good && c.missed(w, wakes, revision) {
			c.renew()
		}
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

// due says after how long a look is worth its bytes for somebody who has seen a
// revision; at most 0 for now. Long values are looked at less often without a wake, and
// those of many sites no more often than looksEvery for all together.
func (c *Conn) due(w *watch, seen uint64) (wakes uint64, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.wakes != w.looked || w.seen != 0 && w.seen != seen {
		return w.wakes, 0
	}
	return w.wakes, time.Until(w.at.Add(max(c.again, time.Duration(len(c.watched))*looksEvery) +
		min(5*time.Minute, time.Duration(w.size)*time.Second/256)))
}

// lookedAt records what a look found, and says whether it is the newest that was
// told of.
func (c *Conn) lookedAt(w *watch, wakes, revision uint64, size int, good bool) (newest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !good {
		return false
	}
	w.seen, w.size, w.at = revision, size, time.Now()
	if revision < w.hint {
		return false
	}
	w.looked = wakes
	return true
}

// missed says whether a look found what no wake had told of, although it had been
// looked for before.
func (c *Conn) missed(w *watch, wakes, revision uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.looked == wakes && w.wakes == wakes && revision > w.seen
}

// renewEvery is how often a connection is renewed at most, because a wake was missed.
const renewEvery = time.Minute

// renew makes a new connection. A server has been seen to pass no more wakes on to one
// that was made while it took in a revocation, for as long as that connection lasted.
func (c *Conn) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nc == nil || time.Since(c.renewed) < renewEvery {
		return
	}
	c.renewed = time.Now()
	go c.nc.Close()
}

// forget stops believing a wake.
func (c *Conn) forget(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.hint, w.looked = 0, w.wakes
}
