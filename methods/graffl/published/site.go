package published

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/method/adversary"
	"parley/method/rounds"
	"parley/methods/graffl/abc"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/report"
	"parley/methods/graffl/setup"
	"parley/privacy"
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

// Variant is Algorithm 2 as it was published, for comparison. It implements [setup.Variant].
type Variant struct{}

func (Variant) Task() string                             { return taskDistances }
func (Variant) Steps(s *setup.Setup) int                 { return s.Options.Published.Rounds }
func (Variant) Coordinator(s *setup.Setup) setup.Sampled { return &coordinator{s} }
func (Variant) Site(h *setup.Site) method.Site           { return site{h} }

// Times is how many tasks each site gets: at most 256, however many proposals there are.
func (Variant) Times(s *setup.Setup) int {
	o := s.Options.Published
	return (o.Rounds + o.Batch() - 1) / o.Batch()
}

// Request is what each of them releases. How many rows a site has is not in the
// plan, so that there is no bound but that of a message.
func (Variant) Request(s *setup.Setup) privacy.Request {
	return setup.Unprotected(privacy.Content{Values: maxAnswer,
		What: fmt.Sprintf("%d numbers for every row, whatever rows there are: its exact squared distances to known points; %d such numbers are the row", s.Options.Published.Together(0), len(s.Names)+1)})
}

// NewProposer makes the proposals that a site compares its rows with: whoever knows the
// plan can make them again.
func NewProposer(s *setup.Setup, site string) *abc.Proposer {
	return abc.NewProposer(s.Prior, s.Seed(fmt.Sprintf("proposals %q", site)))
}

// site is the site half of Algorithm 2.
type site struct{ *setup.Site }

// Run implements [method.Site].
func (h site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	answer, err := h.distances(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, h.Keep)
}

// distances answers the rounds of one task.
func (h site) distances(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	task := new(distancesTask)
	if err := h.Open(t, taskDistances, task); err != nil {
		return nil, err
	}
	o := h.Options.Published
	if task.Iteration < 0 || task.Iteration >= o.Rounds || task.Iteration%o.Batch() != 0 {
		return nil, fmt.Errorf("no task begins with iteration %d of a plan with %d, %d of them at a time", task.Iteration, o.Rounds, o.Batch())
	}
	rows, err := h.All(ctx, s)
	if err != nil {
		return nil, err
	}
	d, together := len(h.Names), o.Together(task.Iteration)
	n := len(rows) / d
	if n > maxAnswer/together {
		return nil, fmt.Errorf("%d distances for each of %d rows are more than one answer holds: ask for fewer rounds than %d", together, n, o.Rounds)
	}
	a := distancesAnswer{make(wire.Vector, 0, together*n)}
	p, x := NewProposer(h.Setup, h.Name), make([]float64, d)
	for t := task.Iteration; t < task.Iteration+together && ctx.Err() == nil; t++ {
		for k := range n {
			p.Row(t*n+k, x)
			// Beyond all measure is far enough: what travels is finite.
			a.Distances = append(a.Distances, min(mixture.SquaredDistance(x, rows[k*d:][:d]), math.MaxFloat64))
		}
	}
	return a, ctx.Err()
}

// maxAnswer is how many distances go into a message, with room for what is around
// them.
const maxAnswer = (wire.MaxBytes - 1<<16) / 8

// Report tells a site how many rows took part.
func (h site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	if err := wire.Unmarshal(shared, new(report.Shared)); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	x := make([]float64, len(h.Names))
	rows, left := 0, 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if setup.Complete(row, x) {
			rows++
		} else {
			left++
		}
	}
	return &method.Result{Metrics: map[string]float64{"subjects": float64(rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here, whose rows this study gave away", Value: strconv.Itoa(rows)}}}, nil
}

// Distances sorts what passed in a study by site and round, for whoever attacks it.
func Distances(s *setup.Setup, seen []adversary.Exchange) (map[string][]wire.Vector, error) {
	out := map[string][]wire.Vector{}
	for _, e := range seen {
		task, answer := new(distancesTask), new(distancesAnswer)
		if err := rounds.Open(e.Task, task); err != nil {
			return nil, err
		}
		if err := rounds.Decode(e.Answer, answer); err != nil {
			return nil, err
		}
		rounds := s.Options.Published.Together(task.Iteration)
		if task.Iteration != len(out[e.Task.Site]) || rounds == 0 || len(answer.Distances) == 0 || len(answer.Distances)%rounds != 0 {
			return nil, fmt.Errorf("site %s has sent %d distances from round %d on, after %d rounds", e.Task.Site, len(answer.Distances), task.Iteration, len(out[e.Task.Site]))
		}
		out[e.Task.Site] = slices.AppendSeq(out[e.Task.Site], slices.Chunk(answer.Distances, len(answer.Distances)/rounds))
	}
	return out, nil
}
