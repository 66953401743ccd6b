package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"parley/engine/enginetest"
	"parley/engine/wire"
)

// narrow is a wire that carries little under the keys that contain a text.
type narrow struct {
	*wire.Memory
	under string
	most  int
}

func (n narrow) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	if strings.Contains(key, n.under) && len(value) > n.most {
		return 0, wire.ErrTooLarge
	}
	return n.Memory.Put(ctx, key, value, after)
}

// What a wire does not carry ends in words, and is not put for ever: an answer makes
// its site leave, and a task ends the run.
func TestWhatIsTooLargeIsSaid(t *testing.T) {
	run := func(under string, most int) (left []string, err error) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnds(t, narrow{wire.NewMemory(), under, most}, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2},
				1, "north", "south"))
			ctx, cancel := context.WithCancel(t.Context())
			wait := e.serve(ctx)
			out, failed := e.coordinator(e.links(ctx)).Run(ctx)
			if err = failed; failed == nil {
				left = out.Left
			}
			cancel()
			wait()
		})
		return left, err
	}
	// A refusal has some 320 bytes when sealed, a release more.
	if left, err := run("answer.south", 400); err != nil || len(left) != 1 || left[0] != "south" {
		t.Errorf("an answer too large: %v left, %v; want south to leave", left, err)
	}
	if _, err := run("task.south", 100); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("a task too large: %v; want ErrTooLarge", err)
	}
}

// What takes a site that says so longer than a message waits for its answer is sent once, as is what it then answers.
func TestNothingIsSentAgainWhileASiteComputes(t *testing.T) {
	var puts []int
	for _, n := range []enginetest.ToyRows{0, 500} {
		synctest.Test(t, func(t *testing.T) {
			net := &counter{Memory: wire.NewMemory()}
			e := newEnds(t, net, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2}, 1, "north"))
			e.data = slow{n}
			ctx, cancel := context.WithCancel(t.Context())
			wait := e.serve(ctx)
			links := e.links(ctx)
			links["north"].(*wire.Link).Busy = e.busy.Load
			if _, err := e.coordinator(links).Run(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
			wait()
			puts = append(puts, net.puts)
		})
	}
	if puts[0] != puts[1] {
		t.Errorf("where each row takes a second, there were %d puts for no rows, and %d for 500", puts[0], puts[1])
	}
}
