package regression_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/methods/regression"
	"parley/study"
)

// start puts the whole study together on what the world has kept.
func start(t *testing.T, w *enginetest.World, p *study.Plan, data map[string]dataset.Source) *engine.Coordinator {
	t.Helper()
	c, err := w.Coordinator(regression.Method{}, p, data)
	if err != nil {
		t.Fatal(err)
	}
	w.Start(-1)
	return c
}

// Whatever an asynchronous run dies at, and however often, it ends with the bits of
// a run that nothing happened to: no change is lost, applied twice, or to the factor
// of another moment. A site whose answer is lost on the way comes back with it.
func TestAsynchronousRunsSurviveCrashes(t *testing.T) {
	s := drawn(6, 60, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"schedule: asynchronous\nrounds: 4\ntolerance: 0\nrows: [{site: a, rows: 10}, {site: b, rows: 20}, {site: c, rows: 60}]", unprotected)
	data := s.config(t, p).Data
	quiet, err := start(t, enginetest.New(p.Sites...), p, data).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := quiet.Result.Files[0].Data
	for seed := range 60 {
		w := enginetest.New(p.Sites...)
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		crashes := 0
		for {
			c := start(t, w, p, data)
			w.Start(r.IntN(25))
			out, err := c.Run(t.Context())
			if err == nil {
				if !bytes.Equal(out.Result.Files[0].Data, want) {
					t.Fatalf("seed %d: after %d crashes the model is another", seed, crashes)
				}
				break
			}
			if !errors.Is(err, enginetest.ErrCrash) || crashes > 200 {
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
							cancel(enginetest.ErrCrash)
						}
					}
				}
				if _, err := local.Run(ctx, c); !errors.Is(err, enginetest.ErrCrash) {
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
		p.Quorum = 2
		w := enginetest.New(p.Sites...)
		w.Refuses = map[string]int{"b": 3}
		out, err := start(t, w, p, s.config(t, p).Data).Run(t.Context())
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
	quiet, err := start(t, enginetest.New(p.Sites...), p, data).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, refuses := range []map[string]int{{"c": 4}, {"a": 4, "b": 4, "c": 4}} {
		w := enginetest.New(p.Sites...)
		w.Refuses = refuses
		out, err := start(t, w, p, data).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Left) != len(refuses) {
			t.Fatalf("left: %v", out.Left)
		}
		close2(t, "Λμ", modelOf(t, out.Result).Posterior.Eta, modelOf(t, quiet.Result).Posterior.Eta, 0)
	}
}
