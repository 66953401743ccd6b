package nats

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// raw is a client of NATS with somebody's token, that does what it likes.
type raw struct {
	*nats.Conn
	errors chan error
}

func (w *world) raw(o Options, more ...nats.Option) raw {
	w.t.Helper()
	key, err := nkeys.FromSeed(o.Seed)
	if err != nil {
		w.t.Fatal(err)
	}
	r := raw{errors: make(chan error, 100)}
	options := append([]nats.Option{nats.UserJWT(func() (string, error) { return o.JWT, nil }, key.Sign),
		nats.CustomInboxPrefix(inbox(o.Name)), nats.NoReconnect(), nats.Secure(&tls.Config{RootCAs: w.roots}),
		nats.TLSHandshakeFirst(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.errors <- err })}, more...)
	if r.Conn, err = nats.Connect("nats://"+w.server.Addr(), options...); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(r.Close)
	return r
}

// refuses waits until the server has said that it refuses something.
func (r raw) refuses(t *testing.T, what string) {
	t.Helper()
	testkit.Do(t, r.FlushTimeout(10*time.Second))
	select {
	case err := <-r.errors:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s was not refused", what)
	}
}

func TestASiteMayReadItsTasksAndWriteItsAnswersOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	put(t, c, wire.TaskKey(study, "south"), "secret", 0)
	put(t, c, wire.AnswerKey(study, "south"), "answer", 0)
	put(t, c, study+".coordinator", "claim", 0)
	put(t, c, wire.TaskKey("control", "north"), "news", 0)
	holds(t, s, wire.TaskKey(study, "north"), "task")
	holds(t, s, wire.TaskKey("control", "north"), "news")
	put(t, s, wire.AnswerKey("control", "north"), "hello", 0)
	for _, key := range []string{wire.TaskKey(study, "south"), wire.AnswerKey(study, "south"), study + ".coordinator",
		study + ".task.north.0.0", study + ".other"} {
		if _, _, err := s.Get(within(t), key); !errors.Is(err, errRefused) {
			t.Errorf("reading %s: %v", key, err)
		}
		if _, _, err := s.Wait(within(t), key, 0); !errors.Is(err, errRefused) {
			t.Errorf("waiting for %s: %v", key, err)
		}
	}
	for _, key := range []string{wire.TaskKey(study, "south"), wire.AnswerKey(study, "south"),
		wire.TaskKey(study, "north"), study + ".coordinator", study + ".answer.north.16"} {
		if _, err := s.Put(within(t), key, []byte("forged"), 1); !errors.Is(err, errRefused) {
			t.Errorf("writing %s: %v", key, err)
		}
	}
	if err := s.Remove(within(t), study); !errors.Is(err, errRefused) {
		t.Errorf("removing a bucket: %v", err)
	}
	holds(t, c, wire.TaskKey(study, "south"), "secret")
	holds(t, c, wire.AnswerKey(study, "south"), "answer")
	holds(t, c, wire.TaskKey(study, "north"), "task")
	holds(t, c, study+".coordinator", "claim")
}

func TestASiteMayNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	r := w.raw(w.siteOptions("north"))
	for _, subject := range []string{">", "w.>", "w.*.task.south", "w.*.answer.north", "_I_south.>", "_I_coordinator.>",
		"_INBOX.>", "$KV.>", "$JS.>", "$SYS.>", "_I_*.>"} {
		sub := testkit.Get(r.SubscribeSync(subject))(t)
		r.refuses(t, `"`+subject+`"`)
		sub.Unsubscribe()
	}
	stream := "KV_" + bucketOf(study)
	for _, subject := range []string{"w.s0123456789abcdef.task.south", "w.s0123456789abcdef.answer.south", "_I_south.x",
		"_I_coordinator.x",
		"$JS.API.STREAM.CREATE.KV_x", "$JS.API.STREAM.UPDATE." + stream, "$JS.API.STREAM.DELETE." + stream,
		"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.MSG.GET." + stream,
		"$JS.API.STREAM.MSG.DELETE." + stream, "$JS.API.STREAM.SNAPSHOT." + stream, "$JS.API.CONSUMER.CREATE." + stream,
		"$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO." + stream,
		"$JS.API.INFO", "$JS.API.DIRECT.GET." + stream, "$JS.API.DIRECT.GET." + stream + ".$KV.>",
		"$SYS.REQ.USER.INFO"} {
		testkit.Do(t, r.PublishRequest(subject, "_I_north.x", nil))
		r.refuses(t, `"`+subject+`"`)
	}
	holds(t, c, wire.TaskKey(study, "north"), "task")
}

