package mixture

import (
	"fmt"
	"reflect"
	"testing"

	"parley/method"
	"parley/methods/published/graffl"
	"parley/methods/published/graffl/abc"
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
		p, x := graffl.NewProposer(h.Setup, name), make([]float64, 1)
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
