package regression_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/internal/testkit"
)

// A private run that was killed ends as its releases say; from the
// sites' stores alone the coordinator comes to the same bits. Noise is drawn anew for
// each task and never for a task that was answered.
func TestKilledPrivateRunsGoOn(t *testing.T) {
	s := drawn(7, 60, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"rounds: 8", strings.Replace(protected, "{epsilon: 2, delta: 1e-5}", "{epsilon: 2, delta: 1e-3}", 1))
	c := config(t, s, p)
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
	testkit.Do(t, os.Remove(filepath.Join(c.Dir, local.CheckpointName)))
	again, replayed := run(t, c)
	if !bytes.Equal(out.Result.Files[0].Data, replayed.Result.Files[0].Data) {
		t.Errorf("from what the sites had released came another model:\n%v\n%v", first.Posterior, again.Posterior)
	}
	if !first.Private {
		t.Error("the model does not say that it is private")
	}
}
