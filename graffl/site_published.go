package graffl

import (
	"context"
	"fmt"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// taskDistances asks for one iteration of Algorithm 2: proposals are functions of
// the plan's seed, so that the task is a number.
const taskDistances = "distances"

// distancesTask names an iteration, from 0.
type distancesTask struct {
	Iteration int `cbor:"iteration"`
}

// distancesAnswer holds the squared distance of each row to its simulated one.
type distancesAnswer struct {
	Distances wire.Vector `cbor:"distances"`
}

// publishedTasks is how many tasks each site of variant published gets.
func (s *setup) publishedTasks() int { return s.opts.Published.Rounds }

// publishedRequest is what each of them releases.
func (s *setup) publishedRequest() privacy.Request {
	return unprotected(privacy.Content{Values: 1,
		What: fmt.Sprintf("so many numbers for every row: its exact squared distance to a known point; %d such answers are the row", len(s.names)+1)})
}

// proposer makes the proposals that a site of variant published compares its rows
// with.
func (s *setup) proposer(site string) *Proposer {
	return NewProposer(s.prior, s.seed(fmt.Sprintf("proposals %q", site)))
}

// distances answers one iteration.
func (h *site) distances(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	task := new(distancesTask)
	if err := decodeTask(t, task); err != nil {
		return nil, err
	}
	if task.Iteration < 0 || task.Iteration >= h.opts.Published.Rounds {
		return nil, fmt.Errorf("iteration %d of a plan with %d", task.Iteration, h.opts.Published.Rounds)
	}
	rows, err := h.all(ctx, s)
	if err != nil {
		return nil, err
	}
	d := len(h.names)
	n := len(rows) / d
	a := distancesAnswer{make(wire.Vector, n)}
	p, x := h.proposer(h.name), make([]float64, d)
	for k := range n {
		p.Row(task.Iteration*n+k, x)
		a.Distances[k] = squaredDistance(x, rows[k*d:][:d])
	}
	return a, nil
}

// publishedReport tells a site how many rows took part.
func (h *site) publishedReport(ctx context.Context, data dataset.Source) (*method.Result, error) {
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
