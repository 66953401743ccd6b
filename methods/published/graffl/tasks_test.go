package graffl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/mixturetest"
	"parley/methods/mixture/options"
	"parley/methods/published/graffl/abc"
)

// The tasks of a plan cover its rounds once, and stay few.
func TestPublishedTasksCoverTheRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &options.PublishedOptions{Rounds: rapid.IntRange(1, 100_000).Draw(t, "rounds")}
		s := &options.Setup{Options: &options.Options{Published: o}}
		tasks, first := 0, 0
		for first < o.Rounds {
			if first%o.Batch() != 0 {
				t.Fatalf("a task begins with round %d, and batches have %d", first, o.Batch())
			}
			first += o.Together(first)
			tasks++
		}
		if first != o.Rounds || tasks != (Variant{}).Times(s) || tasks > 256 || o.Together(first) != 0 {
			t.Fatalf("%d tasks for %d rounds end at %d", tasks, o.Rounds, first)
		}
	})
}

// small is the coordinator of a study of three tasks, the last of them shorter.
func small() *coordinator {
	return &coordinator{mixturetest.New(mixturetest.Text(1, fmt.Sprintf("components: 2, variant: published, published: {rounds: %d, accepted: 17}", 2*leastBatch+3), "{protection: none}"))}
}

// leastBatch is how many rounds a task has at least.
const leastBatch = 16

func packed(t *testing.T, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ones(n int) wire.Vector { return slices.Repeat(wire.Vector{1}, n) }

// A site that answers another number of distances than it has rows and rounds, or
// twice, is refused.
func TestPublishedAnswersOfTheWrongLengthAreRefused(t *testing.T) {
	c := small()
	s, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	fold := func(site string, distances wire.Vector) error {
		_, err := c.Fold(s, method.Contribution{Site: site, Kind: taskDistances, Body: packed(t, distancesAnswer{Distances: distances})})
		return err
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	next := func() {
		t.Helper()
		if _, err := c.Next(s); err != nil {
			t.Fatal(err)
		}
	}
	next()
	refused(fold("a", ones(4*leastBatch+1)), "as many in each as the site has rows")
	if err := fold("a", ones(4*leastBatch)); err != nil {
		t.Fatal(err)
	}
	refused(fold("a", ones(4*leastBatch)), "already answered")
	if err := fold("b", nil); err != nil { // a site may have no row with all features
		t.Fatal(err)
	}
	next()
	refused(fold("a", ones(5*leastBatch)), "5 rows from a site that had 4")
	refused(fold("a", nil), "0 rows from a site that had 4")
	if err := fold("a", ones(4*leastBatch)); err != nil {
		t.Fatal(err)
	}
	next() // the last has three rounds
	refused(fold("a", ones(4*leastBatch)), "as many in each")
	if err := fold("a", ones(4*3)); err != nil {
		t.Fatal(err)
	}
}

// A state between two tasks is of another plan, or damaged.
func TestPublishedStatesBetweenTasksAreRefused(t *testing.T) {
	c := small()
	kept := abc.Acceptance{Limit: 17}
	for name, s := range map[string]*state{
		"inside a task":   {Iteration: 1, Kept: kept},
		"asked when done": {Iteration: c.Options.Published.Rounds, Asked: true, Kept: kept},
		"too many":        {Folded: map[string]int{"a": c.Options.Published.Rounds + 1}, Kept: kept},
	} {
		if _, err := c.Restore(packed(t, s)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	whole := &state{Iteration: leastBatch, Asked: true, Kept: kept}
	if _, err := c.Restore(packed(t, whole)); err != nil {
		t.Error(err)
	}
}
