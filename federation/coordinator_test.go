package federation_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	enats "parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/privacy/ledger"
	"parley/sitestore"
	"parley/study"
)

// broker is a client with the rights of the coordinator's own account: it reads and
// writes every value, as whoever runs the broker does.
func (w *world) broker() *enats.Conn {
	w.t.Helper()
	f := w.folder(sites[0])
	seed, public, err := enats.NewUser()
	check(w.t, err)
	o := enats.Options{URLs: f.Config.URLs, Roots: pool(f.Config.Roots),
		JWT: must(w.co.Secrets.Authority.Coordinator(public)), Seed: seed, Name: "coordinator", Replicas: 1}
	c, err := enats.Connect(o)
	check(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// charges is how many lines the ledger of a site has, and releases what its outbox.
func (w *world) charges(name string) (n int) {
	w.t.Helper()
	err := sitestore.Look(w.folder(name).StorePath(), func(s *sitestore.Store) error {
		l, err := ledger.Read(s)
		if err == nil {
			n = len(l.Entries)
		}
		return err
	})
	check(w.t, err)
	return n
}

// What is posted for a site by whoever has the coordinator's key has no effect but on
// what persons are asked; and what others post, none.
func TestHostileCoordinator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	want := w.quiet(3)
	conn, f := w.broker(), w.folder("north")
	peer := f.Secrets.Key.Peer()
	before := w.charges("north")
	key := federation.BoardKey("north")
	outside := filepath.Join(w.dir, "outside")
	honest, _, err := conn.Get(within(t), key)
	check(t, err)
	other := must(wire.NewKey())
	long := plan("long", 3, 1, "north")
	for i := range 20000 {
		long.Views[0].Features = append(long.Views[0].Features, study.Feature{Name: fmt.Sprintf("feature-%020d", i),
			Kind: study.Number})
	}
	noted := func() int { return len(audit(t, w.path("north"), "what stood for the coordinator's board")) }
	n := byte(0)
	post := func(k *wire.Key, taken bool, studies ...federation.Posted) {
		t.Helper()
		n++
		nonce, lines := bytes.Repeat([]byte{n}, 16), noted()
		board := must(federation.Post(k, peer, "north", federation.Board{Program: federation.LocalProgram(methods),
			Nonce: nonce, Studies: studies}))
		stands := func() { // the honest coordinator, whose own board may still change, puts that over it
			if held, _, err := conn.Get(within(t), key); err != nil || !bytes.Equal(held, board) {
				put(t, conn, key, board)
			}
		}
		if !taken {
			w.eventually("it is noted", func() bool { stands(); return noted() > lines })
			return
		}
		w.eventually("north has read it", func() bool {
			stands()
			value, _, err := conn.Get(within(t), federation.HelloKey("north"))
			check(t, err)
			h, _, err := federation.OpenHello(w.co.Secrets.Key, "north", value)
			return err == nil && bytes.Equal(h.Nonce, nonce)
		})
	}
	p := plan("forged", 3, 1, "north")
	digest := must(p.Digest()).String()
	encoded := must(p.Encode())
	var many []federation.Posted
	for i := range 150 {
		q := *p
		q.Seed = uint64(i)
		many = append(many, federation.Posted{Study: must(q.Digest()).String(),
			Plan: federation.Compress(must(q.Encode()))})
	}
	// the right address, another key
	post(other, false, federation.Posted{Study: digest, Plan: federation.Compress(encoded)})
	// another digest
	post(w.co.Secrets.Key, true, federation.Posted{Study: strings.Repeat("0", 64), Plan: federation.Compress(encoded)})
	// without its plan
	post(w.co.Secrets.Key, true, federation.Posted{Study: digest})
	post(w.co.Secrets.Key, false, federation.Posted{Study: "../../outside", Plan: federation.Compress(encoded)})
	post(w.co.Secrets.Key, true, federation.Posted{Study: strings.Repeat("0", 64),
		Needs: strings.Repeat("install this\n", 100000)})
	if data, err := long.Encode(); err == nil {
		post(w.co.Secrets.Key, true, federation.Posted{Study: must(long.Digest()).String(),
			Plan: federation.Compress(data)})
	}
	for _, value := range [][]byte{[]byte("nonsense"), must(w.co.Secrets.Key.Seal(peer, key, []byte("nonsense"))),
		must(w.co.Secrets.Key.Seal(peer, federation.BoardKey("south"), []byte{1}))} {
		put(t, conn, key, value)
	}
	post(w.co.Secrets.Key, true, many...)
	w.eventually("a day's plans are kept, and it is noted that the others wait", func() bool {
		return len(must(f.Studies())) >= 100 && len(audit(t, w.path("north"), "100 new plans within a day")) > 0
	})
	if n := len(must(f.Studies())); n > 100 {
		t.Errorf("%d plans are kept", n)
	}
	put(t, conn, key, honest)
	if after := w.charges("north"); after != before {
		t.Errorf("%d charges, and %d before", after, before)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file was written outside of the folder")
	}
	if entries := must(os.ReadDir(w.dir)); len(entries) != 4 {
		t.Errorf("%v", entries)
	}
	// The honest one goes on: a restart posts anew.
	w.end("north") // whoever cleans up does it while nothing runs
	check(t, os.RemoveAll(filepath.Join(w.path("north"), "studies")))
	w.begin("north")
	w.halt()
	w.serve()
	q := plan("honest", 3, 3, sites...)
	d := w.submit(q)
	w.approve(d, sites...)
	w.ended(d, sites...)
	if got := w.trace(q); got != want {
		t.Errorf("%q", got)
	}
}

// Whoever runs the broker can keep a study from going on, while it does so, and
// change nothing in it: values of others, old ones, none, and altered ones are passed
// over, and the study ends when they are let be.
func TestHostileBroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	want := w.quiet(6)
	conn := w.broker()
	p := plan("disturbed", 6, 3, sites...)
	d := w.submit(p)
	var keys []string
	for _, b := range []string{federation.Control, d} {
		for _, name := range sites {
			keys = append(keys, wire.TaskKey(b, name), wire.AnswerKey(b, name))
		}
	}
	keys = append(keys, d+".coordinator")
	kept := map[string][][]byte{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		i := 0
		for ; ctx.Err() == nil && i < 150; i++ {
			key := keys[i*7%len(keys)]
			value, revision, err := conn.Get(ctx, key)
			if err != nil || revision == 0 {
				pause(ctx)
				continue
			}
			if !slices.ContainsFunc(kept[key], func(v []byte) bool { return bytes.Equal(v, value) }) {
				kept[key] = append(kept[key], value)
			}
			switch other := keys[(i*5+3)%len(keys)]; i % 4 {
			case 0: // of another's
				if len(kept[other]) > 0 {
					value = kept[other][i%len(kept[other])]
				}
			case 1: // an old one
				value = kept[key][i%len(kept[key])]
			case 2:
				if value = bytes.Clone(value); len(value) > 0 { // unless it was emptied before
					value[i*13%len(value)] ^= 1
				}
			case 3:
				value = nil
			}
			conn.Put(ctx, key, value, revision)
			pause(ctx)
		}
		done <- i
	}()
	w.approve(d, sites...)
	t.Logf("%d values were changed", <-done)
	w.ended(d, sites...)
	cancel()
	if got := w.trace(p); got != want {
		t.Errorf("%q, and undisturbed %q", got, want)
	}
	for _, name := range sites {
		if n := w.charges(name); n != 12 {
			t.Errorf("site %s was charged %d times, want 12", name, n)
		}
	}
	board := federation.BoardKey("south")
	put(t, conn, board, []byte("nonsense"))
	w.eventually("the coordinator's board stands again", func() bool {
		value, _, err := conn.Get(within(t), board)
		return err == nil && string(value) != "nonsense"
	})
}

// Somebody deletes the broker's files while it serves, which goes on with those that are open:
// it is noticed, the broker begins anew, and a study goes on.
func TestBrokerWhoseFilesAreDeletedBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	p := plan("begun", 3, 1, "north")
	d := w.submit(p)
	w.eventually("the site has the plan", func() bool {
		_, err := w.folder("north").Plan(d)
		return err == nil
	})
	broker := filepath.Join(w.co.Path, "broker")
	os.RemoveAll(broker) // as far as it can: files may come meanwhile
	w.eventually("the broker has begun anew", func() bool {
		return strings.Contains(w.log.String(), "its files are gone") &&
			strings.Contains(w.log.String(), "takes writes again")
	})
	w.approve(d, "north")
	w.ended(d, "north")
}
