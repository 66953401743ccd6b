package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process starts the whole study anew on what the world has kept.
func process(w *enginetest.World, m toy, refuser string, quorum int, observe func(engine.Event)) *engine.Coordinator {
	w.Start(-1)
	c := &engine.Coordinator{
		Study: toyStudy, Sites: m.sites, Quorum: quorum, Method: m, Simulation: true,
		Requests: map[string][]privacy.Listed{}, Links: map[string]engine.Link{}, Checkpoints: w, Observe: observe,
	}
	for _, name := range m.sites {
		granted := listing(1000, counted)
		c.Requests[name] = granted
		if name == refuser {
			granted = nil
		}
		c.Links[name] = w.Link(toySiteOf(w, m, name, granted, toySite{}))
	}
	return c
}

// toySiteOf is a site of the toy study, whose gate grants so much.
func toySiteOf(w *enginetest.World, m toy, name string, granted []privacy.Listed, half method.Site) *engine.Site {
	gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: name, Requests: granted}, privacy.SimulationPolicy(),
		w.Store(name), rows(10+slices.Index(m.sites, name)))
	return engine.NewSite(engine.Site{Name: name, Study: toyStudy, Sites: m.sites, Half: half, Gate: gate,
		Store: w.Store(name)})
}

// replaced runs with another half and list at one site.
func replaced(w *enginetest.World, c *engine.Coordinator, m toy, name string, granted []privacy.Listed,
	half method.Site) *engine.Site {
	site := toySiteOf(w, m, name, granted, half)
	c.Links[name] = w.Link(site)
	return site
}

var sites = []string{"north", "centre", "south"}

func TestSynchronousRoundsFoldInThePlansOrder(t *testing.T) {
	w := enginetest.New(sites...)
	out := testkit.Get(process(w, toy{sites: sites, rounds: 4}, "", 3, nil).Run(t.Context()))(t)
	if len(out.Rounds) != 4 {
		t.Fatalf("%d rounds", len(out.Rounds))
	}
	for i, r := range out.Rounds {
		if r.Round != i+1 || len(r.Sites) != 3 || r.Info["folded"] != float64(3*(i+1)) {
			t.Errorf("round %d: %+v", i+1, r)
		}
		for j, x := range r.Sites {
			if x.Site != sites[j] || x.Up == 0 || x.Down == 0 || x.Release == "" ||
				x.Request.Protection != privacy.Unprotected {
				t.Errorf("round %d, site %d: %+v", i+1, j, x)
			}
		}
	}
	if string(out.Shares["south"]) != "for south" {
		t.Errorf("shares: %q", out.Shares)
	}
	for _, s := range sites {
		// all but the last round, which no task followed
		if kept, _, err := w.Stores[s].Head(toyStudy); err != nil || kept != 3 {
			t.Errorf("site %s kept %d records of the history, %v", s, kept, err)
		}
	}
}

// Answers of an asynchronous schedule are folded as they end in simulated time,
// those of one moment as they were asked for, and otherwise as asked for.
func TestAsynchronousAnswersFoldInSimulatedTime(t *testing.T) {
	for _, c := range []struct {
		takes []float64
		want  string
	}{
		{nil, "0 1 2 3 4 5"},
		{[]float64{2, 1.5, 1}, "1 0 2 3 4 5"}, // that ends at 1.5, 2, 2.5, 4, 4, 5
	} {
		_, out := finished(t, toy{sites: sites, rounds: 2, async: true, takes: c.takes})
		var s toyState
		testkit.Do(t, wire.Unmarshal(out.Result.Files[0].Data, &s))
		var got []string
		for _, folded := range s.Trace {
			_, body, _ := strings.Cut(folded, ":")
			asked, _, _ := strings.Cut(body, "/")
			got = append(got, asked)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("takes %v: folded %v, want %s", c.takes, got, c.want)
		}
	}
}

