package mixture_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/methods/mixture"
	"parley/sitestore"
	"parley/study"
)

// start puts the whole study together on what the world has kept.
func start(t *testing.T, w *enginetest.World, p *study.Plan, data map[string]dataset.Source) *engine.Coordinator {
	t.Helper()
	c, err := w.Coordinator(mixture.Method{}, p, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
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

// A site may leave in any phase. Only the one that trains the encoder cannot be done
// without, until it has.
func TestPhasesGoOnWithoutASite(t *testing.T) {
	p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.3)+"\n"+staged["codes"], unprotected))
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
	// Site a answers with encoder, classifier, sums and scores; the others with the last three.
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
