package pvi

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/privacy"
)

// site is the half at one site. Between tasks it remembers only what one pass over
// the same rows gives again.
type site struct {
	*setup
	name   string
	design *gvi.Design
	scale  *scaleMessage // of design
}

// request is what a task of a kind releases.
func (h *site) request(kind string) privacy.Request {
	r := privacy.Request{Protection: privacy.Unprotected}
	say := func(values int, what string) {
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: values})
	}
	switch p := h.protected[h.name]; {
	case p != nil && kind == taskUpdate:
		return p.request(p.sum)
	case p != nil:
		return p.request(*p.quality)
	case kind == taskScale:
		say(3*len(h.numbers()), "number of values, mean and sum of squared deviations of each number")
	case kind == taskUpdate:
		r.Contents = []privacy.Content{h.exact.releases()}
	case kind == taskAssess:
		say(4+3*bins, "number of rows, how many are predicted correctly, their log-likelihood, the squared errors of numbers, and expected against observed frequencies in ten bins")
	}
	return r
}

// Run implements [method.Site].
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	run := h.exactRun
	if h.protected[h.name] != nil {
		run = h.protectedRun
	}
	answer, state, err := run(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, state)
}

// exactRun answers without protection. The state is what the site carries on.
func (h *site) exactRun(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	data, err := s.Data()
	if err != nil {
		return nil, nil, err
	}
	state = s.State()
	switch t.Kind {
	case taskScale:
		answer, err = h.moments(ctx, data)
	case taskUpdate:
		answer, state, err = h.update(ctx, t, data, state)
	case taskAssess:
		answer, err = h.assess(ctx, t, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return answer, state, err
}

// read makes the site's design matrix, and keeps it.
func (h *site) read(ctx context.Context, scale *scaleMessage, data dataset.Source) (*gvi.Design, error) {
	if h.design != nil && reflect.DeepEqual(h.scale, scale) {
		return h.design, nil
	}
	e, err := h.scaled(scale)
	if err != nil {
		return nil, err
	}
	b, err := h.bind(e, data.Schema())
	if err != nil {
		return nil, err
	}
	d := gvi.NewDesign(e.Width())
	var x gvi.Row
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		y, err := b.Outcome(h.likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		if err == nil {
			err = d.Append(x, y)
		}
		if err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	if d.Rows() == 0 {
		return nil, fmt.Errorf("the site has no subjects")
	}
	h.design, h.scale = d, scale
	return d, nil
}

// moments sums up the numbers of the plan.
func (h *site) moments(ctx context.Context, data dataset.Source) (*scaleAnswer, error) {
	e := h.encoding
	e.Columns = append([]gvi.Column(nil), e.Columns...)
	for i := range e.Columns {
		e.Columns[i].Missing = gvi.Fallback{Rule: gvi.Neutral}
	}
	b, err := e.Bind(data.Schema(), nil)
	if err != nil {
		return nil, err
	}
	numbers := h.numbers()
	a := &scaleAnswer{N: make(wire.Vector, len(numbers)), Mean: make(wire.Vector, len(numbers)), Squares: make(wire.Vector, len(numbers))}
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			x := b.Cell(row, j)
			if math.IsNaN(x) {
				continue
			}
			a.N[i]++
			d := x - a.Mean[i]
			a.Mean[i] += d / a.N[i]
			a.Squares[i] += d * (x - a.Mean[i])
		}
	}
	return a, nil
}

// update answers one update: the exact local optimum, or a step of variant global.
func (h *site) update(ctx context.Context, t method.Task, data dataset.Source, carried []byte) (answer any, carry []byte, err error) {
	task := new(updateTask)
	if err := rounds.Open(t, task); err != nil {
		return nil, nil, err
	}
	_, q, factor, err := task.open(h.setup, h.name)
	if err != nil {
		return nil, nil, err
	}
	d, err := h.read(ctx, task.Scale, data)
	if err != nil {
		return nil, nil, err
	}
	return h.exact.refine(h, task, q, factor, d, carried)
}