// Whatever operation a run dies at, and however often, running it again ends
// with the result that the stored releases determine; no release ever exists
// in two versions (link checks that), and none without a charge (Memory does).
func TestRunContinuesAfterACrashAnywhere(t *testing.T) {
	for name, m := range map[string]toy{
		"synchronous":  {sites: sites, rounds: 3},
		"asynchronous": {sites: sites, rounds: 3, async: true},
		"timed":        {sites: sites, rounds: 2, async: true, takes: []float64{2, 1.5, 1}},
	} {
		for crash := range 200 {
			w := enginetest.New(sites...)
			rng := rand.New(rand.NewPCG(uint64(crash), 1))
			run := func(operations int) error {
				c := process(w, m, "", 3, nil)
				w.Start(operations)
				_, err := c.Run(t.Context())
				return err
			}
			err := run(crash)
			clean := err == nil
			for tries := 0; err != nil; tries++ {
				if !errors.Is(err, enginetest.ErrCrash) || tries > 50 {
					t.Fatalf("%s, crash at %d: %v", name, crash, err)
				}
				err = run(rng.IntN(60))
			}
			saved, log := w.Checkpoint, w.Log
			final, err := process(w, m, "", 3, nil).Run(t.Context()) // a finished study answers again
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(saved, w.Checkpoint) || !bytes.Equal(log, w.Log) {
				t.Fatalf("%s, crash at %d: a finished study changed its checkpoint", name, crash)
			}
			again, whole := replay(t, w, m)
			if !bytes.Equal(final.Result.Files[0].Data, whole.Result.Files[0].Data) ||
				!reflect.DeepEqual(final.Rounds, whole.Rounds) {
				t.Fatalf("%s, crash at %d: the result is not the fold of the releases sent", name, crash)
			}
			if !bytes.Equal(saved, again.Checkpoint) || !bytes.Equal(log, again.Log) {
				t.Fatalf("%s, crash at %d: the checkpoint is not that of a study that never crashed", name, crash)
			}
			if clean { // every operation has been the one that crashes
				if crash < 40 {
					t.Fatalf("%s: a run of %d rounds at 3 sites has only %d operations", name, m.rounds, crash)
				}
				break
			}
			if crash == 199 {
				t.Fatal("the run has more operations than were crashed")
			}
		}
	}
}

// replay runs the study again on the sites' stores alone, without the
// checkpoint: the coordinator that lost everything but the plan.
func replay(t *testing.T, w *enginetest.World, m toy) (*enginetest.World, *engine.Outcome) {
	t.Helper()
	again := w.WithoutCheckpoint()
	out := testkit.Get(process(again, m, "", 3, nil).Run(t.Context()))(t)
	return again, out
}

func TestSiteThatRefusesLeavesOrEndsTheStudy(t *testing.T) {
	m := toy{sites: sites, rounds: 2}
	_, err := process(enginetest.New(sites...), m, "centre", 3, nil).Run(t.Context())
	if err == nil || !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), "site centre") ||
		!strings.Contains(err.Error(), "quorum is 3") {
		t.Fatalf("got %v", err)
	}
	var left []string
	out, err := process(enginetest.New(sites...), m, "centre", 2, func(e engine.Event) {
		if e.Left != nil {
			left = append(left, e.Left.Site)
		}
	}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(left, []string{"centre"}) || !slices.Equal(out.Left, left) || out.Shares["centre"] != nil {
		t.Fatalf("left %v, %v", left, out.Left)
	}
}

// A study that can do without an answer is not ended by the lack of it, whatever its
// quorum, nor after a crash.
func TestOptionalTaskDoesNotNeedAQuorum(t *testing.T) {
	m := toy{sites: sites, rounds: 2, spares: true}
	w := enginetest.New(sites...)
	crashing := process(w, m, "centre", 3, nil)
	w.Start(12)
	if _, err := crashing.Run(t.Context()); !errors.Is(err, enginetest.ErrCrash) {
		t.Fatalf("got %v", err)
	}
	out := testkit.Get(process(w, m, "centre", 3, nil).Run(t.Context()))(t)
	if !slices.Equal(out.Left, []string{"centre"}) || out.Shares["centre"] != nil {
		t.Fatalf("left %v", out.Left)
	}
}

