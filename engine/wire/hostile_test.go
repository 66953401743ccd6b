package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/engine/wire"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

// ends is a study over a wire, with everything in memory.
type ends struct {
	t      testing.TB
	net    wire.Wire
	plan   *study.Plan
	id     string
	keys   map[string]*wire.Key // "" is the coordinator's
	stores map[string]*sitestore.Memory
	mu     sync.Mutex
	audit  []string
	shares map[string]string
	data   dataset.Source // of all sites
	busy   atomic.Bool    // one of them computes
}

func newEnds(t testing.TB, net wire.Wire, plan *study.Plan) *ends {
	t.Helper()
	digest := testkit.Get(plan.Digest())(t)
	e := &ends{t: t, net: net, plan: plan, id: digest.String(), keys: map[string]*wire.Key{},
		stores: map[string]*sitestore.Memory{}, shares: map[string]string{}, data: enginetest.ToyRows(5)}
	for _, site := range append([]string{""}, plan.Sites...) {
		e.keys[site] = testkit.Get(wire.NewKey())(t)
		e.stores[site] = sitestore.NewMemory()
	}
	return e
}

func (e *ends) noted(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.audit = append(e.audit, line)
}

func (e *ends) site(ctx context.Context, site string) *engine.Site {
	e.t.Helper()
	h := host.Host{Site: site, Methods: method.Registry{enginetest.Toy{}}, Data: e.data, Store: e.stores[site],
		Policy: privacy.SimulationPolicy()}
	s, err := h.Open(ctx, e.plan)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// serve starts the sites; the returned function waits for them.
func (e *ends) serve(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	for _, site := range e.plan.Sites {
		s := &wire.Server{Wire: e.net, Key: e.keys[site], Peer: e.keys[""].Peer(), Site: e.site(ctx, site),
			Again: time.Minute, Audit: e.noted, Working: e.busy.Store,
			End: func(share []byte, _ bool) error {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.shares[site] = string(share)
				return nil
			}}
		wg.Go(func() {
			if err := s.Serve(ctx); err != nil && !errors.Is(err, context.Canceled) {
				e.t.Errorf("site %s: %v", site, err)
			}
		})
	}
	return wg.Wait
}

func (e *ends) links(ctx context.Context) map[string]engine.Link {
	term, err := wire.Claim(ctx, e.net, e.keys[""], e.id, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	links := map[string]engine.Link{}
	for _, site := range e.plan.Sites {
		links[site] = &wire.Link{Wire: e.net, Key: e.keys[""], Peer: e.keys[site].Peer(), Study: e.id, Site: site,
			Term: term, Again: time.Minute, Audit: e.noted}
	}
	return links
}

func (e *ends) coordinator(links map[string]engine.Link) *engine.Coordinator {
	half, err := enginetest.Toy{}.Coordinator(e.plan)
	if err != nil {
		e.t.Fatal(err)
	}
	c := &engine.Coordinator{Study: e.id, Revision: 1, Sites: e.plan.Sites, Quorum: e.plan.Quorum, Method: half,
		Requests: map[string][]privacy.Listed{}, Links: links}
	for _, site := range e.plan.Sites {
		if c.Requests[site], err = (enginetest.Toy{}).Requests(e.plan, site); err != nil {
			e.t.Fatal(err)
		}
	}
	return c
}

// run runs the study to its end, and tells every site.
func (e *ends) run(ctx context.Context) *engine.Outcome {
	e.t.Helper()
	links := e.links(ctx)
	out, err := e.coordinator(links).Run(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	for site, l := range links {
		end := func() error { return l.(*wire.Link).End(ctx, out.Shares[site], out.Pasts[site]) }
		if slices.Contains(out.Left, site) {
			end = func() error { return l.(*wire.Link).Dismiss(ctx, nil) }
		}
		if err := end(); err != nil {
			e.t.Fatal(err)
		}
	}
	return out
}

// With the end each site keeps the whole history, whose last records came with no
// task: in an asynchronous study the order of the last answers is known from nowhere
// else, once the coordinator has lost everything.
func TestTheEndCompletesTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, wire.NewMemory(), enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 4, Async: true}, 3, "north",
			"centre", "south"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		out := e.run(ctx)
		cancel()
		wait()
		for site, store := range e.stores {
			if site == "" {
				continue
			}
			kept, err := store.Records(e.id, 0)
			if err != nil || !slices.EqualFunc(kept, out.History, bytes.Equal) {
				t.Errorf("site %s has kept %d of %d records, %v", site, len(kept), len(out.History), err)
			}
		}
	})
}

func TestStudyOverAWireEndsAtEverySite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, wire.NewMemory(), enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 3, "north",
			"centre", "south"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		out := e.run(ctx)
		cancel()
		wait()
		if len(out.Rounds) != 3 || e.shares["south"] != "for south" || len(e.audit) != 0 {
			t.Errorf("%d rounds, shares %v, audit %q", len(out.Rounds), e.shares, e.audit)
		}
	})
}

