package pvi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/privacy"
	"parley/pvi"
	"parley/sitestore"
	"parley/study"
)

// world is what survives a crash: the sites' stores and the checkpoint with its log.
type world struct {
	plan   *study.Plan
	data   map[string]dataset.Source
	stores map[string]*sitestore.Memory
	saved  []byte
	log    []byte

	mu      sync.Mutex
	faults  int               // operations until the next crash; negative: none
	dead    bool              // from a crash to the next start
	sent    map[string][]byte // every release that ever left a site
	refuses map[string]int    // sites whose policy refuses after so many charges
}

var errCrash = errors.New("crash")

func newWorld(p *study.Plan, data map[string]dataset.Source) *world {
	w := &world{plan: p, data: data, stores: map[string]*sitestore.Memory{}, faults: -1, sent: map[string][]byte{}}
	for _, s := range p.Sites {
		w.stores[s] = sitestore.NewMemory()
	}
	return w
}

// fault counts one operation and reports whether it fails: the one that crashes, and
// those after it, as the whole process is gone.
func (w *world) fault() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults--
	w.dead = w.dead || w.faults == -1
	return w.dead
}

// The world is the checkpoint's place. Operations crash before and after, Append
// also with a part of the data written.
func (w *world) Load() (checkpoint, log []byte, err error) { return w.saved, w.log, nil }

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

// journal crashes before or after the release is stored.
type journal struct {
	*sitestore.Memory
	w *world
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

// link records what leaves a site, refuses that it is ever sent in two versions, and
// lets a site's policy refuse.
type link struct {
	site *engine.Site
	w    *world
}

func (l link) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	l.w.mu.Lock()
	limit, limited := l.w.refuses[l.site.Name]
	l.w.mu.Unlock()
	if charges, err := l.w.stores[l.site.Name].Reservations(0); limited && err == nil && len(charges) >= limit {
		return nil, fmt.Errorf("no more: %w", privacy.ErrRefused)
	}
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

// run starts the whole study anew on what the world has kept.
func (w *world) run(ctx context.Context, quorum int) (*engine.Outcome, error) {
	w.dead = false
	coordinator, err := pvi.Method{}.Coordinator(w.plan)
	if err != nil {
		return nil, err
	}
	digest, err := w.plan.Digest()
	if err != nil {
		return nil, err
	}
	c := &engine.Coordinator{Study: digest.String(), Sites: w.plan.Sites, Quorum: quorum, Method: coordinator, Links: map[string]engine.Link{}, Checkpoints: w}
	for _, name := range w.plan.Sites {
		half, err := pvi.Method{}.Site(w.plan, name)
		if err != nil {
			return nil, err
		}
		terms, err := privacy.StudyOf(w.plan, name)
		if err != nil {
			return nil, err
		}
		gate := privacy.NewGate(terms, privacy.SimulationPolicy(), journal{w.stores[name], w}, w.data[name])
		c.Links[name] = link{&engine.Site{Name: name, Study: digest.String(), Half: half, Gate: gate, Manifest: w.stores[name]}, w}
	}
	return c.Run(ctx)
}

// Whatever an asynchronous run dies at, and however often, it ends with the bits of
// a run that nothing happened to: no change is lost, applied twice, or to the factor
// of another moment. A site whose answer is lost on the way comes back with it.
func TestAsynchronousRunsSurviveCrashes(t *testing.T) {
	s := drawn(6, 60, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"schedule: asynchronous\nrounds: 4\ntolerance: 0\nrows: [{site: a, rows: 10}, {site: b, rows: 20}, {site: c, rows: 60}]", unprotected)
	data := s.config(t, p).Data
	quiet, err := newWorld(p, data).run(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	want := quiet.Result.Files[0].Data
	for seed := range 60 {
		w := newWorld(p, data)
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		crashes := 0
		for {
			w.faults = r.IntN(25)
			out, err := w.run(t.Context(), 3)
			if err == nil {
				if !bytes.Equal(out.Result.Files[0].Data, want) {
					t.Fatalf("seed %d: after %d crashes the model is another", seed, crashes)
				}
				break
			}
			if !errors.Is(err, errCrash) || crashes > 200 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			crashes++
		}
		if crashes == 0 {
			t.Fatalf("seed %d: nothing crashed", seed)
		}
	}
}

// A private run that was killed ends as its releases say, in every variant; from the
// sites' stores alone the coordinator comes to the same bits. Noise is drawn anew for
// each task and never for a task that was answered.
func TestKilledPrivateRunsGoOn(t *testing.T) {
	s := drawn(7, 60, 2, yesNo)
	rows := "rows: [{site: a, rows: 30}, {site: b, rows: 15}, {site: c, rows: 15}]"
	for name, options := range map[string]string{
		"natural":              "rounds: 8",
		"natural asynchronous": "rounds: 5\nschedule: asynchronous\n" + rows,
		"published":            "variant: published\npublished: {noise: 30, steps: 3, draws: 5}\nrounds: 4\n" + rows,
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+options, strings.Replace(protected, "{epsilon: 2, delta: 1e-5}", "{epsilon: 2, delta: 1e-3}", 1))
			c := s.config(t, p)
			c.Dir = t.TempDir()
			for kill := 1; kill < 4; kill++ {
				ctx, cancel := context.WithCancelCause(t.Context())
				answers := 0
				c.Observe = func(e engine.Event) {
					if e.Round != nil {
						if answers++; answers == kill%2+1 {
							cancel(errCrash)
						}
					}
				}
				if _, err := local.Run(ctx, c); !errors.Is(err, errCrash) {
					t.Fatalf("killed for the %d. time: %v", kill, err)
				}
				cancel(nil)
			}
			c.Observe = nil
			first, out := run(t, c)
			if err := os.Remove(filepath.Join(c.Dir, local.CheckpointName)); err != nil {
				t.Fatal(err)
			}
			again, replayed := run(t, c)
			if !bytes.Equal(out.Result.Files[0].Data, replayed.Result.Files[0].Data) {
				t.Errorf("from what the sites had released came another model:\n%v\n%v", first.Posterior, again.Posterior)
			}
			if !first.Private {
				t.Error("the model does not say that it is private")
			}
		})
	}
}