func TestCancelledRunLeavesNothingBehind(t *testing.T) {
	w := enginetest.New(sites...)
	m := toy{sites: sites, rounds: 50}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := process(w, m, "", 3, func(e engine.Event) {
		if e.Progress >= 30 {
			cancel()
		}
	}).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	resumed := false
	out, err := process(w, m, "", 3, func(e engine.Event) { resumed = resumed || e.Resumed }).Run(t.Context())
	if err != nil || !resumed || len(out.Rounds) != 50 {
		t.Fatalf("resumed %v, %v", resumed, err)
	}
}

func TestForeignTasksAndReleasesAreRefused(t *testing.T) {
	w := enginetest.New(sites...)
	c := process(w, toy{sites: sites, rounds: 1}, "", 3, nil)
	c.Links["north"], c.Links["south"] = c.Links["south"], c.Links["north"]
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "reached site") {
		t.Fatalf("got %v", err)
	}
	other := process(enginetest.New(sites...), toy{sites: sites, rounds: 1}, "", 3, nil)
	other.Links["north"] = echo{other.Links["north"]}
	if _, err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer the task") {
		t.Fatalf("got %v", err)
	}
}

// echo answers with the release of its own site to another question.
type echo struct{ own engine.Link }

func (e echo) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	return e.own.Exchange(ctx, bytes.Replace(task, []byte("body\x410"), []byte("body\x417"), 1), past)
}

// A coordinator that tells one site another history than it told before is
// noticed by that site.
func TestForkedManifestIsRefused(t *testing.T) {
	m := toy{sites: sites, rounds: 3}
	one, two := enginetest.New(sites...), enginetest.New(sites...)
	for _, w := range []*enginetest.World{one, two} {
		testkit.Get(process(w, m, "", 3, nil).Run(t.Context()))(t)
	}
	mixed := enginetest.New(sites...)
	mixed.Stores = map[string]*sitestore.Memory{"north": one.Stores["north"], "centre": two.Stores["centre"],
		"south": two.Stores["south"]}
	// All stores have answered round 2, but to different pasts.
	if _, err := process(mixed, m, "", 3, nil).Run(t.Context()); !errors.Is(err, privacy.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	testkit.Get(process(enginetest.New(sites...), m, "", 3, nil).Run(t.Context()))(t)
}

// held answers when its channel is closed.
type held struct {
	toySite
	until chan struct{}
}

func (h held) Run(ctx context.Context, task method.Task, s *privacy.Session) (method.Answer, error) {
	select {
	case <-h.until:
	case <-ctx.Done():
		return method.Answer{}, context.Cause(ctx)
	}
	return h.toySite.Run(ctx, task, s)
}

// Whoever looks on sees each answer of a round as it comes, whichever site is first.
func TestAnswersAreCountedAsTheyCome(t *testing.T) {
	w := enginetest.New(sites...)
	m := toy{sites: sites, rounds: 2}
	gates := map[string]chan struct{}{}
	var seen []string
	c := process(w, m, "", 3, func(e engine.Event) {
		if e.Asked == 0 {
			return
		}
		seen = append(seen, fmt.Sprintf("%d/%d after %d", e.Answered, e.Asked, e.Progress))
		if later := []string{"south", "centre", "north"}; e.Progress == 0 && e.Answered < len(later) {
			close(gates[later[e.Answered]])
		}
	})
	for _, name := range sites {
		gates[name] = make(chan struct{})
		replaced(w, c, m, name, listing(1000, counted), held{toySite{}, gates[name]})
	}
	testkit.Get(c.Run(t.Context()))(t)
	if want := []string{"0/3 after 0", "1/3 after 0", "2/3 after 0", "3/3 after 0"}; !slices.Equal(seen[:4], want) ||
		seen[len(seen)-1] != "3/3 after 3" {
		t.Errorf("seen %q", seen)
	}
}
