package graffl

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/graffl/abc"
	"parley/methods/graffl/published"
)

// leastBatch is how many rounds a task has at least.
const leastBatch = 16

// publishedHalves are a study of three tasks, the last of them shorter.
func publishedHalves(t *testing.T) (method.Coordinator, half) {
	t.Helper()
	c, h, _ := hostileHalves(t, fmt.Sprintf("variant: published, published: {rounds: %d, accepted: 17}", 2*leastBatch+3), "{protection: none}")
	return c, h
}

// What tasks of many rounds accept is what Algorithm 2 accepts one proposal at a
// time.
func TestPublishedTasksAreAlgorithm2(t *testing.T) {
	c, h := publishedHalves(t)
	rows := []float64{1, -2, 3.5} // of both sites: see threeRows
	want, err := abc.NewAcceptance(17)
	if err != nil {
		t.Fatal(err)
	}
	for j, name := range h.Plan.Sites {
		p, x := published.NewProposer(h.Setup, name), make([]float64, 1)
		for round := range h.Options.Published.Rounds {
			for k, row := range rows {
				p.Row(round*len(rows)+k, x)
				if err := want.Offer(abc.Answer{Iteration: round, Site: j, Row: k, Distance: (x[0] - row) * (x[0] - row)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	tasks, sites := 0, everySite(t, h.Plan, threeRows(t, h.Plan))
	for {
		step, err := c.Next(s)
		if err != nil {
			t.Fatal(err)
		}
		if s = step.State; step.Done {
			break
		}
		for _, task := range step.Tasks {
			in, err := sites[task.Site].answer(t, task)
			if err != nil {
				t.Fatal(err)
			}
			if s, err = c.Fold(s, in); err != nil {
				t.Fatal(err)
			}
			tasks++
		}
	}
	state, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	got := &unpack[publishedState](t, state).Kept
	if tasks != 6 || !reflect.DeepEqual(got.Sorted(), want.Sorted()) || got.Rejected != want.Rejected {
		t.Errorf("%d tasks accepted\n%v\nwant\n%v", tasks, got.Sorted(), want.Sorted())
	}
}

// A site that answers another number of distances than it has rows and rounds, or
// twice, is refused.
func TestPublishedAnswersOfTheWrongLengthAreRefused(t *testing.T) {
	c, _ := publishedHalves(t)
	s, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	fold := func(site string, distances wire.Vector) error {
		_, err := c.Fold(s, method.Contribution{Site: site, Kind: taskDistances, Body: pack(t, distancesAnswer{distances})})
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
	refused(fold("a", constant(4*leastBatch+1, 1)), "as many in each as the site has rows")
	if err := fold("a", constant(4*leastBatch, 1)); err != nil {
		t.Fatal(err)
	}
	refused(fold("a", constant(4*leastBatch, 1)), "already answered")
	if err := fold("b", nil); err != nil { // a site may have no row with all features
		t.Fatal(err)
	}
	next()
	refused(fold("a", constant(5*leastBatch, 1)), "5 rows from a site that had 4")
	refused(fold("a", nil), "0 rows from a site that had 4")
	if err := fold("a", constant(4*leastBatch, 1)); err != nil {
		t.Fatal(err)
	}
	next() // the last has three rounds
	refused(fold("a", constant(4*leastBatch, 1)), "as many in each")
	if err := fold("a", constant(4*3, 1)); err != nil {
		t.Fatal(err)
	}
}

// A state between two tasks is of another plan, or damaged.
func TestPublishedStatesBetweenTasksAreRefused(t *testing.T) {
	c, h := publishedHalves(t)
	kept := abc.Acceptance{Limit: 17}
	for name, s := range map[string]*publishedState{
		"inside a task":   {Iteration: 1, Kept: kept},
		"asked when done": {Iteration: h.Options.Published.Rounds, Asked: true, Kept: kept},
		"too many":        {Folded: map[string]int{"a": h.Options.Published.Rounds + 1}, Kept: kept},
	} {
		if _, err := c.Restore(pack(t, s)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	whole := &publishedState{Iteration: leastBatch, Asked: true, Kept: kept}
	if _, err := c.Restore(pack(t, whole)); err != nil {
		t.Error(err)
	}
}
