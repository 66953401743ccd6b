package graffl

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
)

// The tasks of a plan cover its rounds once, and stay few.
func TestTasksCoverTheRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Options{Rounds: rapid.IntRange(1, 100_000).Draw(t, "rounds")}
		tasks, first := 0, 0
		for first < o.Rounds {
			if first%o.batch() != 0 {
				t.Fatalf("a task begins with round %d, and batches have %d", first, o.batch())
			}
			first += o.together(first)
			tasks++
		}
		if first != o.Rounds || tasks != o.tasks() || tasks > 256 || o.together(first) != 0 {
			t.Fatalf("%d tasks for %d rounds end at %d", tasks, o.Rounds, first)
		}
	})
}

// waiting is the coordinator of a small plan, and its state that waits for the first answers.
func waiting(t *testing.T, name string) (method.Coordinator, method.State) {
	t.Helper()
	p, _ := planned(t, small[name])
	c := testkit.Get(Method{}.Coordinator(p))(t)
	return c, testkit.Get(c.Next(testkit.Get(c.Init())(t)))(t).State
}

func packed(t *testing.T, v any) []byte {
	t.Helper()
	return testkit.Get(wire.Marshal(v))(t)
}

func ones(n int) wire.Vector { return slices.Repeat(wire.Vector{1}, n) }

// A site that answers another number of distances than it has rows and rounds, or
// twice, is refused.
func TestAnswersOfTheWrongLengthAreRefused(t *testing.T) {
	c, s := waiting(t, "rows")
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
func TestStatesBetweenTasksAreRefused(t *testing.T) {
	c, _ := waiting(t, "rows")
	rounds := c.(*rowsCoordinator).own.Rounds
	kept := acceptance{Limit: 17}
	for name, s := range map[string]*rowsState{
		"inside a task":   {Iteration: 1, Kept: kept},
		"asked when done": {Iteration: rounds, Asked: true, Kept: kept},
		"too many":        {Folded: map[string]int{"a": rounds + 1}, Kept: kept},
	} {
		if _, err := c.Restore(packed(t, s)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	whole := &rowsState{Iteration: leastBatch, Asked: true, Kept: kept}
	if _, err := c.Restore(packed(t, whole)); err != nil {
		t.Error(err)
	}
}
