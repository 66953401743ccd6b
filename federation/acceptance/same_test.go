//go:build unix

package acceptance

import "testing"

// Over one process for the coordinator and one for each of three sites, synchronous
// exact studies end with the bytes of parley run at every end. All studies end with
// what folding the recorded releases in the recorded order gives: rebuilding does
// just that.
func TestStudiesEndAsParleyRunDoes(t *testing.T) {
	for _, c := range []struct {
		name  string // of the study
		plan  func(*testing.T) string
		sites []string
		same  bool // as parley run; otherwise noise, or the order of answers, is another
	}{
		{"alzheimer", func(t *testing.T) string { return example(t, "alzheimer/plan.yaml") }, three, true},
		{"alzheimer-private", func(t *testing.T) string { return example(t, "alzheimer/private.yaml") }, three, false},
		{"mixture", func(t *testing.T) string { return example(t, "mixture/plan.yaml") }, []string{"west", "south", "east"}, false},
		{"pvi-synchronous", func(t *testing.T) string {
			return written(t, regression("pvi-synchronous", "schedule: synchronous, rounds: 8", exact))
		}, three, true},
		{"pvi-sequential", func(t *testing.T) string {
			return written(t, regression("pvi-sequential", "schedule: sequential, rounds: 4", exact))
		}, three, true},
		{"pvi-asynchronous", func(t *testing.T) string {
			return written(t, regression("pvi-asynchronous", "schedule: asynchronous, rounds: 8", exact))
		}, three, false},
		{"pvi-private", func(t *testing.T) string {
			return written(t, regression("pvi-private", "rounds: 6", private))
		}, three, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.plan(t), c.sites...)
			w.all()
			w.delivered(c.name)
			if c.same {
				w.same(c.name)
			}
			w.clean(c.name)
			w.replay(c.name)
			for _, s := range append(w.sites, "") {
				w.stop(s)
			}
		})
	}
}
