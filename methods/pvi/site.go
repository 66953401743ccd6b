package pvi

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// site is the half at one site. Between tasks it remembers only what one pass over
// the same rows gives again.
type site struct {
	*setup
	name   string
	design *Design
	scale  *scaleMessage // of design
}

// request is what a task of a kind releases.
func (h *site) request(kind string) privacy.Request {
	r := privacy.Request{Protection: privacy.Unprotected}
	say := func(values int, what string) {
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: values})
	}
	weights := h.weights()
	switch p := h.protected[h.name]; {
	case p != nil && kind == taskUpdate:
		return p.request(p.sum)
	case p != nil:
		return p.request(*p.quality)
	case kind == taskScale:
		say(3*len(h.numbers()), "number of values, mean and sum of squared deviations of each number")
	case kind == taskUpdate && h.opts.Variant == VariantGlobal:
		say(2*weights, "a step along the gradient of a minibatch, for mean and variance of each weight")
	case kind == taskUpdate:
		say(2*weights, "change of the posterior's precision and precision × mean of each weight that the site's rows ask for")
	case kind == taskAssess:
		say(4+3*bins, "number of rows, how many are predicted correctly, their log-likelihood, the squared errors of numbers, and expected against observed frequencies in ten bins")
	}
	return r
}

// Run implements [method.Site].
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (a method.Answer, err error) {
	var answer any // nil where the noised sum is all of it
	if h.protected[h.name] != nil {
		answer, a.State, err = h.protectedRun(ctx, t, s)
	} else {
		answer, a.State, err = h.exactRun(ctx, t, s)
	}
	if err != nil || answer == nil {
		return a, err
	}
	if a.Body, err = wire.Marshal(answer); err != nil {
		err = fmt.Errorf("encoding the answer to %q: %w", t.Kind, err)
	}
	return a, err
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
		answer, err = h.assess(ctx, t.Body, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return answer, state, err
}

// read makes the site's design matrix, and keeps it.
func (h *site) read(ctx context.Context, scale *scaleMessage, data dataset.Source) (*Design, error) {
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
	d := NewDesign(e.Width())
	var x Row
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
	e.Columns = append([]Column(nil), e.Columns...)
	for i := range e.Columns {
		e.Columns[i].Missing = Fallback{Rule: Neutral}
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
			p := b.places[j]
			if row.Views[p.view] == nil || math.IsNaN(row.Views[p.view][p.column]) {
				continue
			}
			x := row.Views[p.view][p.column]
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
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return nil, nil, fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	_, q, factor, err := task.open(h.setup, h.name)
	if err != nil {
		return nil, nil, err
	}
	d, err := h.read(ctx, task.Scale, data)
	if err != nil {
		return nil, nil, err
	}
	if h.opts.Variant == VariantGlobal {
		return h.step(task, q, d, carried)
	}
	local := Local{Likelihood: h.likelihood, Data: d, Cavity: q.Over(factor)}
	target, info, err := local.Optimum(q, Solve{})
	if err != nil {
		return nil, nil, err
	}
	if !info.Converged {
		return nil, nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", ErrNotConverged, info.Steps, info.Step)
	}
	return updateAnswer{Change: packGaussian(target.Over(q))}, nil, nil
}

// step takes a step of variant global, with rows drawn without replacement and an
// Adagrad of the site's own, which it carries.
func (h *site) step(t *updateTask, q Gaussian, d *Design, carried []byte) (any, []byte, error) {
	batch := PaperBatch(d.Rows(), h.opts.Global.BatchShare)
	g, err := NewGradient(h.likelihood, h.prior, d.Columns(), float64(h.opts.allRows()), float64(batch))
	if err != nil {
		return nil, nil, err
	}
	adagrad := carriedAdagrad{Sum: make(wire.Vector, g.Len())}
	if carried != nil {
		if err := wire.Unmarshal(carried, &adagrad); err != nil {
			return nil, nil, fmt.Errorf("the site's own state: %w", err)
		}
	}
	optimiser := Adagrad{h.opts.Global.LearningRate, adagrad.Sum}
	if err := optimiser.Check(g.Len()); err != nil {
		return nil, nil, fmt.Errorf("the site's own state: %w", err)
	}
	from, to := Point(q), Point(q)
	globalStep(to, g, &optimiser, d, draws(h.plan, "batch", h.name, t.Update).Perm(d.Rows())[:batch])
	for i := range to {
		to[i] -= from[i]
	}
	carry, err := wire.Marshal(adagrad)
	return stepAnswer{to}, carry, err
}

// carriedAdagrad is what a site keeps of its optimiser between updates.
type carriedAdagrad struct {
	Sum wire.Vector `cbor:"sum"`
}
