package graffl

import (
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture"
)

// taskDistances asks for some rounds of Algorithm 2: proposals are functions of the
// plan's seed, so that the task is a number.
const taskDistances = "distances"

// distancesTask names the first of the rounds, from 0; how many there are follows
// from the plan.
type distancesTask struct {
	Iteration int `cbor:"iteration"`
}

// distancesAnswer holds the squared distance of each row to its simulated one: of
// all rows in the first round, then in the next.
type distancesAnswer struct {
	Distances wire.Vector `cbor:"distances"`
}

// maxAnswer is how many distances go into a message, with room for what is around
// them.
const maxAnswer = (wire.MaxBytes - 1<<16) / 8

// newProposer makes the proposals that a site compares its rows with: whoever knows the
// plan can make them again.
func newProposer(s *mixture.Setup, site string) *proposer {
	return NewProposer(s.Prior, s.Seed(fmt.Sprintf("proposals %q", site)))
}

// distances sorts what passed in a study by site and round, for whoever attacks it.
func (o *Options) distances(seen []method.Exchange) (map[string][]wire.Vector, error) {
	out := map[string][]wire.Vector{}
	for _, e := range seen {
		task, answer := new(distancesTask), new(distancesAnswer)
		if err := method.OpenTask(e.Task, task); err != nil {
			return nil, err
		}
		if err := method.DecodeAnswer(e.Answer, answer); err != nil {
			return nil, err
		}
		rounds := o.together(task.Iteration)
		if task.Iteration != len(out[e.Task.Site]) || rounds == 0 || len(answer.Distances) == 0 || len(answer.Distances)%rounds != 0 {
			return nil, fmt.Errorf("site %s has sent %d distances from round %d on, after %d rounds", e.Task.Site, len(answer.Distances), task.Iteration, len(out[e.Task.Site]))
		}
		out[e.Task.Site] = slices.AppendSeq(out[e.Task.Site], slices.Chunk(answer.Distances, len(answer.Distances)/rounds))
	}
	return out, nil
}