// A client chooses where replies go, and the server sends them there with rights of
// its own: to keys, and to orders to JetStream.
func TestRepliesReachNothingOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	stream, answer := "KV_"+bucketOf(study), place{bucketOf(study), "answer.north"}
	task, claim, south := wire.TaskKey(study, "south"), study+".coordinator", wire.AnswerKey(study, "south")
	after := map[string]uint64{}
	for _, key := range []string{task, claim, south} {
		after[key] = put(t, c, key, "true", 0)
	}
	attacker := w.siteOptions("north")
	r, s := w.raw(attacker), w.connect(attacker)
	var mine uint64
	for _, x := range []struct{ to, value string }{
		{place{bucketOf(study), "task.south"}.subject(), "noise"}, {place{bucketOf(study), "coordinator"}.subject(),
			"noise"}, {place{bucketOf(study), "answer.south"}.subject(), "noise"},
		{"$JS.API.STREAM.CREATE.EVIL", `{"name":"EVIL","subjects":["evil.>"],"storage":"file","retention":"limits",` +
			`"max_consumers":-1,"max_msgs":-1,"max_bytes":-1}`},
		{"$JS.API.CONSUMER.CREATE." + stream, `{"stream_name":"` + stream +
			`","config":{"deliver_subject":"w.control.task.north","ack_policy":"none","deliver_policy":"all",` +
			`"replay_policy":"instant"}}`},
		{"$JS.API.STREAM.PURGE." + stream, ""}, {"$JS.API.STREAM.DELETE." + stream, ""}, {"$SYS.REQ.SERVER.PING", ""},
	} {
		mine = testkit.Get(s.publish(within(t), answer, expecting(answer, answer, mine), []byte(x.value)))(t)
		// the value, without a head: an order as it is
		if err := r.PublishRequest(answer.get(), x.to, nil); err != nil {
			t.Fatal(err)
		}
		testkit.Do(t, r.PublishMsg(&nats.Msg{Subject: answer.subject(), Reply: x.to,
			Header: nats.Header{"Nats-Expected-Last-Subject-Sequence": {"1"}}}))
		if _, err := r.Request(answer.get(), nil, 10*time.Second); err != nil { // after which both are through
			t.Fatal(err)
		}
	}
	for _, key := range []string{task, claim} {
		if holds(t, c, key, "true") != after[key] {
			t.Errorf("%s was put again", key)
		}
	}
	state := testkit.Get(w.server.running.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true}))(t)
	if state.Streams != 1 || state.Consumers != 0 {
		t.Errorf("there are %d streams and %d consumers", state.Streams, state.Consumers)
	}
	// Other ends' answers it can replace by noise, which they put again.
	_, now, err := c.Get(within(t), south)
	if err != nil {
		t.Fatal(err)
	}
	put(t, w.connect(w.siteOptions("south")), south, "true", now)
	holds(t, c, south, "true")
	t.Logf("noise in another's answer: %v", now != after[south])
}

func TestAGuestMayUseControlOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	g := w.connect(w.options("guest_7f", func(public string) (string, error) {
		return w.authority.Guest("7f", public, time.Now().Add(time.Hour))
	}))
	put(t, c, wire.TaskKey(study, "guest_7f"), "task", 0)
	put(t, c, wire.TaskKey("control", "guest_7f"), "welcome", 0)
	holds(t, g, wire.TaskKey("control", "guest_7f"), "welcome")
	put(t, g, wire.AnswerKey("control", "guest_7f"), "it is me", 0)
	_, _, err := g.Get(within(t), wire.TaskKey(study, "guest_7f"))
	_, err2 := g.Put(within(t), wire.AnswerKey(study, "guest_7f"), nil, 0)
	_, _, err3 := g.Get(within(t), wire.TaskKey("control", "guest_8f"))
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "hint:") {
			t.Error(err)
		}
	}
}

// greedy changes what the server says about the largest message, so that the
// client sends more.
type greedy struct{ net.Conn }

func (g greedy) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	from, to := fmt.Sprintf(`"max_payload":%d`, maxMessage+room), fmt.Sprintf(`"max_payload":%d`, 9999999)
	if len(from) != len(to) {
		panic("of another length")
	}
	copy(p, bytes.Replace(p[:n], []byte(from), []byte(to), 1))
	return n, err
}

type greedyDialer struct{ w *world }

func (g greedyDialer) Dial(_, address string) (net.Conn, error) {
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: g.w.roots})
	return greedy{c}, err
}

func (g greedyDialer) SkipTLSHandshake() bool { return true }

func TestAMessageThatIsTooLongEndsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	closed := make(chan error, 1)
	r := w.raw(w.siteOptions("north"), nats.SetCustomDialer(greedyDialer{w}),
		nats.ClosedHandler(func(nc *nats.Conn) { closed <- nc.LastError() }))
	r.Publish(place{bucketOf(study), "answer.north"}.subject(), make([]byte, 9<<20))
	select {
	case err := <-closed:
		if err == nil {
			t.Error("nothing was said")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the connection goes on")
	}
	holds(t, c, wire.TaskKey(study, "north"), "task")
	holds(t, c, wire.AnswerKey(study, "north"), "")
}

func TestRevokedKeysAreDisconnectedAndRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	o := w.siteOptions("north")
	s, other := w.connect(o), w.connect(w.siteOptions("south"))
	holds(t, s, wire.TaskKey(study, "north"), "task")
	eventually(t, "connected", other.Connected)
	public := testkit.Get(PublicOf(o.Seed))(t)
	waits := make(chan error, 1)
	ctx, stop := context.WithCancelCause(within(t))
	go func() {
		_, _, err := s.Wait(ctx, wire.TaskKey("control", "north"), 0)
		waits <- err
	}()
	testkit.Do(t, w.server.Revoke(public))
	eventually(t, "it is disconnected, and told why", func() bool { return strings.Contains(s.Trouble(), "revoked") })
	again := testkit.Get(w.authority.Site("north", public, time.Time{}))(t)
	s.SetCredentials(again) // a newer token of the same key is worth no more
	o.JWT = again
	late := w.connect(o)
	eventually(t, "it is refused, and told what to do", func() bool {
		return strings.Contains(late.Trouble(), "may have revoked")
	})
	testkit.Do(t, w.server.Restart())
	eventually(t, "the other is connected", other.Connected)
	if late.Connected() || s.Connected() || !strings.Contains(s.Trouble(), "hint:") {
		t.Errorf("it is connected: %v, %v, %s", late.Connected(), s.Connected(), s.Trouble())
	}
	over := errors.New("over")
	stop(over)
	if err := <-waits; !errors.Is(err, over) {
		t.Errorf("waiting ended with %v", err)
	}
	holds(t, w.connect(w.siteOptions("north")), wire.TaskKey(study, "north"), "task") // with another key
}

func TestWhoIsNotConnectedIsToldWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, others := certificate(t)
	stranger := testkit.Get(NewAuthority())(t)
	dead := testkit.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	dead.Close()
	expired := w.options("north", func(public string) (string, error) {
		return w.authority.Site("north", public, time.Now().Add(-time.Minute))
	})
	for _, c := range []struct {
		name   string
		change func(o *Options)
		want   string
	}{
		{"expired", func(o *Options) { *o = expired }, "was valid until"},
		{"another authority's token", func(o *Options) {
			*o = w.options("north", func(public string) (string, error) {
				return stranger.Site("north", public, time.Time{})
			})
		}, "does not accept"},
		{"another certificate", func(o *Options) { o.Roots = others }, "not signed by whom this end trusts"},
		{"another certificate, over WebSocket", func(o *Options) {
			o.Roots, o.URLs = others, []string{"wss://" + w.server.webSocketAddr()}
		}, "not signed by whom this end trusts"},
		{"nobody there", func(o *Options) { o.URLs = []string{"tls://" + dead.Addr().String()} }, "refused"},
		{"no such host", func(o *Options) { o.URLs = []string{"tls://broker.invalid:4222"} }, "no such host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.siteOptions("north")
			c.change(&o)
			conn := w.connect(o)
			eventually(t, c.want, func() bool { return strings.Contains(conn.Trouble(), c.want) })
			if conn.Connected() {
				t.Error("it is connected")
			}
			ctx, stop := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("enough"))
			defer stop()
			if _, err := conn.Put(ctx, wire.AnswerKey(study, "north"), nil, 0); err == nil || err.Error() != "enough" {
				t.Error(err)
			}
		})
	}
}

func TestOneAddressOfSeveralIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.connect(w.coordinatorOptions()), wire.TaskKey(study, "north"), "task", 0)
	o := w.siteOptions("north")
	o.URLs = []string{"tls://127.0.0.1:1", "wss://" + w.server.webSocketAddr()}
	holds(t, w.connect(o), wire.TaskKey(study, "north"), "task")
}

func TestPlainTextIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.siteOptions("north")
	key := testkit.Get(nkeys.FromSeed(o.Seed))(t)
	for _, u := range []string{"nats://" + w.server.Addr(), "ws://" + w.server.webSocketAddr()} {
		nc, err := nats.Connect(u, nats.UserJWT(func() (string, error) { return o.JWT, nil }, key.Sign),
			nats.Timeout(500*time.Millisecond))
		if err == nil {
			nc.Close()
			t.Errorf("%s is served", u)
		}
	}
	// What the server sends before it has heard anything: nothing.
	c := testkit.Get(net.Dial("tcp", w.server.Addr()))(t)
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, context.DeadlineExceeded) &&
		!strings.Contains(err.Error(), "timeout") {
		t.Errorf("the server greets in plain text: %d, %v", n, err)
	}
	old := &tls.Config{RootCAs: w.roots, MaxVersion: tls.VersionTLS12}
	for _, address := range []string{w.server.Addr(), w.server.webSocketAddr()} {
		if c, err := tls.Dial("tcp", address, old); err == nil {
			c.Close()
			t.Errorf("%s speaks TLS 1.2", address)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, change := range map[string]func(o *Options){
		"no address":     func(o *Options) { o.URLs = nil },
		"plain":          func(o *Options) { o.URLs = []string{"ws://127.0.0.1:80"} },
		"no token":       func(o *Options) { o.JWT = "" },
		"another's key":  func(o *Options) { o.Seed = w.siteOptions("north").Seed },
		"another's name": func(o *Options) { o.Name = "south" },
		"no key":         func(o *Options) { o.Seed = nil },
	} {
		o := w.siteOptions("north")
		change(&o)
		if c, err := Connect(o); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
	}
	c := w.connect(w.siteOptions("north"))
	for _, key := range []string{"", "x", "x.", ".x", "x..y", "x.*", "x.>", "x.a b", "x.é"} {
		if _, _, err := c.Get(within(t), key); err == nil || errors.Is(err, errRefused) {
			t.Errorf("the key %q: %v", key, err)
		}
	}
}

// A token must fit into the first line that a client sends, of which a server of
// somebody else's takes 4096 bytes.
func TestTokensAreShort(t *testing.T) {
	t.Parallel()
	a := testkit.Get(NewAuthority())(t)
	_, public, err := NewUser()
	if err != nil {
		t.Fatal(err)
	}
	site := testkit.Get(a.Site(strings.Repeat("n", 40), public, time.Now().Add(time.Hour)))(t)
	guest := testkit.Get(a.Guest(strings.Repeat("n", 40), public, time.Now().Add(time.Hour)))(t)
	t.Logf("site: %d bytes, guest: %d bytes", len(site), len(guest))
	if most := 4096 - 600; len(site) > most || len(guest) > most {
		t.Errorf("longer than %d bytes", most)
	}
	for _, name := range []string{"", "coordinator", "North", "a.b", "*", ">", "guest_1", strings.Repeat("n", 41)} {
		if _, err := a.Site(name, public, time.Time{}); err == nil {
			t.Errorf("a site may be called %q", name)
		}
	}
	if _, err := a.Guest("a.b", public, time.Time{}); err == nil {
		t.Error("a guest may be called a.b")
	}
}

func TestAuthorityIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := testkit.Get(w.authority.MarshalBinary())(t)
	again := testkit.Get(ParseAuthority(data))(t)
	again2, err := again.MarshalBinary()
	if err != nil || !bytes.Equal(data, again2) {
		t.Fatalf("it reads back as another: %v", err)
	}
	put(t, w.connect(w.coordinatorOptions()), wire.TaskKey(study, "north"), "task", 0)
	seed := testkit.Get(w.authority.account.Seed())(t)
	foreign := testkit.Get(AccountAuthority("", seed))(t)
	data = testkit.Get(foreign.MarshalBinary())(t)
	foreign = testkit.Get(ParseAuthority(data))(t)
	for _, a := range []*Authority{again, foreign} {
		o := w.options("north", func(public string) (string, error) { return a.Site("north", public, time.Time{}) })
		holds(t, w.connect(o), wire.TaskKey(study, "north"), "task")
	}
	if _, err := StartServer(ServerOptions{Dir: t.TempDir(), Authority: foreign}); err == nil {
		t.Error("a server was started with the authority of another's cluster")
	}
	if _, err := AccountAuthority("", []byte("SU")); err == nil {
		t.Error("SU is no seed")
	}
	if _, err := ParseAuthority(data[:len(data)-1]); err == nil {
		t.Error("half an authority was read")
	}
}

func TestAKeyThatIsSuspendedComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.siteOptions("north")
	public := testkit.Get(PublicOf(o.Seed))(t)
	p := w.siteOptions("south")
	s, other := w.connect(o), w.connect(p)
	eventually(t, "connected", func() bool { return s.Connected() && other.Connected() })
	for range 20 {
		w.raw(o)
	}
	put(t, w.connect(w.coordinatorOptions()), wire.TaskKey("control", "south"), "board", 0)
	put(t, other, wire.AnswerKey("control", "south"), "hello", 0)
	took := map[string]Usage{}
	for _, u := range testkit.Get(w.server.Usage(0))(t) {
		took[u.User] = u
	}
	if north, south := took[public], took[testkit.Get(PublicOf(p.Seed))(t)]; north.Connections != 21 ||
		south.Connections != 1 || south.Messages < 1 || south.Bytes < 5 {
		t.Errorf("usage is %+v", took)
	}
	testkit.Do(t, w.server.Suspend(public))
	eventually(t, "it is disconnected, and told why", func() bool {
		return strings.Contains(s.Trouble(), "took too much")
	})
	testkit.Do(t, w.server.Restart())
	eventually(t, "the other is connected", other.Connected)
	if s.Connected() {
		t.Error("it is connected")
	}
	testkit.Do(t, w.server.Suspend())
	eventually(t, "it is back", s.Connected)
}

