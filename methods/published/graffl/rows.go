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
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/privacy"
)

// rowsRequest is what each task releases. How many rows a site has is not in the
// plan, so that there is no bound but that of a message.
func (s setup) rowsRequest() privacy.Request {
	return privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{Values: maxAnswer,
		What: fmt.Sprintf("%d numbers for every row, whatever rows there are: its exact squared distances to known "+
			"points; %d such numbers are the row", s.own.together(0), len(s.Names)+1)}}}
}

// rowsCoordinator is Algorithm 2 as it was published.
type rowsCoordinator struct{ setup }

// rowsState is what it carries: in memory that does not grow with proposals.
type rowsState struct {
	Iteration int            `cbor:"iteration"` // the first of those that answers are waited for; rounds, when done
	Asked     bool           `cbor:"asked"`
	Rows      map[string]int `cbor:"rows"`   // of each site, from its first answer
	Folded    map[string]int `cbor:"folded"` // iterations that each site has answered
	Left      []string       `cbor:"left"`
	Kept      acceptance     `cbor:"kept"`
}

// MarshalBinary implements [method.State].
func (s *rowsState) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// Init implements [method.Coordinator].
func (c *rowsCoordinator) Init() (method.State, error) {
	kept, err := newAcceptance(c.own.Accepted)
	if err != nil {
		return nil, err
	}
	return &rowsState{Rows: map[string]int{}, Folded: map[string]int{}, Kept: *kept}, nil
}

// Restore implements [method.Coordinator].
func (c *rowsCoordinator) Restore(data []byte) (method.State, error) {
	s := &rowsState{Rows: map[string]int{}, Folded: map[string]int{}}
	return s, method.OpenState(data, s)
}

// Next implements [method.Coordinator].
func (c *rowsCoordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*rowsState)
	all := c.own.Rounds
	if s.Asked {
		s.Asked = false
		s.Iteration += c.own.together(s.Iteration)
	}
	step := method.Step{State: s, Progress: s.Iteration, Of: all}
	if len(s.Kept.Kept) > 0 {
		largest, _ := s.Kept.Thresholds()
		step.Info = method.Info{"threshold": largest}
	}
	if s.Iteration >= all {
		if len(s.Kept.Kept) == 0 {
			return step, fitted.ErrNoRows
		}
		step.Done = true
		return step, nil
	}
	s.Asked = true
	var err error
	step.Tasks, err = method.Ask(taskDistances, method.Staying(c.Plan.Sites, s.Left), func(string) (any, error) {
		return distancesTask{s.Iteration}, nil
	})
	return step, err
}

// Fold implements [method.Coordinator].
func (c *rowsCoordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*rowsState)
	if err := method.Member(c.Plan.Sites, in.Site); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != taskDistances || !s.Asked:
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	case s.Folded[in.Site] > s.Iteration:
		return nil, method.Once(in, true)
	}
	a := new(distancesAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return nil, err
	}
	together, at := c.own.together(s.Iteration), slices.Index(c.Plan.Sites, in.Site)
	if len(a.Distances)%together != 0 {
		return nil, fmt.Errorf("%d distances in %d iterations: want as many in each as the site has rows",
			len(a.Distances), together)
	}
	n := len(a.Distances) / together
	if rows, known := s.Rows[in.Site]; known && n != rows {
		return nil, fmt.Errorf("distances of %d rows from a site that had %d before", n, rows)
	}
	for t := range together {
		for k, d := range a.Distances[t*n:][:n] {
			if err := s.Kept.Offer(answer{Iteration: s.Iteration + t, Site: at, Row: k, Distance: d}); err != nil {
				return nil, err
			}
		}
	}
	s.Rows[in.Site], s.Folded[in.Site] = n, s.Iteration+together
	return s, nil
}

// Leave implements [method.Coordinator]: what was accepted stays.
func (c *rowsCoordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*rowsState)
	var err error
	s.Left, err = method.Leave(c.Plan.Sites, s.Left, site)
	return s, err
}

// Share gives nothing: the mean of a cloud that does not contract is no model.
func (c *rowsCoordinator) Share(method.State, string) ([]byte, error) {
	return fitted.Share(gmm.Mixture{})
}

// accepted makes the accepted parameters again, in the order of their distance, and
// says where the component lies that made the row of each.
func (c *rowsCoordinator) accepted(s *rowsState) (p *gmm.Posterior, made []float64, err error) {
	if s.Iteration < c.own.Rounds || len(s.Kept.Kept) == 0 {
		return nil, nil, fmt.Errorf("the study is not done: it waits for iteration %d", s.Iteration+1)
	}
	kept := s.Kept.Sorted()
	p = &gmm.Posterior{}
	proposers := make([]*proposer, len(c.Plan.Sites))
	for _, a := range kept {
		site := c.Plan.Sites[a.Site]
		if proposers[a.Site] == nil {
			proposers[a.Site] = newProposer(c.Setup, site)
		}
		m := gmm.NewMixture(c.Prior.Components(), c.Prior.Dim())
		k := proposers[a.Site].Parameter(a.Iteration*s.Rows[site]+a.Row, m)
		made = append(made, m.Mean(k)...)
		if len(p.Draws) > 0 {
			m = m.Reorder(gmm.Match(p.Draws[0], m, scaleOf(c.Prior)))
		}
		p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, 1/float64(len(kept)))
	}
	p.Size = gmm.EffectiveSize(p.Weights)
	return p, made, nil
}

