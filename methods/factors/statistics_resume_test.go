package factors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/statistics"
	"parley/privacy/ledger"
	"parley/sitestore"
	"parley/study"
)

const noisedStudy = `
parley: 1
name: noised
sites: [north, centre, south]
quorum: 1
views:
  - {name: v, features: [{name: a, range: [0, 9]}, {name: b, range: [0, 9]}, {name: c, range: [0, 9]}]}
  - {name: w, features: [{name: d, range: [0, 9]}, {name: e, range: [0, 9]}]}
method: {name: mvppca, latent: 1}
privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}
`

// noised is the configuration of a run with the real gate, ledger and noise.
func noised(t *testing.T) local.Config {
	t.Helper()
	plan, err := study.Parse("plan.yaml", []byte(noisedStudy), method.Registry{factors.Method{}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	c := local.Config{Plan: plan, Methods: method.Registry{factors.Method{}}, Dir: t.TempDir(), Data: map[string]dataset.Source{}}
	for _, site := range plan.Sites {
		var rows []dataset.Row
		for i := range 60 {
			x := r.NormFloat64()
			at := func(w float64) float64 { return 4 + w*x + 0.3*r.NormFloat64() }
			row := dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{{at(1), at(-1), at(0.5)}, {at(1), at(0.7)}}}
			if i%7 == 0 {
				row.Views[1] = nil
			}
			rows = append(rows, row)
		}
		if c.Data[site], err = dataset.NewTable(plan.Schema(), rows); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// charges reads what each site was charged.
func charges(t *testing.T, c local.Config) map[string][]ledger.Entry {
	t.Helper()
	out := map[string][]ledger.Entry{}
	for _, site := range c.Plan.Sites {
		store, err := sitestore.Open(local.StorePath(local.StoresIn(c.Dir), site))
		if err != nil {
			t.Fatal(err)
		}
		charged, err := ledger.Read(store)
		if err := errors.Join(err, store.Close()); err != nil {
			t.Fatal(err)
		}
		out[site] = charged.Entries
	}
	return out
}

// broken is data that cannot always be read.
type broken struct {
	dataset.Source
	fails func() bool
}

func (b broken) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	if b.fails() {
		return func(yield func(*dataset.Row, error) bool) { yield(nil, errors.New("the disk is gone")) }
	}
	return b.Source.Rows(ctx)
}

// A site whose disk fails when it is asked for the second sum says nothing about
// its rows by that: nothing is charged again, and the run goes on where it was
// once the disk is back. The model, which the site took part in, is the same.
func TestSumsWaitForADiskThatFails(t *testing.T) {
	c := noised(t)
	gone := false
	c.Data["centre"] = broken{c.Data["centre"], func() bool { return gone }}
	c.Observe = func(e engine.Event) { gone = gone || e.Round != nil && e.Round.Round == 1 }
	if _, err := local.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Fatalf("a run without a disk: %v", err)
	}
	gone, c.Observe = false, nil
	out, err := local.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Left) != 0 {
		t.Errorf("%v left", out.Left)
	}
	if n := out.Result.Metrics["subjects_noised"]; n < 40 { // of 154 whose views the plan states; noise sd 19, six of which are less in 1 of 10⁹ runs
		t.Errorf("the model rests on %v subjects", n)
	}
	i := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == statistics.ReleasedName })
	if n := bytes.Count(out.Result.Files[i].Data, []byte(`"site":`)); n != 3 {
		t.Errorf("releases of %d sites", n)
	}
	for site, entries := range charges(t, c) {
		if len(entries) != 3 {
			t.Errorf("%s was charged %d times, want 3", site, len(entries))
		}
		for _, e := range entries {
			if e.Attempt != 1 {
				t.Errorf("%s: attempt %d of round %d", site, e.Attempt, e.Round)
			}
		}
	}
}
