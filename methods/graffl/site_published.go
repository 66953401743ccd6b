package graffl

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

// publishedVariant is Algorithm 2 as it was published, for comparison.
type publishedVariant struct{}

func (publishedVariant) task() string                 { return taskDistances }
func (publishedVariant) steps(s *setup) int           { return s.opts.Published.Rounds }
func (publishedVariant) coordinator(s *setup) sampled { return &publishedCoordinator{s} }
func (publishedVariant) site(h *site) method.Site     { return publishedSite{h} }

// times is how many tasks each site of variant published gets: at most
// mostTasks, however many proposals there are.
func (publishedVariant) times(s *setup) int {
	o := s.opts.Published
	return (o.Rounds + o.batch() - 1) / o.batch()
}

// request is what each of them releases. How many rows a site has is not in the
// plan, so that there is no bound but that of a message.
func (publishedVariant) request(s *setup) privacy.Request {
	return unprotected(privacy.Content{Values: maxAnswer,
		What: fmt.Sprintf("%d numbers for every row, whatever rows there are: its exact squared distances to known points; %d such numbers are the row", s.opts.Published.together(0), len(s.names)+1)})
}

// proposer makes the proposals that a site of variant published compares its rows
// with.
func newProposer(s *setup, site string) *abc.Proposer {
	return abc.NewProposer(s.prior, s.seed(fmt.Sprintf("proposals %q", site)))
}

// publishedSite is the site half of Algorithm 2.
type publishedSite struct{ *site }

// Run implements [method.Site].
func (h publishedSite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	answer, err := h.distances(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, h.keep)
}

// distances answers the rounds of one task.
func (h publishedSite) distances(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	task := new(distancesTask)
	if err := h.open(t, taskDistances, task); err != nil {
		return nil, err
	}
	o := h.opts.Published
	if task.Iteration < 0 || task.Iteration >= o.Rounds || task.Iteration%o.batch() != 0 {
		return nil, fmt.Errorf("no task begins with iteration %d of a plan with %d, %d of them at a time", task.Iteration, o.Rounds, o.batch())
	}
	rows, err := h.all(ctx, s)
	if err != nil {
		return nil, err
	}
	d, together := len(h.names), o.together(task.Iteration)
	n := len(rows) / d
	if n > maxAnswer/together {
		return nil, fmt.Errorf("%d distances for each of %d rows are more than one answer holds: ask for fewer rounds than %d", together, n, o.Rounds)
	}
	a := distancesAnswer{make(wire.Vector, 0, together*n)}
	p, x := newProposer(h.setup, h.name), make([]float64, d)
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
func (h publishedSite) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	if err := wire.Unmarshal(shared, new(sharedModel)); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	x := make([]float64, len(h.names))
	rows, left := 0, 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if read(row, x) {
			rows++
		} else {
			left++
		}
	}
	return &method.Result{Metrics: map[string]float64{"subjects": float64(rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here, whose rows this study gave away", Value: strconv.Itoa(rows)}}}, nil
}

// distancesSeen sorts what passed by site and round.
func distancesSeen(s *setup, seen []adversary.Exchange) (map[string][]wire.Vector, error) {
	out := map[string][]wire.Vector{}
	for _, e := range seen {
		task, answer := new(distancesTask), new(distancesAnswer)
		if err := rounds.Open(e.Task, task); err != nil {
			return nil, err
		}
		if err := rounds.Decode(e.Answer, answer); err != nil {
			return nil, err
		}
		rounds := s.opts.Published.together(task.Iteration)
		if task.Iteration != len(out[e.Task.Site]) || rounds == 0 || len(answer.Distances) == 0 || len(answer.Distances)%rounds != 0 {
			return nil, fmt.Errorf("site %s has sent %d distances from round %d on, after %d rounds", e.Task.Site, len(answer.Distances), task.Iteration, len(out[e.Task.Site]))
		}
		out[e.Task.Site] = slices.AppendSeq(out[e.Task.Site], slices.Chunk(answer.Distances, len(answer.Distances)/rounds))
	}
	return out, nil
}