// meddler is a wire whose keeper does something whenever a value is put.
type meddler struct {
	*wire.Memory
	put func(key string, value []byte) (instead []byte)
}

func (m meddler) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	return m.Memory.Put(ctx, key, m.put(key, value), after)
}

// A keeper of the wire, another site, or whoever else has no key of an end, changes
// nothing: what they put is passed over with one line of audit, and the study goes on.
func TestMeddlingIsPassedOver(t *testing.T) {
	sites := []string{"north", "centre", "south"}
	for name, meddle := range map[string]func(e *ends, n int, key string, value []byte) []byte{
		"random bytes": func(_ *ends, _ int, _ string, _ []byte) []byte { return []byte("not a message") },
		"nothing":      func(_ *ends, _ int, _ string, _ []byte) []byte { return nil },
		"a bit flipped": func(_ *ends, n int, _ string, value []byte) []byte {
			value[n*7%len(value)] ^= 1
			return value
		},
		"cut short":              func(_ *ends, _ int, _ string, value []byte) []byte { return value[:len(value)-1] },
		"ten megabytes of zeros": func(_ *ends, _ int, _ string, _ []byte) []byte { return make([]byte, 10<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := meddler{Memory: wire.NewMemory()}
				e := newEnds(t, &net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 3, sites...))
				var mu sync.Mutex
				times := map[string]int{}
				changed := 0
				net.put = func(key string, value []byte) []byte {
					mu.Lock()
					defer mu.Unlock()
					if times[key]++; times[key]%2 == 1 && !strings.HasSuffix(key, ".coordinator") { // every other time
						changed++
						return meddle(e, changed, key, bytes.Clone(value))
					}
					return value
				}
				ctx, cancel := context.WithCancel(t.Context())
				wait := e.serve(ctx)
				out := e.run(ctx)
				cancel()
				wait()
				if len(out.Left) > 0 || len(out.Rounds) != 3 {
					t.Errorf("left %v after %d rounds", out.Left, len(out.Rounds))
				}
				if len(e.audit) == 0 || len(e.audit) > changed {
					t.Errorf("%d values were changed, and the audit has %d lines: %q", changed, len(e.audit), e.audit)
				}
				for _, line := range e.audit {
					if strings.Contains(line, "\n") || !strings.Contains(line, "passed over") {
						t.Errorf("a line of audit says %q", line)
					}
				}
				for _, site := range sites {
					if lines, _ := e.stores[site].Reservations(0); len(lines) != 3 {
						t.Errorf("site %s was charged %d times", site, len(lines))
					}
				}
			})
		})
	}
}

// Messages that are whole, and were made by somebody with a key, but not for this
// end, this direction, or this study, change nothing either.
func TestMessagesOfOthersArePassedOver(t *testing.T) {
	sites := []string{"north", "centre", "south"}
	synctest.Test(t, func(t *testing.T) {
		net := wire.NewMemory()
		e := newEnds(t, net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2}, 3, sites...))
		other := newEnds(t, wire.NewMemory(), enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 4}, 3, sites...))
		stranger := testkit.Get(wire.NewKey())(t)
		// What a stranger, a site with another site's place, and a coordinator of another study
		// can put for north: tasks under keys of their own.
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		put := func(by *wire.Key, to, id, site string) {
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			l := &wire.Link{Wire: renamed{net, wire.TaskKey(id, site), wire.TaskKey(e.id, "north")}, Key: by,
				Peer: e.keys[to].Peer(), Study: id, Site: site, Again: time.Hour}
			l.Exchange(short, []byte("a task"), engine.History{})
			time.Sleep(2 * time.Second)
		}
		put(stranger, "north", e.id, "north")        // forged by a stranger
		put(e.keys["south"], "north", e.id, "north") // by another site
		put(e.keys[""], "centre", e.id, "centre")    // moved from another site's place
		put(e.keys[""], "north", other.id, "north")  // moved from another study
		put(e.keys["north"], "north", e.id, "north") // reflected: by the site itself
		out := e.run(ctx)
		cancel()
		wait()
		if len(e.audit) != 5 {
			t.Errorf("%d lines of audit: %q", len(e.audit), e.audit)
		}
		if len(out.Left) > 0 {
			t.Errorf("left: %v", out.Left)
		}
		if lines, _ := e.stores["north"].Reservations(0); len(lines) != 2 {
			t.Errorf("north was charged %d times", len(lines))
		}
	})
}

// renamed puts one value in another's place.
type renamed struct {
	*wire.Memory
	from, to string
}

func (r renamed) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	if key != r.from {
		return 0, errors.New("not this one")
	}
	_, revision, _ := r.Memory.Get(ctx, r.to)
	return r.Memory.Put(ctx, r.to, value, revision)
}