// A site that leaves keeps its factor in the posterior, as it stood.
func TestLeavingSiteKeepsItsFactor(t *testing.T) {
	s := drawn(8, 60, 2, yesNo)
	for _, schedule := range []string{"sequential", "synchronous", "asynchronous", "random"} {
		p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"rounds: 40\ntolerance: 0\ndamping: 0.4\nschedule: "+schedule, unprotected)
		w := newWorld(p, s.config(t, p).Data)
		w.refuses = map[string]int{"b": 3}
		out, err := w.run(t.Context(), 2)
		if err != nil {
			t.Fatalf("%s: %v", schedule, err)
		}
		m := modelOf(t, out.Result)
		q := m.Prior
		for _, x := range m.Sites {
			q = q.Times(x.Factor)
			if left := x.Name == "b"; x.Left != left || left && (x.Updates != 3 || x.Information <= 0) || !left && x.Updates < 20 {
				t.Errorf("%s: site %s left: %v, after %d updates", schedule, x.Name, x.Left, x.Updates)
			}
		}
		close2(t, schedule, q.Eta, m.Posterior.Eta, 1e-12)
		close2(t, schedule, q.Lambda, m.Posterior.Lambda, 1e-12)
	}
}

// A model that is finished does not need the assessment, whoever fails to give it.
func TestModelStandsWithoutItsAssessment(t *testing.T) {
	s := drawn(8, 60, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"rounds: 4\ntolerance: 0\nschedule: synchronous", unprotected)
	data := s.config(t, p).Data
	quiet, err := newWorld(p, data).run(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, refuses := range []map[string]int{{"c": 4}, {"a": 4, "b": 4, "c": 4}} {
		w := newWorld(p, data)
		w.refuses = refuses
		out, err := w.run(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Left) != len(refuses) {
			t.Fatalf("left: %v", out.Left)
		}
		close2(t, "Λμ", modelOf(t, out.Result).Posterior.Eta, modelOf(t, quiet.Result).Posterior.Eta, 0)
	}
}
