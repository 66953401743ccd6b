package nats

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// What the coordinator puts at once takes one commit for 64 sites, as for 30. A value that has changed meanwhile
// keeps none of the others back.
func TestPutsAreCommittedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server = nil, w.server
	c := w.connect(o)
	bucket, after := bucketOf(study), map[string]uint64{}
	// round puts a value for each site, while another is on its way; it counts commits, and those too late.
	round := func(value string, sites int) (alone, batches, moved int) {
		var group sync.WaitGroup
		var mu sync.Mutex
		before := after
		after = map[string]uint64{}
		c.mu.Lock()
		c.putting[bucket] = []*putting{}
		c.mu.Unlock()
		for i := range sites {
			key := wire.TaskKey(study, fmt.Sprintf("s%d", i))
			group.Go(func() {
				r, err := c.Put(within(t), key, []byte(value), before[key])
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, wire.ErrMoved) {
					moved++
				} else if after[key] = r; err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, "all wait", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.putting[bucket]) == sites
		})
		go c.putAll(bucket)
		group.Wait()
		ids := map[string]bool{}
		for key, revision := range after {
			m := testkit.Get(c.request(within(t), testkit.Get(locate(key))(t).get(), nil, nil))(t)
			if id := m.Header.Get("Nats-Batch-Id"); id != "" {
				ids[id] = true
			} else {
				alone++
			}
			if holds(t, c, key, value) != revision {
				t.Errorf("%s has another revision than who put it was told", key)
			}
		}
		return alone, len(ids), moved
	}
	for _, x := range []struct{ sites, alone, batches, moved int }{
		{3, 3, 0, 0}, {30, 0, 1, 0}, {64, 0, 1, 0}, {640, 0, 10, 0}, {60, 59, 0, 1},
	} {
		if x.moved > 0 { // the first has changed
			after[wire.TaskKey(study, "s0")]--
		}
		alone, batches, moved := round(fmt.Sprint(x), x.sites)
		if alone != x.alone || batches != x.batches || moved != x.moved {
			t.Errorf("%d sites: %d alone, %d batches, %d too late, want %v", x.sites, alone, batches, moved, x)
		}
	}
}
