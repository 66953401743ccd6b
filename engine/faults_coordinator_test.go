package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
	"parley/study"
)

// A release that is not valid, whatever is wrong with it, makes its site leave; the
// state is as if it had not been, and the study goes on.
func TestInvalidReleaseMakesItsSiteLeave(t *testing.T) {
	plan := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 2, sites...)
	type hostile func(task []byte, honest []byte) []byte
	seal := func(change func(e map[string]any)) hostile {
		return func(_, honest []byte) []byte {
			var e map[string]any
			testkit.Do(t, wire.Unmarshal(honest, &e))
			change(e)
			return enc(t, e)
		}
	}
	for name, attack := range map[string]hostile{
		"random bytes":           func(_, _ []byte) []byte { return []byte{0xff, 1, 2} },
		"nothing":                func(_, _ []byte) []byte { return nil },
		"a body that panics":     seal(func(e map[string]any) { e["body"] = []byte("panic") }),
		"a body that is refused": seal(func(e map[string]any) { e["body"] = []byte("bomb") }),
		"another site's name":    seal(func(e map[string]any) { e["site"] = "north" }),
		"another study":          seal(func(e map[string]any) { e["study"] = strings.Repeat("0", 64) }),
		"another round":          seal(func(e map[string]any) { e["round"] = 9 }),
		"another task":           seal(func(e map[string]any) { e["task"] = bytes.Repeat([]byte{1}, 32) }),
		"an old version":         seal(func(e map[string]any) { e["version"] = 1 }),
		"another request":        seal(func(e map[string]any) { e["request"] = noisedSum }),
		"sums that nobody asked": seal(func(e map[string]any) {
			e["sums"] = []any{map[string]any{"sum": 0, "blocks": [][]int{{1}}}}
		}),
		"more than was declared":   seal(func(e map[string]any) { e["body"] = make([]byte, 1<<20) }),
		"noise that is seeded":     nil,
		"the release of a stopped": func(_, honest []byte) []byte { return honest[:len(honest)/2] },
	} {
		w := enginetest.New(sites...)
		p, quorum := plan, 2
		if name == "noise that is seeded" {
			p = enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3, Private: true}, quorum, sites...)
		}
		data := map[string]dataset.Source{"north": rows(3), "centre": rows(4), "south": rows(5)}
		var why error
		run := func() (*engine.Outcome, error) {
			w.Start(-1)
			c := testkit.Get(w.Coordinator(enginetest.Toy{}, p, data))(t)
			c.Simulation = false
			c.Observe = func(e engine.Event) {
				if e.Left != nil {
					why = e.Left.Reason
				}
			}
			if attack == nil {
				h := host.Host{Site: "south", Methods: method.Registry{enginetest.Toy{}}, Data: data["south"],
					Store:  w.Stores["south"],
					Policy: privacy.SimulationPolicy(), Options: []privacy.Option{privacytest.Seeded(1)}}
				site := testkit.Get(h.Open(t.Context(), p))(t)
				c.Links["south"] = w.Link(site)
				return c.Run(t.Context())
			}
			honest, n := c.Links["south"], 0
			c.Links["south"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply,
				error) {
				r, err := honest.Exchange(ctx, task, past)
				if n++; n == 2 && err == nil {
					r.Release = attack(task, r.Release)
				}
				return r, err
			})
			return c.Run(t.Context())
		}
		out, err := run()
		if err != nil {
			t.Errorf("%s: the study ended: %v", name, err)
			continue
		}
		if !slices.Equal(out.Left, []string{"south"}) || why == nil || !strings.Contains(why.Error(), "not valid") {
			t.Errorf("%s: left %v, because %v", name, out.Left, why)
		}
		if trace := string(out.Result.Files[0].Data); strings.Contains(trace, "bomb") ||
			strings.Contains(trace, "panic") {
			t.Errorf("%s: the state holds what was refused", name)
		}
		if got := out.Rounds[1].Sites; name != "noise that is seeded" &&
			(len(got) != 3 || got[2].Left != "its release was not valid") {
			t.Errorf("%s: the second round says %+v", name, got)
		}
	}
}

