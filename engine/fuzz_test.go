package engine_test

import (
	"context"
	"errors"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
	"parley/sitestore"
)

// Whatever bytes a task and its past are, a site answers, refuses, or says what it
// wants; it never panics, and what it refuses leaves nothing in its store.
func FuzzTask(f *testing.F) {
	task, past := forge(f, 1, "sum", "0")
	f.Add(task, []byte{}, 0)
	task, past = forge(f, 2, "sum", "1", engine.Record{Round: 1, Sites: []int{1, 2}, Releases: make([]byte, 32)})
	f.Add(task, past.Records[0], 0)
	f.Add(task, past.Records[0], 3)
	f.Add([]byte("no task"), []byte{0x85}, -1)
	f.Fuzz(func(t *testing.T, task, record []byte, first int) {
		store := sitestore.NewMemory()
		site := siteOn(store, toySite{}, nil, listing(2, counted))
		past := engine.Past{First: first}
		if len(record) > 0 {
			past.Records = [][]byte{record}
		}
		a, err := site.Handle(t.Context(), task, past)
		var refusal *engine.Refusal
		var behind *engine.BehindError
		var rolledBack *engine.RolledBackError
		var forked *engine.ForkedError
		switch {
		case err == nil && len(a.Release.Bytes()) == 0:
			t.Error("an answer without a release")
		case err != nil && !errors.As(err, &refusal) && !errors.As(err, &behind) && !errors.As(err, &rolledBack) &&
			!errors.As(err, &forked):
			t.Errorf("%v is neither a refusal nor says what is wanted", err)
		case err != nil:
			if n, _, _ := store.Head(toyStudy); n > 0 || ledgerOf(t, store) > 0 {
				t.Errorf("%v left %d records and %d charges", err, n, ledgerOf(t, store))
			}
		}
	})
}

// Whatever bytes a site sends for its release, from the link to the fold: the site
// leaves, or they are its honest release; the study ends either way.
func FuzzReleaseToFold(f *testing.F) {
	w := enginetest.New(sites...)
	plan := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 1, Private: true}, 2, sites...)
	data := map[string]dataset.Source{"north": rows(3), "centre": rows(4), "south": rows(5)}
	var honest []byte
	run := func(t testing.TB, w *enginetest.World, release func([]byte) []byte) *engine.Outcome {
		c := testkit.Get(w.Coordinator(enginetest.Toy{}, plan, data))(t)
		c.Simulation = false
		south := c.Links["south"]
		c.Links["south"] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
			r, err := south.Exchange(ctx, task, past)
			r.Release = release(r.Release)
			return r, err
		})
		return testkit.Get(c.Run(t.Context()))(t)
	}
	run(f, w, func(b []byte) []byte { honest = b; return b })
	f.Add(honest)
	f.Add(honest[:len(honest)-3])
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, release []byte) {
		out := run(t, enginetest.New(sites...), func([]byte) []byte { return release })
		if len(out.Left) > 1 || len(out.Left) == 1 && out.Left[0] != "south" {
			t.Errorf("left: %v", out.Left)
		}
	})
}
