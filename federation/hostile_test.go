package federation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	enats "parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	encoding "parley/internal/wire"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

var sites = []string{"north", "centre", "south"}

// quiet runs a study that nobody disturbs and returns what its model comes to.
func (w *world) quiet(rounds int) string {
	w.t.Helper()
	p := plan("quiet", rounds, 3, sites...)
	d := w.submit(p)
	w.approve(d, sites...)
	w.ended(d, sites...)
	return w.trace(p)
}

func TestStudyEndsAtEverySite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	w.quiet(4)
}

// disturbed is a world in which a study went well, with a fourth site that has
// joined and whose people are hostile.
func disturbed(t *testing.T, rounds int) (w *world, evil *site.Folder, want string) {
	w = newWorld(t)
	w.serve()
	w.join(append(sites, "west")...)
	w.begin(sites...)
	return w, w.folder("west"), w.quiet(rounds)
}

// goesWell runs a study while attack runs again and again, and compares what its
// model comes to.
func (w *world) goesWell(rounds int, want string, attack func(ctx context.Context, i int)) {
	w.t.Helper()
	p := plan("disturbed", rounds, 3, sites...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan int, 1)
	go func() {
		i := 0
		for ; ctx.Err() == nil; i++ {
			attack(ctx, i)
		}
		done <- i
	}()
	d := w.submit(p)
	w.approve(d, sites...)
	w.ended(d, sites...)
	cancel()
	w.t.Logf("%d attacks meanwhile", <-done)
	if got := w.trace(p); got != want {
		w.t.Errorf("the model came to %q, without the attacker to %q", got, want)
	}
	for _, name := range sites {
		if lines := audit(w.t, w.path(name), "passed over"); len(lines) > 0 {
			w.t.Errorf("site %s: %q", name, lines)
		}
	}
}

// bucket is what NATS calls that of a study.
func bucket(digest string) string { return "s" + digest[:16] }

// A site reads and writes what is its own only, whatever it asks the broker for.
func TestSiteReachesNothingOfOthers(t *testing.T) {
	t.Parallel()
	w, evil, want := disturbed(t, 4)
	next := must(plan("disturbed", 4, 3, sites...).Digest()).String()
	r := w.raw(evil)
	heard := make(chan *nats.Msg, 1000)
	for _, subject := range []string{">", "*", "$KV.>", "w.>", "w.*.task.*", "_I_*.>", "_I_coordinator.>", "_I_north.>",
		"$SYS.>", "$JS.>", "_INBOX.>"} {
		sub, err := r.ChanSubscribe(subject, heard)
		check(t, err)
		check(t, r.FlushTimeout(10*time.Second))
		sub.Unsubscribe()
	}
	_, err := r.ChanSubscribe("w.*.task.west", heard)
	check(t, err)
	var subjects []string
	for _, b := range []string{"control", bucket(next)} {
		for _, name := range sites {
			for _, value := range []string{"task", "answer"} {
				subjects = append(subjects, "$KV."+b+"."+value+"."+name, "w."+b+"."+value+"."+name,
					"$JS.API.DIRECT.GET.KV_"+b+".$KV."+b+"."+value+"."+name)
			}
		}
		subjects = append(subjects, "$KV."+b+".coordinator", "$KV."+b+".health", "$KV."+b+".task.west")
		for _, order := range []string{"STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "STREAM.CREATE", "STREAM.INFO",
			"STREAM.MSG.GET", "STREAM.MSG.DELETE", "STREAM.SNAPSHOT", "CONSUMER.CREATE"} {
			subjects = append(subjects, "$JS.API."+order+".KV_"+b)
		}
	}
	subjects = append(subjects, "$JS.API.STREAM.CREATE.EVIL", "$JS.API.STREAM.NAMES", "$JS.API.INFO",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "_I_coordinator.x", "_I_north.x")
	own, dead := "$KV.control.answer.west", false
	w.goesWell(4, want, func(ctx context.Context, i int) {
		s := subjects[i%len(subjects)]
		r.Publish(s, nil)
		r.PublishRequest(s, "w.control.task.west", []byte("{}"))
		// And in the broker's own voice: where replies go is the asker's choice.
		r.PublishRequest(own, s, []byte("x"))
		r.PublishRequest("$JS.API.DIRECT.GET.KV_control."+own, s, nil)
		// No faster than the broker keeps: what a flood of writes does is told elsewhere.
		if _, err := r.Request(own, nil, 10*time.Second); err != nil && ctx.Err() == nil {
			if !dead {
				t.Errorf("the connection is lost: %v, %v", err, r.LastError())
			}
			dead = true
			pause(ctx)
		}
	})
	for len(heard) > 0 {
		if m := <-heard; m.Subject != "w.control.task.west" || len(m.Data) > 8 { // its own wake
			t.Errorf("it hears %s: %.100q", m.Subject, m.Data)
		}
	}
	if len(r.refused) == 0 {
		t.Error("nothing was refused")
	}
}

