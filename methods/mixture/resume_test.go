package mixture_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"parley/engine/local"
	"parley/sitestore"
)

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
