package mixture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/methods/mixture"
	"parley/sitestore"
	"parley/study"
)

var resumed = map[string]string{
	"landmark": "draws: 64",
	"sketch":   "sketch: {}\ndraws: 64",
}

// start puts the whole study together on what the world has kept.
func start(t *testing.T, w *enginetest.World, p *study.Plan, data map[string]dataset.Source) *engine.Coordinator {
	t.Helper()
	c, err := w.Coordinator(mixture.Method{}, p, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// everything is all that a study leaves, as bytes.
func everything(t *testing.T, out *engine.Outcome) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range out.Result.Files {
		fmt.Fprintf(&b, "%s\n%s\n", f.Name, f.Data)
	}
	for _, site := range slices.Sorted(maps.Keys(out.Shares)) {
		fmt.Fprintf(&b, "%s %x\n", site, out.Shares[site])
	}
	fmt.Fprintln(&b, out.Left)
	for _, x := range []any{out.Result.Metrics, out.Result.Headline, out.Result.Sections} {
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	return b.Bytes()
}

// survives crashes a study again and again, and demands that it ends with the bits of a run
// that nothing happened to.
func survives(t *testing.T, p *study.Plan, data map[string]dataset.Source, seeds, operations int) {
	t.Helper()
	quiet, err := start(t, enginetest.New(p.Sites...), p, data).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := everything(t, quiet)
	if testkit.Sized(true, false) {
		seeds = (seeds + 3) / 4
	}
	crashes := 0
	for seed := range seeds {
		w := enginetest.New(p.Sites...)
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		for {
			c := start(t, w, p, data)
			w.Start(r.IntN(operations))
			out, err := c.Run(t.Context())
			if err == nil {
				if !bytes.Equal(everything(t, out), want) {
					t.Fatalf("seed %d: after %d crashes it left something else", seed, crashes)
				}
				break
			}
			if !errors.Is(err, enginetest.ErrCrash) || crashes > 6000 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			crashes++
		}
	}
	if crashes < seeds/2 {
		t.Errorf("%d crashes in %d runs are hardly a test", crashes, seeds)
	}
}

// Whatever a run dies at, and however often, it ends with the bits of a run that
// nothing happened to, its threshold and generation with them.
func TestRunsSurviveCrashes(t *testing.T) {
	for name, options := range resumed {
		t.Run(name, func(t *testing.T) {
			p := parse(t, planText(options, unprotected))
			survives(t, p, twoModes(t, p, 25), 20, 7)
		})
	}
}

// So do the phases around a sampler: encoder, classifiers and scores.
func TestPhasesSurviveCrashes(t *testing.T) {
	for name, options := range staged {
		t.Run(name, func(t *testing.T) {
			p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.3)+"\n"+options, unprotected))
			data := map[string]dataset.Source{}
			for i, site := range p.Sites {
				data[site] = ward(t, p, 40, 15, 1, uint64(i))
			}
			survives(t, p, data, 4, 20)
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
		c, err := mixture.Method{}.Coordinator(p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = c.Leave(s, "b"); err != nil {
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

// A site may leave in any phase. Only the one that trains the encoder cannot be done
// without, until it has.
func TestPhasesGoOnWithoutASite(t *testing.T) {
	p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.3)+"\n"+staged["landmark, codes"], unprotected))
	data := map[string]dataset.Source{}
	for i, site := range p.Sites {
		data[site] = ward(t, p, 40, 15, 1, uint64(i))
	}
	without := func(site string, charges int) (*engine.Outcome, error) {
		w := enginetest.New(p.Sites...)
		w.Refuses = map[string]int{site: charges}
		return start(t, w, p, data).Run(t.Context())
	}
	quiet, err := start(t, enginetest.New(p.Sites...), p, data).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without("a", 0); err == nil || !strings.Contains(err.Error(), "site a was to train the encoder") {
		t.Errorf("without an encoder: %v", err)
	}
	// Site a answers with encoder, classifier, landmarks and scores; the others with the last three.
	for site, most := range map[string]int{"a": 4, "b": 3} {
		for charges := range most {
			if site == "a" && charges == 0 {
				continue
			}
			out, err := without(site, charges)
			if err != nil {
				t.Fatalf("site %s after %d: %v", site, charges, err)
			}
			same := bytes.Equal(posterior(t, out.Result), posterior(t, quiet.Result))
			if released := charges == most-1; same != released || !slices.Equal(out.Left, []string{site}) {
				t.Errorf("site %s after %d releases: the same posterior %v; left %v", site, charges, same, out.Left)
			}
			if _, ok := out.Result.Metrics[site+"/kept"]; ok {
				t.Errorf("site %s after %d releases: scores of a site that left", site, charges)
			}
		}
	}
}