// site is the half at one site. Between tasks it remembers only what one more pass over the same rows gives again.
type site struct {
	setup
	Name string
	rows []float64 // which have all features
}

// all reads the rows, and keeps them.
func (h *site) all(ctx context.Context, s *privacy.Session) ([]float64, error) {
	data, err := s.Data()
	if err == nil && h.rows == nil {
		h.rows, _, err = h.complete(ctx, data)
	}
	return h.rows, err
}

// complete reads the rows that have all features, and counts the others.
func (h *site) complete(ctx context.Context, data dataset.Source) (rows []float64, left int, err error) {
	rows = []float64{}
	x := make([]float64, len(h.Names))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, 0, err
		}
		if fitted.Complete(row, x) {
			rows = append(rows, x...)
		} else {
			left++
		}
	}
	return rows, left, ctx.Err()
}

// rowsSite is the site half of Algorithm 2.
type rowsSite struct{ site }

// answered is the answer to a task, which must be of a kind.
func answered[T any](t method.Task, kind string, answer func(*T) (any, error)) (method.Answer, error) {
	if t.Kind != kind {
		return method.Answer{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(T)
	err := method.OpenTask(t, task)
	if err != nil {
		return method.Answer{}, err
	}
	a, err := answer(task)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, a, nil)
}

// Run implements [method.Site].
func (h *rowsSite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	return answered(t, taskDistances, func(task *distancesTask) (any, error) { return h.distances(ctx, task, s) })
}

// distances answers the rounds of one task.
func (h *rowsSite) distances(ctx context.Context, task *distancesTask, s *privacy.Session) (any, error) {
	o := h.own
	if task.Iteration < 0 || task.Iteration >= o.Rounds || task.Iteration%o.batch() != 0 {
		return nil, fmt.Errorf("no task begins with iteration %d of a plan with %d, %d of them at a time",
			task.Iteration, o.Rounds, o.batch())
	}
	rows, err := h.all(ctx, s)
	if err != nil {
		return nil, err
	}
	d, together := len(h.Names), o.together(task.Iteration)
	n := len(rows) / d
	if n > maxAnswer/together {
		return nil, fmt.Errorf("%d distances for each of %d rows are more than one answer holds: ask for fewer rounds "+
			"than %d", together, n, o.Rounds)
	}
	a := distancesAnswer{make(wire.Vector, 0, together*n)}
	p, x := newProposer(h.Setup, h.Name), make([]float64, d)
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
func (h *rowsSite) Report(ctx context.Context, _ []byte, data dataset.Source) (*method.Result, error) {
	rows, left, err := h.complete(ctx, data)
	if err != nil {
		return nil, err
	}
	n := len(rows) / len(h.Names)
	return &method.Result{Metrics: map[string]float64{"subjects": float64(n), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here, whose rows this study gave away", Value: strconv.Itoa(n)}}}, nil
}

// taskDistances asks for some rounds of Algorithm 2: proposals are functions of the
// plan's seed, so that the task is a number.
const taskDistances = "distances"

// distancesTask names the first of the rounds, from 0; how many there are follows from the plan.
type distancesTask struct {
	Iteration int `cbor:"iteration"`
}

// distancesAnswer holds the squared distance of each row to its simulated one: of
// all rows in the first round, then in the next.
type distancesAnswer struct {
	Distances wire.Vector `cbor:"distances"`
}

// maxAnswer is how many distances go into a message, with room for what is around them.
const maxAnswer = (wire.MaxBytes - 1<<16) / 8

// newProposer makes the proposals that a site compares its rows with: whoever knows the plan can make them again.
func newProposer(s *fitted.Setup, site string) *proposer {
	return NewProposer(s.Prior, fitted.SeedOf(s.Plan, fmt.Sprintf("proposals %q", site)))
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
		if task.Iteration != len(out[e.Task.Site]) || rounds == 0 || len(answer.Distances) == 0 ||
			len(answer.Distances)%rounds != 0 {
			return nil, fmt.Errorf("site %s has sent %d distances from round %d on, after %d rounds", e.Task.Site,
				len(answer.Distances), task.Iteration, len(out[e.Task.Site]))
		}
		out[e.Task.Site] = slices.AppendSeq(out[e.Task.Site],
			slices.Chunk(answer.Distances, len(answer.Distances)/rounds))
	}
	return out, nil
}