// Whoever connects without a word is counted, and holds a place for seconds only.
func TestAStrangerIsDisconnected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := testkit.Get(net.Dial("tcp", w.server.Addr()))(t)
	defer c.Close()
	eventually(t, "it is counted", func() bool {
		return slices.ContainsFunc(testkit.Get(w.server.Usage(0))(t), func(u Usage) bool {
			return u.User == "" && u.From == "127.0.0.1"
		})
	})
	testkit.Do(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("it is still connected: %v", err)
	}
}

// Whoever begins handshakes and shows no key is turned away after a burst, and told of. Ends come from there as before.
func TestHandshakesWithoutAKeyAreTurnedAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, refused := &w.server.greetings, 0
	for g.add("127.0.0.1:1", 1) {
	}
	for range 20 {
		if c, err := tls.Dial("tcp", w.server.Addr(), &tls.Config{RootCAs: w.roots}); err == nil {
			c.Close()
		} else {
			refused++
		}
	}
	told := testkit.Get(w.server.Usage(0))(t)
	if len(told) != 1 || refused == 0 || told[0].Turned != refused+1 || told[0].From != "127.0.0.1" {
		t.Errorf("%d were turned away: %+v", refused, told)
	}
	eventually(t, "north connects", w.connect(w.siteOptions("north")).Connected)
	if !g.add("192.0.2.1:1", burstGreetings) || g.add("192.0.2.1:2", 1) || !g.add("[2001:db8::1]:1", burstGreetings) ||
		g.add("[2001:db8::2]:1", 1) || !g.add("[2001:db8:0:1::]:1", 1) {
		t.Error("networks are not told apart")
	}
}

// What a client calls itself beside its token is no reason to take it for another.
func TestNobodyPassesForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o, other := w.siteOptions("north"), testkit.Get(PublicOf(w.siteOptions("south").Seed))(t)
	w.raw(o, nats.UserInfo(other, "x"))
	w.raw(o, nats.UserInfo("nobody", "x"))
	own := testkit.Get(PublicOf(o.Seed))(t)
	for _, u := range testkit.Get(w.server.Usage(0))(t) {
		if u.User == other || u.User == "nobody" || u.User == own && u.Connections != 2 {
			t.Errorf("%+v, of two connections of %s", u, own)
		}
	}
	if n, of := w.server.Connections(own), w.server.Connections(other); n != 2 || of != 0 {
		t.Errorf("%d and %d connections, want 2 and none", n, of)
	}
}

// What one end sends faster than it can be stored is refused, beyond a number that waits, and an end that comes between
// gets its value stored.
func TestAFloodIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, o := w.connect(w.coordinatorOptions()), w.siteOptions("north")
	put(t, c, wire.TaskKey(study, "north"), "task", 0)
	s := w.raw(o)
	var refused atomic.Int64
	sub := testkit.Get(s.Subscribe(inbox(o.Name)+".flood", func(m *nats.Msg) {
		if strings.Contains(string(m.Data), `"err_code":10167`) {
			refused.Add(1)
		}
	}))(t)
	testkit.Do(t, sub.SetPendingLimits(-1, -1))
	answer := place{bucketOf(study), "answer.north"}
	for range 10 * maxWaiting {
		testkit.Do(t, s.PublishRequest(answer.subject(), inbox(o.Name)+".flood", []byte("x")))
	}
	south := w.connect(w.siteOptions("south"))
	eventually(t, "another site answers", func() bool { // on a busy machine not at once
		_, err := south.Put(within(t), wire.AnswerKey(study, "south"), []byte("answer"), 0)
		return err == nil || errors.Is(err, wire.ErrMoved)
	})
	testkit.Do(t, s.FlushTimeout(30*time.Second))
	if refused.Load() == 0 {
		t.Error("nothing was refused")
	}
}
