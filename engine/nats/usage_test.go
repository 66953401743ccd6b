package nats

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// Strangers, guests and a site that wants all places leave half of them: whoever is connected stays so, and another
// known site connects and answers as ever. What a key has beyond others is closed before the only one of a site.
func TestPlacesAreKeptForKnownSites(t *testing.T) {
	t.Parallel()
	const places, sites = 512, 20
	w := newWorld(t)
	w.server.places = places
	testkit.Do(t, w.server.Restart())
	c := w.connect(w.coordinatorOptions())
	var known []*Conn
	for i := range sites {
		o := w.siteOptions("s" + string(rune('a'+i)))
		o.Log = nil
		known = append(known, w.connect(o))
	}
	eventually(t, "all are connected", func() bool {
		for _, s := range known {
			if !s.Connected() {
				return false
			}
		}
		return true
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	again := func(open func() (closed <-chan struct{})) { // opens a connection whenever the last is closed
		go func() {
			for ctx.Err() == nil {
				select {
				case <-open():
				case <-ctx.Done():
				}
				wire.Pause(ctx, 4*everyLook)
			}
		}()
	}
	client := func(o Options) func() <-chan struct{} {
		key := testkit.Get(nkeys.FromSeed(o.Seed))(t)
		return func() <-chan struct{} {
			closed := make(chan struct{})
			conn, err := nats.Connect("nats://"+w.server.Addr(), nats.NoReconnect(),
				nats.TLSHandshakeFirst(), nats.Secure(&tls.Config{RootCAs: w.roots}),
				nats.UserJWT(func() (string, error) { return o.JWT, nil }, key.Sign),
				nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
			if err != nil {
				close(closed)
				return closed
			}
			context.AfterFunc(ctx, conn.Close)
			return closed
		}
	}
	stranger := func() <-chan struct{} {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if conn, err := net.Dial("tcp", w.server.Addr()); err == nil {
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				io.Copy(io.Discard, conn)
			}
		}()
		return closed
	}
	guest := w.options("guest_g", func(public string) (string, error) {
		return w.authority.Guest("g", public, time.Time{})
	})
	greedy := w.siteOptions("greedy")
	for range 2 * places { // come back to 200 places in everyLook
		again(stranger)
	}
	for range places / 32 {
		again(client(guest))
		again(client(greedy))
	}
	time.Sleep(10 * everyLook)
	began := time.Now()
	north := w.connect(w.siteOptions("north"))
	eventually(t, "north is connected", north.Connected)
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	put(t, north, wire.AnswerKey(study, "north"), "answer", 0)
	holds(t, c, wire.AnswerKey(study, "north"), "answer")
	if took := time.Since(began); took > 30*time.Second { // on a busy machine; else it takes tenths of a second
		t.Errorf("north has answered after %v", took)
	}
	for i, s := range known {
		if s.Begun() != 1 {
			t.Errorf("site %d has connected %d times", i, s.Begun())
		}
	}
}
