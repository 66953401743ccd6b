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
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/engine"
	"parley/internal/wire"
	"parley/privacy"
	"parley/sitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what survives a crash: the sites' stores, the checkpoint with its
// log, and a record of every release that ever left a site.
type world struct {
	stores   map[string]*sitestore.Memory
	saved    []byte
	log      []byte
	appended int // bytes that were ever added to the log
	mu       sync.Mutex
	sent     map[string][]byte // by site and round
	faults   int               // operations until the next crash; negative: none
}

var errCrash = errors.New("crash")

func newWorld(sites []string) *world {
	w := &world{stores: map[string]*sitestore.Memory{}, sent: map[string][]byte{}, faults: -1}
	for _, s := range sites {
		w.stores[s] = sitestore.NewMemory()
	}
	return w
}

// fault counts one operation and reports whether it is the one that crashes.
func (w *world) fault() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults--
	return w.faults == -1
}

// journal crashes before or after an operation of the store.
type journal struct {
	*sitestore.Memory
	w *world
}

func (j journal) Reserve(r sitestore.Reservation) error {
	if j.w.fault() {
		return errCrash
	}
	if err := j.Memory.Reserve(r); err != nil {
		return err
	}
	if j.w.fault() {
		return errCrash
	}
	return nil
}

func (j journal) Commit(id string, sealed, state []byte) error {
	if j.w.fault() {
		return errCrash
	}
	if err := j.Memory.Commit(id, sealed, state); err != nil {
		return err
	}
	if j.w.fault() {
		return errCrash
	}
	return nil
}

// Load, Append and Replace make the world the checkpoint's place.
func (w *world) Load() (checkpoint, log []byte, err error) { return w.saved, w.log, nil }

// Append crashes before it does anything, with a part of the data written, or
// after it.
func (w *world) Append(size int64, data []byte) error {
	if w.fault() {
		return errCrash
	}
	if int64(len(w.log)) < size {
		return fmt.Errorf("append after %d bytes of a log that has %d", size, len(w.log))
	}
	w.log = append(slices.Clone(w.log[:size]), data[:len(data)/2]...)
	if w.fault() {
		return errCrash
	}
	w.log = append(w.log, data[len(data)/2:]...)
	w.appended += len(data)
	if w.fault() {
		return errCrash
	}
	return nil
}

func (w *world) Replace(b []byte) error {
	if w.fault() {
		return errCrash
	}
	w.saved = b
	if w.fault() {
		return errCrash
	}
	return nil
}

type link struct {
	site *engine.Site
	w    *world
}

func (l link) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	r, err := l.site.Handle(ctx, task)
	if err != nil {
		return nil, err
	}
	o, err := privacy.Open(r.Bytes())
	if err != nil {
		return nil, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	key := fmt.Sprintf("%s/%d", o.Site, o.Round)
	if old, ok := l.w.sent[key]; ok && !bytes.Equal(old, r.Bytes()) {
		return nil, fmt.Errorf("release %s was sent in two versions", key)
	}
	l.w.sent[key] = r.Bytes()
	return r.Bytes(), nil
}

// process starts the whole study anew on what the world has kept.
func (w *world) process(m toy, refuser string, quorum int, observe func(engine.Event)) *engine.Coordinator {
	c := &engine.Coordinator{Study: toyStudy, Sites: m.sites, Quorum: quorum, Method: m, Links: map[string]engine.Link{}, Checkpoints: w, Observe: observe}
	for i, name := range m.sites {
		gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: name}, privacy.SimulationPolicy(), journal{w.stores[name], w}, rows(10+i))
		site := &engine.Site{Name: name, Study: toyStudy, Half: toySite{refuses: name == refuser}, Gate: gate, Manifest: w.stores[name]}
		c.Links[name] = link{site, w}
	}
	return c
}

var sites = []string{"north", "centre", "south"}

