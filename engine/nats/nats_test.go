package nats

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// world is a broker of its own, with certificate, authority and ends.
type world struct {
	t         testing.TB
	authority *Authority
	cert      tls.Certificate
	roots     *x509.CertPool
	server    *Server
	dir       string
}

const study = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newWorld(t testing.TB) *world {
	t.Helper()
	authority := testkit.Get(NewAuthority())(t)
	w := &world{t: t, authority: authority, dir: t.TempDir()}
	w.cert, w.roots = certificate(t)
	w.server = w.start("127.0.0.1:0", "127.0.0.1:0")
	t.Cleanup(func() { w.server.Stop() })
	return w
}

func (w *world) start(listen, ws string) *Server {
	w.t.Helper()
	s, err := StartServer(ServerOptions{Dir: w.dir, Listen: listen, WebSocket: ws, Certificate: w.cert,
		Authority: w.authority, Log: w.log("server")})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// certificate makes an authority and a certificate of it for 127.0.0.1.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := testkit.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"broker.example"}}
	der := testkit.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	leaf := testkit.Get(x509.ParseCertificate(der))(t)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// options are those of one end; its token is signed by sign.
func (w *world) options(name string, sign func(public string) (string, error)) Options {
	w.t.Helper()
	seed, public, err := NewUser()
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := sign(public)
	if err != nil {
		w.t.Fatal(err)
	}
	return Options{URLs: []string{"tls://" + w.server.Addr()}, Roots: w.roots, JWT: token, Seed: seed, Name: name,
		Log:   w.log(name),
		Proxy: func(*url.URL) (*url.URL, error) { return nil, nil }}
}

func (w *world) log(name string) func(string) {
	return func(line string) { w.t.Logf("%s: %s", name, line) }
}

func (w *world) siteOptions(name string) Options {
	return w.options(name, func(public string) (string, error) { return w.authority.Site(name, public, time.Time{}) })
}

func (w *world) coordinatorOptions() Options {
	o := w.options(coordinator, w.authority.Coordinator)
	o.Replicas = 1
	return o
}

func (w *world) connect(o Options) *Conn {
	w.t.Helper()
	c, err := connect(o, lookAgain)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func put(t testing.TB, w wire.Wire, key, value string, after uint64) uint64 {
	t.Helper()
	return testkit.Get(w.Put(within(t), key, []byte(value), after))(t)
}

func holds(t testing.TB, w wire.Wire, key, value string) uint64 {
	t.Helper()
	got, r, err := w.Get(within(t), key)
	if err != nil || string(got) != value {
		t.Fatalf("%s holds %.100q (%v), want %.100q", key, got, err, value)
	}
	return r
}

func TestTasksGoDownAndAnswersUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	co := w.coordinatorOptions()
	co.URLs, co.Server = nil, w.server
	c := w.connect(co)
	so := w.siteOptions("north")
	so.URLs = []string{"wss://" + w.server.webSocketAddr()}
	s := w.connect(so)
	var seen uint64
	for _, task := range []string{"one", "", "three"} {
		r := put(t, c, wire.TaskKey(study, "north"), task, seen)
		got, r2, err := s.Wait(within(t), wire.TaskKey(study, "north"), seen)
		if err != nil || string(got) != task || r2 != r || r <= seen {
			t.Fatalf("the task %q came as %q, revision %d for %d after %d, %v", task, got, r2, r, seen, err)
		}
		seen = r
	}
	go s.Put(within(t), wire.AnswerKey(study, "north"), []byte("done"), 0)
	got, _, err := c.Wait(within(t), wire.AnswerKey(study, "north"), 0)
	if err != nil || string(got) != "done" {
		t.Fatalf("the answer came as %q, %v", got, err)
	}
	if in, out := s.Bytes(); in == 0 || out == 0 {
		t.Error("no bytes were counted")
	}
	if !s.Connected() || s.Trouble() != "" {
		t.Errorf("connected: %v, trouble: %q", s.Connected(), s.Trouble())
	}
}

func TestOfTwoWritersOneIsTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.connect(w.coordinatorOptions()), w.connect(w.coordinatorOptions())
	key := study + ".coordinator"
	var after uint64
	for range 20 {
		var mu sync.Mutex
		var group sync.WaitGroup
		won, next := 0, uint64(0)
		for _, c := range []*Conn{a, b} {
			group.Go(func() {
				r, err := c.Put(within(t), key, []byte("mine"), after)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won, next = won+1, r
				case !errors.Is(err, wire.ErrMoved):
					t.Error(err)
				}
			})
		}
		if group.Wait(); won != 1 {
			t.Fatalf("%d puts after the same revision were taken", won)
		}
		after = next
	}
}

func TestLongValuesGoInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.AnswerKey(study, "north")
	put(t, c, study+".coordinator", "here", 0) // makes the bucket
	var after uint64
	for _, size := range []int{0, 1, maxMessage - 1, maxMessage, maxMessage + 1, maxAnswer, 3} {
		value := make([]byte, size)
		rand.Read(value)
		r, err := s.Put(within(t), key, value, after)
		if err != nil {
			t.Fatal(err)
		}
		got, r2, err := c.Wait(within(t), key, after)
		if err != nil || r2 != r || !bytes.Equal(got, value) {
			t.Fatalf("%d bytes came as %d, %v", size, len(got), err)
		}
		after = r
	}
	if _, err := s.Put(within(t), key, make([]byte, maxAnswer+1), after); err == nil ||
		!strings.Contains(err.Error(), "limit") {
		t.Errorf("a value above the limit: %v", err)
	}
	long := strings.Repeat("long", 5<<20)
	put(t, c, wire.TaskKey(study, "north"), long, 0)
	holds(t, s, wire.TaskKey(study, "north"), long)
	own, _, err := s.Get(within(t), key)
	testkit.Do(t, err)
	c.Limit(key, 1<<20) // short or in parts, what is longer is empty to this end
	for _, size := range []int{1<<20 + 1, 2 * maxMessage} {
		after = testkit.Get(s.Put(within(t), key, make([]byte, size), after))(t)
		if got, r, err := c.Get(within(t), key); len(got) != 0 || r != after || err != nil {
			t.Errorf("%d bytes, above this end's limit, came as %d: %d %v", size, len(got), r, err)
		}
	}
	after = testkit.Get(s.Put(within(t), key, []byte(own), after))(t)
	c.Limit(key, MaxValue)
	if holds(t, c, key, string(own)) != after {
		t.Error("it was replaced")
	}
}

func TestBrokerThatLosesItsFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.TaskKey(study, "north")
	var r uint64
	for _, v := range []string{"one", "two", "three"} {
		r = put(t, c, key, v, r)
	}
	if _, seen, err := s.Wait(within(t), key, 0); err != nil || seen != r {
		t.Fatalf("revision %d, %v", seen, err)
	}
	listen, ws := w.server.Addr(), w.server.webSocketAddr()
	w.server.Stop()
	testkit.Do(t, os.RemoveAll(w.dir))
	w.server = w.start(listen, ws)
	eventually(t, "a put after a revision that is lost is refused", func() bool { // as links do: again and again
		_, err := c.Put(within(t), key, []byte("four"), r)
		return errors.Is(err, wire.ErrMoved)
	})
	if got, now, err := c.Get(within(t), key); got != nil || now != 0 || err != nil {
		t.Fatalf("a value that is lost is there: %q %d %v", got, now, err)
	}
	again := put(t, c, key, "four", 0)
	if got, now, err := s.Wait(within(t), key, r); err != nil || string(got) != "four" || now != again {
		t.Fatalf("%q %d %v", got, now, err)
	}
	if again <= r {
		t.Errorf("revision %d came again as %d", r, again)
	}
}

func TestWaitOutlastsARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server = nil, w.server
	c, s := w.connect(o), w.connect(w.siteOptions("north"))
	key := wire.TaskKey(study, "north")
	r := put(t, c, key, "one", 0)
	type result struct {
		value string
		err   error
	}
	came := make(chan result, 1)
	go func() {
		v, _, err := s.Wait(within(t), key, r)
		came <- result{string(v), err}
	}()
	for range 3 {
		eventually(t, "the site is connected", s.Connected)
		testkit.Do(t, w.server.Restart())
	}
	eventually(t, "the put is taken", func() bool { // as links do: again and again
		_, err := c.Put(within(t), key, []byte("two"), r)
		return err == nil
	})
	if got := <-came; got.err != nil || got.value != "two" {
		t.Fatalf("%+v", got)
	}
}

// Wakes are missed while there is no connection.
func TestAfterAReconnectReadersLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server = nil, w.server
	c := w.connect(o)
	s, err := connect(w.siteOptions("north"), time.Hour) // it does not look by itself
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key, p := wire.TaskKey(study, "north"), place{bucketOf(study), "task.north"}
	after := put(t, c, key, "one", 0)
	holds(t, s, key, "one")
	came := make(chan error, 1)
	go func() {
		_, _, err := s.Wait(within(t), key, after)
		came <- err
	}()
	eventually(t, "it has looked, and waits", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		known := s.watched[p.wake()]
		return known != nil && known.seen == after
	})
	if _, err := c.publish(within(t), p, expecting(p, p, after), encodeShort([]byte("two"))); err != nil { // no wake
		t.Fatal(err)
	}
	testkit.Do(t, w.server.Restart())
	if err := <-came; err != nil {
		t.Error(err)
	}
}

// webSocketAddr is the same for clients over WebSocket.
func (s *Server) webSocketAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ws
}