// Hostile releases allocate no more than a few times what was declared.
func TestBombsAllocateLittle(t *testing.T) {
	task, past := forge(t, 1, "sum", "0")
	store := sitestore.NewMemory()
	a := testkit.Get(siteOn(store, slow{}, nil, listing(10, noisedSum)).Handle(t.Context(), task, past))(t)
	one := enc(t, noisedSum.Sums)
	i := bytes.Index(a.Release.Bytes(), one)
	if i < 0 {
		t.Fatal("the release does not hold its request")
	}
	n := 1 << 20
	bomb := append(bytes.Clone(a.Release.Bytes()[:i]), 0x9a, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	bomb = append(append(bomb, bytes.Repeat([]byte{0xa0}, n)...), a.Release.Bytes()[i+len(one):]...)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := privacy.Open(bomb, noisedSum); err == nil {
				b.Fatal("a bomb was opened")
			}
		}
	})
	if got := result.AllocedBytesPerOp(); got > 1<<20 {
		t.Errorf("a release of %d bytes made Open allocate %d", len(bomb), got)
	}
}

// toyStudyOf starts a study of the other toy anew on what the world has kept, as
// over a network.
func toyStudyOf(t testing.TB, w *enginetest.World, plan *study.Plan) *engine.Coordinator {
	t.Helper()
	w.Start(-1)
	c := testkit.Get(w.Coordinator(enginetest.Toy{}, plan,
		map[string]dataset.Source{"north": rows(3), "centre": rows(4), "south": rows(5)}))(t)
	c.Simulation = false
	return c
}

// A link's trouble is no departure, and a rebuilt study follows the history, with
// its departures, to the same model.
func TestRebuildFollowsTheHistory(t *testing.T) {
	for _, async := range []bool{false, true} {
		w := enginetest.New(sites...)
		plan := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 4, Async: async}, 2, sites...)
		c := toyStudyOf(t, w, plan)
		real, n := c.Links["centre"], 0
		c.Links["centre"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
			if n++; n == 3 {
				return engine.Reply{}, &engine.Refusal{Public: "no more"}
			}
			return real.Exchange(ctx, task, past)
		})
		out, err := c.Run(t.Context())
		if err != nil || !slices.Equal(out.Left, []string{"centre"}) {
			t.Fatalf("left %v, %v", out, err)
		}
		older := toyStudyOf(t, w.WithoutCheckpoint(), plan) // a copy of before the first round
		older.Grace = time.Minute
		if forked := (*engine.ForkedError)(nil); async {
			if _, err := older.Run(t.Context()); !errors.As(err, &forked) {
				t.Errorf("an older copy goes on: %v", err)
			}
		}
		w = w.WithoutCheckpoint()
		again := toyStudyOf(t, w, plan)
		again.Follow = out.History
		link, asked := again.Links["centre"], 0
		again.Links["centre"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply,
			error) {
			asked++
			return link.Exchange(ctx, task, past)
		})
		same, err := again.Run(t.Context())
		if err != nil {
			t.Fatalf("rebuilding: %v", err)
		}
		who := func(r engine.Round, to engine.Round) bool {
			return slices.EqualFunc(r.Sites, to.Sites, func(a, b engine.Exchange) bool {
				return a.Site == b.Site && a.Release == b.Release
			})
		}
		if asked != 2 {
			t.Errorf("asynchronous %v: the site that left is asked %d times, and has answered 2", async, asked)
		}
		if !slices.EqualFunc(same.Rounds, out.Rounds, who) {
			t.Errorf("asynchronous %v: rebuilding recorded %+v, want %+v", async, same.Rounds, out.Rounds)
		}
		kept := testkit.Get(toyStudyOf(t, w, plan).Run(t.Context()))(t) // from its checkpoint
		if got, want := string(testkit.Get(json.Marshal(kept.Rounds))(t)),
			string(testkit.Get(json.Marshal(same.Rounds))(t)); got != want {
			t.Errorf("asynchronous %v: the checkpoint records %s, want %s", async, got, want)
		}
		if !bytes.Equal(same.Result.Files[0].Data, out.Result.Files[0].Data) || !slices.Equal(same.Left, out.Left) {
			t.Errorf("asynchronous %v: rebuilding gave another model", async)
		}
		// a checkpoint of a branch that no site follows
		stray, astray := enginetest.New(sites...), w.WithoutCheckpoint()
		branch := toyStudyOf(t, stray, plan)
		branch.Links["south"] = linkFunc(func(context.Context, []byte, engine.History) (engine.Reply, error) {
			return engine.Reply{}, &engine.Refusal{Public: "never"}
		})
		testkit.Get(branch.Run(t.Context()))(t)
		astray.Checkpoint, astray.Log = stray.Checkpoint, stray.Log
		back := toyStudyOf(t, astray, plan)
		back.Follow = out.History
		if same, err := back.Run(t.Context()); err != nil ||
			!bytes.Equal(same.Result.Files[0].Data, out.Result.Files[0].Data) {
			t.Errorf("asynchronous %v: with the checkpoint of another branch: %v", async, err)
		}
		other := toyStudyOf(t, enginetest.New(sites...),
			enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 4, Async: !async}, 2, sites...))
		other.Follow = out.History
		if _, err := other.Run(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "the history that is followed") {
			t.Errorf("another study followed it: %v", err)
		}
	}
}

