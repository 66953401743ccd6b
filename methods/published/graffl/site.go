package graffl

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/privacy"
)

// half is the site half of Algorithm 2.
type half struct{ *options.Site }

// Run implements [method.Site].
func (h half) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	answer, err := h.distances(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, h.Keep)
}

// distances answers the rounds of one task.
func (h half) distances(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
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
			// Infinity is sent as the largest float: what travels is finite.
			a.Distances = append(a.Distances, min(gmm.SquaredDistance(x, rows[k*d:][:d]), math.MaxFloat64))
		}
	}
	return a, ctx.Err()
}

// Report tells a site how many rows took part.
func (h half) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	if err := wire.Unmarshal(shared, new(report.Shared)); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	x := make([]float64, len(h.Names))
	rows, left := 0, 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if options.Complete(row, x) {
			rows++
		} else {
			left++
		}
	}
	return &method.Result{Metrics: map[string]float64{"subjects": float64(rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here, whose rows this study gave away", Value: strconv.Itoa(rows)}}}, nil
}