func TestSynchronousRoundsFoldInThePlansOrder(t *testing.T) {
	w := newWorld(sites)
	out, err := w.process(toy{sites: sites, rounds: 4}, "", 3, nil).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rounds) != 4 {
		t.Fatalf("%d rounds", len(out.Rounds))
	}
	for i, r := range out.Rounds {
		if r.Round != i+1 || len(r.Sites) != 3 || r.Info["folded"] != float64(3*(i+1)) {
			t.Errorf("round %d: %+v", i+1, r)
		}
		for j, x := range r.Sites {
			if x.Site != sites[j] || x.Up == 0 || x.Down == 0 || x.Release == "" || x.Request.Protection != privacy.Unprotected {
				t.Errorf("round %d, site %d: %+v", i+1, j, x)
			}
		}
	}
	if string(out.Shares["south"]) != "for south" {
		t.Errorf("shares: %q", out.Shares)
	}
	for _, s := range sites {
		kept := 0
		for ; ; kept++ {
			if e, err := w.stores[s].Entry(toyStudy, kept); err != nil || e == nil {
				break
			}
		}
		if kept != 9 { // all but the last round, which no task followed
			t.Errorf("site %s kept %d manifest entries", s, kept)
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
		if err := wire.Unmarshal(out.Result.Files[0].Data, &s); err != nil {
			t.Fatal(err)
		}
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
			w := newWorld(sites)
			rng := rand.New(rand.NewPCG(uint64(crash), 1))
			w.faults = crash
			_, err := w.process(m, "", 3, nil).Run(t.Context())
			clean := err == nil
			for tries := 0; err != nil; tries++ {
				if !errors.Is(err, errCrash) || tries > 50 {
					t.Fatalf("%s, crash at %d: %v", name, crash, err)
				}
				w.faults = rng.IntN(60)
				_, err = w.process(m, "", 3, nil).Run(t.Context())
			}
			w.faults = -1
			saved, log := w.saved, w.log
			final, err := w.process(m, "", 3, nil).Run(t.Context()) // a finished study answers again
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(saved, w.saved) || !bytes.Equal(log, w.log) {
				t.Fatalf("%s, crash at %d: a finished study changed its checkpoint", name, crash)
			}
			again, whole := replay(t, w, m)
			if !bytes.Equal(final.Result.Files[0].Data, whole.Result.Files[0].Data) || !reflect.DeepEqual(final.Rounds, whole.Rounds) {
				t.Fatalf("%s, crash at %d: the result is not the fold of the releases sent", name, crash)
			}
			if !bytes.Equal(saved, again.saved) || !bytes.Equal(log, again.log) {
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
func replay(t *testing.T, w *world, m toy) (*world, *engine.Outcome) {
	t.Helper()
	again := &world{stores: w.stores, sent: w.sent, faults: -1}
	out, err := again.process(m, "", 3, nil).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return again, out
}

func TestSiteThatRefusesLeavesOrEndsTheStudy(t *testing.T) {
	m := toy{sites: sites, rounds: 2}
	_, err := newWorld(sites).process(m, "centre", 3, nil).Run(t.Context())
	if err == nil || !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), "site centre") || !strings.Contains(err.Error(), "quorum is 3") {
		t.Fatalf("got %v", err)
	}
	var left []string
	out, err := newWorld(sites).process(m, "centre", 2, func(e engine.Event) {
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
	w := newWorld(sites)
	w.faults = 12
	for crashes := 0; ; crashes++ {
		out, err := w.process(m, "centre", 3, nil).Run(t.Context())
		if errors.Is(err, errCrash) && crashes == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.Left, []string{"centre"}) || out.Shares["centre"] != nil || crashes != 1 {
			t.Fatalf("left %v after %d crashes", out.Left, crashes)
		}
		return
	}
}

func TestCancelledRunLeavesNothingBehind(t *testing.T) {
	w := newWorld(sites)
	m := toy{sites: sites, rounds: 50}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.process(m, "", 3, func(e engine.Event) {
		if e.Progress >= 30 {
			cancel()
		}
	}).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	resumed := false
	out, err := w.process(m, "", 3, func(e engine.Event) { resumed = resumed || e.Resumed }).Run(t.Context())
	if err != nil || !resumed || len(out.Rounds) != 50 {
		t.Fatalf("resumed %v, %v", resumed, err)
	}
}

func TestForeignTasksAndReleasesAreRefused(t *testing.T) {
	w := newWorld(sites)
	c := w.process(toy{sites: sites, rounds: 1}, "", 3, nil)
	c.Links["north"], c.Links["south"] = c.Links["south"], c.Links["north"]
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "reached site") {
		t.Fatalf("got %v", err)
	}
	other := newWorld(sites).process(toy{sites: sites, rounds: 1}, "", 3, nil)
	other.Links["north"] = echo{other.Links["centre"], other.Links["north"]}
	if _, err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer the task") {
		t.Fatalf("got %v", err)
	}
}

// echo answers with the release of its own site to an older question.
type echo struct{ other, own engine.Link }

func (e echo) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	changed := bytes.Replace(task, []byte("sum"), []byte("mus"), 1)
	return e.own.Exchange(ctx, changed)
}

// A coordinator that tells one site another history than it told before is
// noticed by that site.
func TestForkedManifestIsRefused(t *testing.T) {
	m := toy{sites: sites, rounds: 3}
	one, two := newWorld(sites), newWorld(sites)
	for _, w := range []*world{one, two} {
		if _, err := w.process(m, "", 3, nil).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mixed := newWorld(sites)
	mixed.stores = map[string]*sitestore.Memory{"north": one.stores["north"], "centre": two.stores["centre"], "south": two.stores["south"]}
	if _, err := mixed.process(m, "", 3, nil).Run(t.Context()); !errors.Is(err, sitestore.ErrForked) {
		t.Fatalf("got %v", err)
	}
	if _, err := newWorld(sites).process(m, "", 3, nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