func TestTroubleOfALinkIsNoDeparture(t *testing.T) {
	w := enginetest.New(sites...)
	m := toy{sites: sites, rounds: 2}
	c := process(w, m, "", 2, nil)
	real, n := c.Links["south"], 0
	c.Links["south"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
		if n++; n == 2 {
			return engine.Reply{}, errors.New("connection reset by peer")
		}
		return real.Exchange(ctx, task, past)
	})
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "connection reset") {
		t.Fatalf("got %v", err)
	}
	out, err := process(w, m, "", 2, nil).Run(t.Context())
	if err != nil || len(out.Left) != 0 {
		t.Fatalf("going on: %v, %v", out, err)
	}
}

// A site whose store is older than what others have seen of it stops until a person
// decides, and then catches up: the name of a task does not hang on its past.
func TestRestoredSiteWaitsForAPersonAndCatchesUp(t *testing.T) {
	w := enginetest.New(sites...)
	plan := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 6}, 2, sites...)
	data := map[string]dataset.Source{"north": rows(3), "centre": rows(4), "south": rows(5)}
	start := func(observe func(engine.Event)) *engine.Coordinator {
		w.Start(-1)
		c := testkit.Get(w.Coordinator(enginetest.Toy{}, plan, data))(t)
		c.Observe, c.Simulation = observe, false
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	start(func(e engine.Event) {
		if e.Progress >= 9 {
			cancel()
		}
	}).Run(ctx)
	w.Stores["south"] = sitestore.NewMemory() // the machine was replaced
	_, err := start(nil).Run(t.Context())
	var rolledBack *engine.RolledBackError
	if !errors.As(err, &rolledBack) || rolledBack.Shown.Lines != 3 || rolledBack.Round != 3 {
		t.Fatalf("got %v", err)
	}
	if n := ledgerOf(t, w.Stores["south"]); n != 0 {
		t.Errorf("%d charges before anybody has decided", n)
	}
	digest := testkit.Get(plan.Digest())(t)
	h := host.Host{Site: "south", Store: w.Stores["south"]}
	testkit.Do(t, h.GoOn(digest.String(), rolledBack))
	out, err := start(nil).Run(t.Context())
	if err != nil || len(out.Left) != 0 || len(out.Rounds) != 6 {
		t.Fatalf("after the decision: %v, %v", out, err)
	}
	if n, _, _ := w.Stores["south"].Head(digest.String()); n != 5 {
		t.Errorf("south has kept %d records", n)
	}
}

// A site whose link gives it up leaves; a person's word makes one leave, too.
func TestLinksAndDropMakeSitesLeave(t *testing.T) {
	for _, drop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := enginetest.New(sites...)
			m := toy{sites: sites, rounds: 3}
			c := process(w, m, "", 2, nil)
			late := &engine.Refusal{Public: "it is late"}
			real, n := c.Links["south"], 0
			c.Links["south"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply,
				error) {
				if n++; n == 2 {
					if drop {
						c.Drop("south")
						<-ctx.Done()
						return engine.Reply{}, context.Cause(ctx)
					}
					return engine.Reply{}, late
				}
				return real.Exchange(ctx, task, past)
			})
			out, err := c.Run(t.Context())
			if err != nil || !slices.Equal(out.Left, []string{"south"}) {
				t.Fatalf("left %v, %v", out, err)
			}
			want := late.Public
			if drop {
				want = "it was dropped by a person"
			}
			if got := out.Rounds[1].Sites[2].Left; got != want {
				t.Errorf("the record says %q", got)
			}
		})
	}
}
