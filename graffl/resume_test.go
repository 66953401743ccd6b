package graffl_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/graffl"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

var errCrash = errors.New("crash")

// world is what survives a crash: the sites' stores and the checkpoint with its log.
type world struct {
	plan   *study.Plan
	data   map[string]dataset.Source
	stores map[string]*sitestore.Memory
	saved  []byte
	log    []byte

	mu     sync.Mutex
	faults int // operations until the next crash; negative: none
}

func newWorld(p *study.Plan, data map[string]dataset.Source) *world {
	w := &world{plan: p, data: data, stores: map[string]*sitestore.Memory{}, faults: -1}
	for _, s := range p.Sites {
		w.stores[s] = sitestore.NewMemory()
	}
	return w
}

// fault counts one operation and reports whether it is the one that crashes.
func (w *world) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults--; w.faults == -1 {
		return errCrash
	}
	return nil
}

// Load implements the checkpoint's place, as Append and Replace do, which crash
// before and after; Append also with a part of the data written.
func (w *world) Load() (checkpoint, log []byte, err error) { return w.saved, w.log, nil }

func (w *world) Append(size int64, data []byte) error {
	if err := w.fault(); err != nil {
		return err
	}
	w.log = append(slices.Clone(w.log[:size]), data[:len(data)/2]...)
	if err := w.fault(); err != nil {
		return err
	}
	w.log = append(w.log, data[len(data)/2:]...)
	return nil
}

func (w *world) Replace(b []byte) error {
	if err := w.fault(); err != nil {
		return err
	}
	w.saved = b
	return w.fault()
}

// journal crashes before or after a release is stored.
type journal struct {
	*sitestore.Memory
	w *world
}

func (j journal) Commit(id string, sealed, state []byte) error {
	if err := j.w.fault(); err != nil {
		return err
	}
	if err := j.Memory.Commit(id, sealed, state); err != nil {
		return err
	}
	return j.w.fault()
}

type link struct{ site *engine.Site }

func (l link) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	r, err := l.site.Handle(ctx, task)
	return r.Bytes(), err
}

// run starts the whole study anew on what the world has kept.
func (w *world) run(ctx context.Context) (*engine.Outcome, error) {
	coordinator, err := graffl.Method{}.Coordinator(w.plan)
	if err != nil {
		return nil, err
	}
	digest, err := w.plan.Digest()
	if err != nil {
		return nil, err
	}
	c := &engine.Coordinator{Study: digest.String(), Sites: w.plan.Sites, Quorum: len(w.plan.Sites), Method: coordinator, Links: map[string]engine.Link{}, Checkpoints: w}
	for _, name := range w.plan.Sites {
		half, err := graffl.Method{}.Site(w.plan, name)
		if err != nil {
			return nil, err
		}
		terms, err := privacy.StudyOf(w.plan, name)
		if err != nil {
			return nil, err
		}
		gate := privacy.NewGate(terms, privacy.SimulationPolicy(), journal{w.stores[name], w}, w.data[name])
		c.Links[name] = link{&engine.Site{Name: name, Study: digest.String(), Half: half, Gate: gate, Manifest: w.stores[name]}}
	}
	return c.Run(ctx)
}

var resumed = map[string]string{
	"landmark":  "draws: 64",
	"published": "variant: published\npublished: {rounds: 40, accepted: 20}",
	"set":       "variant: set\nset: {particles: 16, proposals: 160, rows: 10}",
}

// Whatever a run dies at, and however often, it ends with the bits of a run that
// nothing happened to, its threshold and generation with them.
func TestRunsSurviveCrashes(t *testing.T) {
	for name, options := range resumed {
		t.Run(name, func(t *testing.T) {
			p := parse(t, planText(options, unprotected))
			data := twoModes(t, p, 25)
			quiet, err := newWorld(p, data).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := posterior(t, quiet.Result)
			crashes := 0
			for seed := range 20 {
				w := newWorld(p, data)
				r := rand.New(rand.NewPCG(uint64(seed), 9))
				for {
					w.faults = r.IntN(7)
					out, err := w.run(t.Context())
					if err == nil {
						if !bytes.Equal(posterior(t, out.Result), want) {
							t.Fatalf("seed %d: after %d crashes the posterior is another", seed, crashes)
						}
						break
					}
					if !errors.Is(err, errCrash) || crashes > 6000 {
						t.Fatalf("seed %d: %v", seed, err)
					}
					crashes++
				}
			}
			if crashes < 10 {
				t.Errorf("%d crashes in 20 runs are hardly a test", crashes)
			}
		})
	}
}

// A private run that has lost its checkpoint comes to the same bits from the sites'
// stores alone, and no site is charged again: its ε stays what it was.
func TestPrivateRunsComeBackFromTheStores(t *testing.T) {
	p := parse(t, planText("draws: 64", protected))
	c := local.Config{Plan: p, Methods: methods, Data: twoModes(t, p, 100), Dir: t.TempDir()}
	first := posterior(t, run(t, c).Result)
	if err := os.Remove(filepath.Join(c.Dir, local.CheckpointName)); err != nil {
		t.Fatal(err)
	}
	if again := posterior(t, run(t, c).Result); !bytes.Equal(first, again) {
		t.Error("from what the sites had released came another posterior")
	}
	for _, name := range p.Sites {
		store, err := sitestore.Open(filepath.Join(c.Dir, "sites", name, "site.db"))
		if err != nil {
			t.Fatal(err)
		}
		charges, err := store.Reservations(0)
		if err := errors.Join(err, store.Close()); err != nil {
			t.Fatal(err)
		}
		if len(charges) != 1 {
			t.Errorf("site %s was charged %d times", name, len(charges))
		}
	}
}

// Sites that do not answer leave the others' posterior, which says so.
func TestSitesThatLeaveAreNamed(t *testing.T) {
	for name, options := range resumed {
		p := parse(t, planText(options, unprotected))
		c, err := graffl.Method{}.Coordinator(p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = c.Leave(s, "b"); name == "set" {
			if err == nil {
				t.Error("set: a threshold that means two things")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		step, err := c.Next(s)
		if err != nil || len(step.Tasks) != 1 || step.Tasks[0].Site != "a" {
			t.Errorf("%s: %+v, %v: want a task of site a alone", name, step.Tasks, err)
		}
		if _, err := c.Leave(step.State, "z"); err == nil {
			t.Errorf("%s: a site that the plan does not have left", name)
		}
	}
}
