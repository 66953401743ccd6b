package published

import (
	"testing"

	"pgregory.net/rapid"

	"parley/methods/graffl/options"
	"parley/methods/graffl/setup"
)

// The tasks of a plan cover its rounds once, and stay few.
func TestPublishedTasksCoverTheRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &options.PublishedOptions{Rounds: rapid.IntRange(1, 100_000).Draw(t, "rounds")}
		s := &setup.Setup{Options: &options.Options{Published: o}}
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
