package fedmvppca_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/method"
	"parley/methods/published/fedmvppca"
	"parley/study"
)

const resumed = `
parley: 1
name: resumed
sites: [north, centre, south]
views:
  - {name: v, features: [{name: a, range: [0, 9]}, {name: b, range: [0, 9]}, {name: c, range: [0, 9]}]}
method: {name: fed-mv-ppca, latent: 1, rounds: 4, iterations: 2}
privacy: {protection: differential, unit: site, adjacency: replace-one, per_release: {epsilon: 10, delta: 0.01}}
`

var errKilled = errors.New("killed")

// A private run that was killed after any round ends as it would have without:
// what the sites had released they send again, and never noise anew.
func TestKilledPrivateRunGoesOn(t *testing.T) {
	plan, err := study.Parse("plan.yaml", []byte(resumed), method.Registry{fedmvppca.Method{}})
	if err != nil {
		t.Fatal(err)
	}
	table, err := dataset.NewTable(plan.Schema(), []dataset.Row{
		{ID: "1", Views: [][]float64{{1, 2, 3}}}, {ID: "2", Views: [][]float64{{4, 6, 5}}}, {ID: "3", Views: [][]float64{{7, 3, 1}}}, {ID: "4", Views: [][]float64{{2, 2, 8}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := local.Config{Plan: plan, Methods: method.Registry{fedmvppca.Method{}}, Dir: dir, Data: map[string]dataset.Source{}}
	for _, site := range plan.Sites {
		config.Data[site] = table
	}
	run := func(killAfter int) ([]byte, error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		config.Observe = func(e engine.Event) {
			if e.Round != nil && e.Round.Round == killAfter {
				cancel(errKilled)
			}
		}
		out, err := local.Run(ctx, config)
		if err != nil {
			return nil, err
		}
		return out.Result.Files[0].Data, nil
	}
	for round := 1; round < 4; round++ {
		if _, err := run(round); !errors.Is(err, errKilled) {
			t.Fatalf("killed after round %d: %v", round, err)
		}
	}
	model, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := local.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if reports, err := out.SiteReports(t.Context()); err != nil || len(reports) != len(plan.Sites) {
		t.Errorf("the sites' own reports: %d, %v", len(reports), err)
	}
	// From the sites' stores alone the coordinator comes to the same model.
	if err := os.Remove(filepath.Join(dir, local.CheckpointName)); err != nil {
		t.Fatal(err)
	}
	again, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(model, again) {
		t.Errorf("from what the sites had released came another model:\n%s\n%s", model, again)
	}
}