func (r renamed) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, nil }

// Of two coordinators with the same keys the later one goes on, and the earlier stops.
func TestLaterCoordinatorFencesTheEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, wire.NewMemory(), enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 3, "north",
			"centre", "south"))
		failed := make(chan error, 1)
		earlier := e.coordinator(e.links(t.Context())) // nobody serves yet: it waits
		go func() {
			_, err := earlier.Run(t.Context())
			failed <- err
		}()
		time.Sleep(10 * time.Second)
		links := e.links(t.Context())
		ended := make(chan error, 1)
		var out *engine.Outcome
		go func() {
			var err error
			out, err = e.coordinator(links).Run(t.Context())
			ended <- err
		}()
		synctest.Wait() // it has written to the sites, before anybody answers the earlier one
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		if err := <-ended; err != nil || len(out.Rounds) != 3 {
			t.Fatalf("the later one: %v", err)
		}
		if err := <-failed; !errors.Is(err, wire.ErrFenced) {
			t.Errorf("the earlier one: %v", err)
		}
		for site, l := range links {
			testkit.Do(t, l.(*wire.Link).End(t.Context(), out.Shares[site], out.Pasts[site]))
		}
		cancel()
		wait()
	})
}

// Sites that go on running, and have seen many terms, answer a coordinator that starts again after
// the wire has lost them all; and an earlier claim that comes late does not stop it.
func TestLostTermsAreNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := wire.NewMemory()
		e := newEnds(t, net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 3, "north", "centre", "south"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		for range 5 {
			e.links(t.Context())
		}
		e.run(t.Context())
		claim := e.id + ".coordinator"
		late, _, err := net.Get(ctx, claim)
		if err != nil {
			t.Fatal(err)
		}
		net.Lose()
		time.Sleep(time.Second)
		links := e.links(t.Context())
		_, revision, err := net.Get(ctx, claim)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Get(net.Put(ctx, claim, late, revision))(t)
		soon, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		if _, err := e.coordinator(links).Run(soon); err != nil {
			t.Errorf("the coordinator that started again: %v", err)
		}
		cancel()
		wait()
	})
}

// A coordinator whose clock was ahead, and whose wire has lost its claim, hears of the term
// that sites have seen, and claims a later one. What somebody makes up is no term.
func TestSitesTellOfALaterTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := wire.NewMemory()
		e := newEnds(t, net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 2, "north", "centre", "south"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		ahead := testkit.Get(wire.Claim(ctx, net, e.keys[""], e.id,
			uint64(time.Now().Add(24*time.Hour).UnixMilli())))(t)
		for _, l := range e.links(ctx) {
			ahead = l.(*wire.Link).Term // which is above the first
			testkit.Get(l.(*wire.Link).History(ctx))(t)
		}
		net.Lose()
		links := e.links(ctx)
		_, err := e.coordinator(links).Run(ctx)
		var earlier *wire.EarlierError
		if !errors.As(err, &earlier) || earlier.Seen != ahead {
			t.Fatalf("with an earlier term: %v", err)
		}
		term := testkit.Get(wire.Claim(ctx, net, e.keys[""], e.id, earlier.Seen))(t)
		for _, l := range links {
			l.(*wire.Link).Term = term
		}
		if out, err := e.coordinator(links).Run(ctx); err != nil || len(out.Left) > 0 {
			t.Errorf("with a later one: %v", err)
		}
		cancel()
		wait()
	})
}

// A coordinator that has lost everything but its keys and the plan asks the sites for
// the history that they have kept.
func TestHistoryIsHadBackFromTheSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, wire.NewMemory(), enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 4, Async: true}, 2, "north",
			"centre", "south"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := e.serve(ctx)
		first := testkit.Get(e.coordinator(e.links(ctx)).Run(ctx))(t)
		links := e.links(ctx)
		var histories [][][]byte
		for _, l := range links {
			h := testkit.Get(l.(*wire.Link).History(ctx))(t)
			histories = append(histories, h)
		}
		follow, err := wire.Longest(histories...)
		if err != nil || len(follow) == 0 {
			t.Fatalf("%d records, %v", len(follow), err)
		}
		for i, r := range follow {
			if !bytes.Equal(r, first.History[i]) {
				t.Fatalf("record %d differs", i)
			}
		}
		c := e.coordinator(links)
		c.Follow = follow
		again, err := c.Run(ctx)
		if err != nil || len(again.Rounds) != len(first.Rounds) {
			t.Fatalf("rebuilt: %v", err)
		}
		for _, site := range e.plan.Sites {
			if lines, _ := e.stores[site].Reservations(0); len(lines) != 4 {
				t.Errorf("site %s was charged %d times", site, len(lines))
			}
		}
		if _, err := wire.Longest(follow, [][]byte{{1}}); err == nil {
			t.Error("two different histories were joined")
		}
		cancel()
		wait()
	})
}

