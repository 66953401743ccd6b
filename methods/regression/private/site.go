package private

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// site is the half at one site. It remembers nothing between tasks.
type site struct {
	*common
	name string
}

// NewSite is the site's half of a study.
func NewSite(s *options.Setup, name string) (*site, error) {
	c, err := newCommon(s)
	return &site{c, name}, err
}

// Listed is what the site is asked for over the whole study, at most.
func (h *site) Listed() (list []privacy.Listed) {
	early := burn(h.Options.Rounds)
	for _, k := range []struct {
		kind  string
		times int
	}{{taskHistogram, histograms}, {taskTotals, 1}, {taskProducts, 1}, {taskEarly, early}, {taskLate, h.Options.Rounds - early}, {options.TaskAssess, 1}} {
		if sum := h.sum(k.kind); sum != nil {
			list = append(list, privacy.Listed{Kind: k.kind, Times: k.times, Request: privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*sum}}})
		}
	}
	return list
}

// Run answers from one noised sum alone. Nothing that depends on a row but through it may
// show: a row that cannot be read as the plan says contributes nothing, and no error tells
// of it.
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	units, contribution, err := h.contribution(t)
	if err != nil {
		return method.Answer{}, err
	}
	e, err := h.encoding(units, t.Kind == taskHistogram)
	if err != nil {
		return method.Answer{}, err
	}
	b, err := h.Bind(e, h.Plan.Schema())
	if err != nil {
		return method.Answer{}, err
	}
	if _, err = s.Sum(ctx, h.sum(t.Kind).Name, h.OverRows(b, contribution)); err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, nil, s.State())
}

// contribution is what a row gives to the sum that a task asks for, and the units that it is in.
func (h *site) contribution(t method.Task) (units *options.Scale, each func(x glm.Row, y float64, v []float64), err error) {
	switch {
	case h.sum(t.Kind) == nil:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	case t.Kind == taskHistogram, t.Kind == taskTotals:
		task := new(columnsTask)
		each = func(x glm.Row, _ float64, v []float64) { h.columns.histogram(x, v) }
		if t.Kind == taskTotals {
			each = func(x glm.Row, _ float64, v []float64) {
				h.columns.totals(x, v)
				h.columns.shorten(v)
			}
		}
		err = method.OpenTask(t, task)
		return task.Units, each, err
	case t.Kind == taskProducts:
		task := new(productsTask)
		if err = method.OpenTask(t, task); err == nil {
			err = h.checkProducts(task.Scale)
		}
		return task.Units, func(x glm.Row, _ float64, v []float64) { products(x, task.Scale, v) }, err
	case t.Kind == options.TaskAssess:
		m := new(modelTask)
		if err = method.OpenTask(t, m); err != nil {
			return nil, nil, err
		}
		q, err := h.normal(m)
		return m.Units, predict.Contribution(h.Likelihood, q, h.columns.width()), err
	}
	task := new(gradientTask)
	if err = method.OpenTask(t, task); err == nil {
		err = h.check(&task.point)
	}
	return task.Units, func(x glm.Row, y float64, v []float64) { score(task.Mean, task.Clip, x, y, v) }, err
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	m := new(modelTask)
	if err := wire.Unmarshal(shared, m); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	q, err := h.normal(m)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	e, err := h.encoding(m.Units, false)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return fitted.OwnReport(ctx, h.Setup, h.Likelihood, h.name, e, q, nil, data)
}