// greedy is a line to the broker on which it seems to allow longer messages.
type greedy struct {
	pool    *x509.CertPool
	address string
}

func (greedy) SkipTLSHandshake() bool { return true }

func (g greedy) Dial(string, string) (net.Conn, error) {
	c, err := tls.Dial("tcp", g.address, &tls.Config{RootCAs: g.pool})
	return greedyConn{c}, err
}

type greedyConn struct{ net.Conn }

func (g greedyConn) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	copy(p, bytes.Replace(p[:n], []byte(`"max_payload":4195328`), []byte(`"max_payload":9999999`), 1))
	return n, err
}

// What stands for a hello is passed over, costs little, and changes nothing for
// others; what one's own says is bounded.
func TestSiteThatSaysNonsense(t *testing.T) {
	w, evil, want := disturbed(t, 10)
	conn := w.connect(evil)
	stranger := must(wire.NewKey())
	made := federation.Certificate{Site: "west", Serial: 1 << 62, Peer: must(stranger.Peer().MarshalBinary()),
		User: "x"}
	check(t, made.Issue(stranger))
	copied := w.folder("north").Config.Certificate
	key := federation.HelloKey("west")
	hello := func(k *wire.Key, certificate []byte, studies ...federation.Standing) []byte {
		return must(federation.Greet(k, evil.Coordinator, certificate, "west",
			federation.Hello{Program: federation.LocalProgram(methods), Life: []byte("x"),
				Count: uint64(time.Now().UnixNano()), Studies: studies}))
	}
	seal := func(v any) []byte { // whatever it says, as a hello
		return must(encoding.Marshal([]any{evil.Config.Certificate,
			must(evil.Secrets.Key.Seal(evil.Coordinator, key, must(encoding.Marshal(v))))}))
	}
	many := make([]federation.Standing, 100000)
	for i := range many {
		many[i] = federation.Standing{Study: fmt.Sprintf("%064d", i), Word: federation.Approved}
	}
	huge := strings.Repeat("long\n\x1b[2J", 100000)
	attacks := []func(i int) []byte{
		func(i int) []byte { return fmt.Appendf(nil, "nonsense %d", i) },
		func(i int) []byte { return hello(stranger, must(made.Encode())) },
		func(i int) []byte { return hello(evil.Secrets.Key, copied) },
		func(i int) []byte { return hello(stranger, evil.Config.Certificate) },
		func(i int) []byte { // a certificate that names whatever it likes
			c := made
			c.Site = fmt.Sprintf("%d %s", i, huge[:10000])
			return hello(stranger, must(c.Encode()))
		},
		func(i int) []byte { return hello(evil.Secrets.Key, evil.Config.Certificate, many...) },
		func(i int) []byte { return seal(map[string]any{"program": i, "studies": huge}) },
		func(i int) []byte { return seal(map[string]any{"studies": [][]any{{huge, huge, i}}}) },
		func(i int) []byte { return seal(map[string]any{fmt.Sprint("unknown ", i): huge}) },
		func(i int) []byte {
			return hello(evil.Secrets.Key, evil.Config.Certificate, federation.Standing{Study: fmt.Sprintf("%064d", i),
				Word: "refused", Text: fmt.Sprint(i, huge)})
		},
		func(i int) []byte { return must(evil.Secrets.Key.Seal(evil.Coordinator, key, nil)) },
	}
	size := func() int64 { return int64(w.log.size()) + sizeOf(filepath.Join(w.co.Path, "audit.jsonl")) }
	before := size()
	heap := inUse()
	w.goesWell(10, want, func(ctx context.Context, i int) { tryPut(ctx, conn, key, attacks[i%len(attacks)](i)) })
	for i := range 100 {
		check(t, tryPut(within(t), conn, key, attacks[i%len(attacks)](i)))
	}
	put(t, conn, key, make([]byte, 16<<20)) // as much as its token lets it
	w.eventually("it is noted", func() bool { return len(audit(t, w.co.Path, "what stood for a hello")) > 0 })
	if grown := size() - before; grown > 200<<10 {
		t.Errorf("the logs grew by %d bytes", grown)
	}
	if lines := audit(t, w.co.Path, "passed over"); len(lines) > 60 {
		t.Errorf("%d lines of audit", len(lines))
	}
	if now := inUse(); now > heap+(256<<20) {
		t.Errorf("%d MB are in use, and %d before", now>>20, heap>>20)
	}
	if i := slices.IndexFunc(must(w.co.ReadStatus()).Sites, func(s coordinator.SiteStatus) bool {
		return s.Site == "north" && s.State == "joined"
	}); i < 0 {
		t.Error("north has not joined any more")
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Copies of what others have said, put in one's own place, and one's own from before
// say nothing.
func TestSiteThatRepeatsWhatWasSaid(t *testing.T) {
	t.Parallel()
	w, evil, want := disturbed(t, 5)
	w.begin("west")
	key := federation.HelloKey("west")
	conn := w.connect(evil)
	var old [][]byte
	w.eventually("a hello", func() bool {
		value, _, err := conn.Get(within(t), key)
		old = [][]byte{value}
		return err == nil && value != nil
	})
	w.end("west")
	w.begin("west") // another life says something else
	w.eventually("another hello", func() bool {
		value, _, err := conn.Get(within(t), key)
		return err == nil && !bytes.Equal(value, old[0])
	})
	for _, name := range sites {
		value, _, err := w.connect(w.folder(name)).Get(within(t), federation.HelloKey(name))
		check(t, err)
		old = append(old, value)
	}
	p := plan("own", 3, 4, "north", "centre", "south", "west")
	d := w.submit(p)
	w.approve(d, "west")
	w.goesWell(5, want, func(ctx context.Context, i int) { tryPut(ctx, conn, key, old[i%len(old)]) })
	w.approve(d, sites...)
	w.ended(d, append(sites, "west")...)
}

// down and up are messages of a study as they are on the wire.
type down struct {
	_             struct{} `cbor:",toarray"`
	Version, Say  int
	Body          []byte
	Past          engine.Past
	Term          uint64
	Life          []byte
	Head, Receipt []byte
}

type up struct {
	_            struct{} `cbor:",toarray"`
	Version, Say int
	To, Body     []byte
	Size         int
	Records      int
	Ledger       engine.Mark
	History      [][]byte
}

// answer answers the tasks of a study as a site that made its own program: attack
// makes its first release another.
func (w *world) answer(ctx context.Context, f *site.Folder, conn *enats.Conn, p *study.Plan, digest string,
	attack func(honest []byte) []byte) {
	h := host.Host{Site: f.Config.Site, Methods: methods, Data: enginetest.ToyRows(3), Store: sitestore.NewMemory(),
		Policy: privacy.SimulationPolicy()}
	loop := must(h.Open(ctx, p))
	task, answer := wire.TaskKey(digest, f.Config.Site), wire.AnswerKey(digest, f.Config.Site)
	for seen := uint64(0); ctx.Err() == nil; {
		value, revision, err := conn.Wait(ctx, task, seen)
		if err != nil {
			pause(ctx)
			continue
		}
		seen = revision
		payload, err := f.Secrets.Key.Open(f.Coordinator, task, value)
		var m down
		if err == nil {
			err = encoding.Unmarshal(payload, &m)
		}
		if err != nil {
			w.t.Error(err)
			return
		}
		name := sha256.Sum256(slices.Concat(m.Life, m.Body))
		u := up{Version: 3, Say: 6, To: name[:]} // it has what it may have
		if m.Say == 1 {
			a, err := loop.Handle(ctx, m.Body, m.Past)
			if err != nil {
				w.t.Error(err)
				return
			}
			u.Say, u.Body, u.Ledger, u.Records = 1, attack(a.Release.Bytes()), a.Ledger, a.Records
		}
		// A busy broker may not take it at once; what never arrives lets the study wait too long.
		sealed := must(f.Secrets.Key.Seal(f.Coordinator, answer, must(encoding.Marshal(u))))
		for tryPut(ctx, conn, answer, sealed) != nil && ctx.Err() == nil {
			pause(ctx)
		}
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// A site that belongs to a study and answers what is not valid, whatever is wrong
// with it, leaves the study; the others end it with the model that they have without
// the site.
func TestSiteThatAnswersNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(append(sites, "west")...)
	w.begin(sites...)
	change := func(name string, value any) func([]byte) []byte {
		return func(honest []byte) []byte {
			var e map[string]any
			check(t, encoding.Unmarshal(honest, &e))
			e[name] = value
			return must(encoding.Marshal(e))
		}
	}
	attacks := []struct {
		name   string
		attack func(honest []byte) []byte
	}{
		{"random", func([]byte) []byte { return []byte{0xff, 1, 2} }},
		{"nothing", func([]byte) []byte { return nil }},
		{"half", func(honest []byte) []byte { return honest[:len(honest)/2] }},
		{"panics", change("body", []byte("panic"))},
		{"bomb", change("body", []byte("bomb"))},
		{"another-site", change("site", "north")},
		{"another-study", change("study", strings.Repeat("0", 64))},
		{"another-round", change("round", 9)},
		{"another-task", change("task", bytes.Repeat([]byte{1}, 32))},
		{"another-version", change("version", 1)},
		{"another-request", change("request", map[string]any{"protection": 1})},
		{"sums", change("sums", []any{map[string]any{"sum": 0, "blocks": [][]int{{1}}}})},
		{"empty-sums", change("sums", make([]map[string]any, 1<<16))},
		{"long", change("body", make([]byte, 1<<20))},
	}
	f := w.folder("west")
	conn := w.connect(f)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var plans []*study.Plan
	var digests []string
	var standings []federation.Standing
	for _, a := range attacks {
		p := plan(a.name, 3, 3, append(sites, "west")...)
		d := w.submit(p)
		plans, digests = append(plans, p), append(digests, d)
		standings = append(standings, federation.Standing{Study: d, Word: federation.Approved})
		group.Go(func() { w.answer(ctx, f, conn, p, d, a.attack) })
	}
	// Its hello says to the coordinator that it approves of all.
	value, _, err := conn.Wait(within(t), federation.BoardKey("west"), 0)
	check(t, err)
	board, err := federation.OpenBoard(f.Secrets.Key, f.Coordinator, "west", value)
	check(t, err)
	put(t, conn, federation.HelloKey("west"),
		must(federation.Greet(f.Secrets.Key, f.Coordinator, f.Config.Certificate, "west",
			federation.Hello{Program: federation.LocalProgram(methods), Nonce: board.Nonce, Life: []byte("x"), Count: 1,
				Studies: standings})))
	for _, d := range digests {
		w.approve(d, sites...)
	}
	for i, d := range digests {
		w.ended(d, sites...)
		if strings.Contains(w.trace(plans[i]), "bomb") || strings.Contains(w.trace(plans[i]), "panic") ||
			strings.Contains(w.trace(plans[i]), "west:") {
			t.Errorf("%s: the model holds what was refused: %q", attacks[i].name, w.trace(plans[i]))
		}
	}
	if lines := audit(t, w.co.Path, "left west: "); len(lines) != len(attacks) {
		t.Errorf("of %d studies the site has left %q", len(attacks), lines)
	}
}