func TestKeysAreReadBack(t *testing.T) {
	k := testkit.Get(wire.NewKey())(t)
	data := testkit.Get(k.MarshalBinary())(t)
	again := testkit.Get(wire.ParseKey(data))(t)
	one, _ := k.Peer().MarshalBinary()
	two, _ := again.Peer().MarshalBinary()
	if !bytes.Equal(one, two) {
		t.Error("another key was read back")
	}
	if _, err := wire.ParsePeer(one); err != nil {
		t.Error(err)
	}
	for i := range data {
		if _, err := wire.ParseKey(data[:i]); err == nil {
			t.Errorf("%d bytes of a key were taken for one", i)
		}
	}
}

// counter counts what is put.
type counter struct {
	*wire.Memory
	mu    sync.Mutex
	bytes int
	puts  int
}

func (c *counter) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	c.mu.Lock()
	c.bytes += len(value)
	c.puts++
	c.mu.Unlock()
	return c.Memory.Put(ctx, key, value, after)
}

// With 200 sites and 20 rounds the history takes at most 300 bytes a round, everything at
// most 1.2 × the bodies + 1 kB for each site and round, and all ends together 256 MB.
func TestTwoHundredSites(t *testing.T) {
	n, rounds := testkit.Sized(20, 200), 20
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("hospital-%03d", i))
	}
	net := &counter{Memory: wire.NewMemory()}
	e := newEnds(t, net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: rounds}, n, names...))
	ctx, cancel := context.WithCancel(t.Context())
	wait := e.serve(ctx)
	c := e.coordinator(e.links(ctx))
	var peak uint64
	c.Observe = func(engine.Event) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse+m.StackInuse)
	}
	out, err := c.Run(ctx)
	cancel()
	wait()
	if err != nil {
		t.Fatal(err)
	}
	bodies := 0
	for _, r := range out.Rounds {
		for range r.Sites {
			bodies += 2 + 8 // what the toy asks and answers, about
		}
	}
	each := float64(net.bytes) / float64(n*rounds)
	if most := 1.2*float64(bodies)/float64(n*rounds) + 1000; each > most {
		t.Errorf("%.0f bytes for each site and round, want at most %.0f", each, most)
	}
	past := engine.Past{Records: out.History[:1], Own: []engine.Claim{{Round: 20, Digest: make([]byte, 32)}},
		Ledger: engine.Mark{Lines: 1000, Hash: make([]byte, 32)}}
	data := testkit.Get(encoding.Marshal(past))(t)
	if len(data) > 300 {
		t.Errorf("the history of a round takes %d bytes", len(data))
	}
	if peak > 256<<20 {
		t.Errorf("%d MB in use", peak>>20)
	}
	t.Logf("%.0f bytes a site and round in %d messages; history %d bytes a round; %d MB in use", each, net.puts,
		len(data), peak>>20)
}

// slow has rows each of which takes a second to read.
type slow struct{ enginetest.ToyRows }

func (s slow) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range s.ToyRows.Rows(ctx) {
			time.Sleep(time.Second)
			if !yield(row, err) {
				return
			}
		}
	}
}

// timed notes when a site puts something.
type timed struct {
	wire.Wire
	mu   sync.Mutex
	puts []time.Duration
	from time.Time
}

func (w *timed) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	if strings.Contains(key, ".answer.") {
		w.mu.Lock()
		w.puts = append(w.puts, time.Since(w.from))
		w.mu.Unlock()
	}
	return w.Wire.Put(ctx, key, value, after)
}

// Where a plan says when answers go, how many rows a site has shows in no time: not in that of
// its readiness, nor of its answers, nor of its receipt of the end.
func TestTimesSayNothingOfRows(t *testing.T) {
	var puts [][]time.Duration
	for _, n := range []enginetest.ToyRows{0, 5, 500} {
		synctest.Test(t, func(t *testing.T) {
			p := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2, Private: true}, 1, "north")
			p.Privacy.AnswerAfter = "1h"
			w := &timed{Wire: wire.NewMemory(), from: time.Now()}
			e := newEnds(t, w, p)
			e.data = slow{n}
			ctx, cancel := context.WithCancel(t.Context())
			wait := e.serve(ctx)
			if took := time.Since(w.from); took != 0 {
				t.Errorf("%d rows: it serves after %v", n, took)
			}
			e.run(t.Context())
			cancel()
			wait()
			puts = append(puts, w.puts)
		})
	}
	if len(puts[0]) < 3 || puts[0][0] < time.Hour || !slices.Equal(puts[0], puts[1]) ||
		!slices.Equal(puts[0], puts[2]) {
		t.Errorf("north puts at %v", puts)
	}
}
