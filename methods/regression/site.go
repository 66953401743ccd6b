package regression

import (
	"context"
	"fmt"

	"parley/dataset"
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

// newIndependentSite is the site's half of a study.
func newIndependentSite(s *options.Setup, name string) (*site, error) {
	c, err := newCommon(s)
	return &site{c, name}, err
}

// Listed is what the site is asked for over the whole study, at most.
func (h *site) Listed() (list []privacy.Listed) {
	add := func(kind string, times int, r privacy.Request) {
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: r})
	}
	add(options.TaskUpdate, h.Options.Rounds, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{h.noised.update}})
	if q := h.noised.quality; q != nil {
		add(options.TaskAssess, 1, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*q}})
	}
	return list
}

// Run answers from noised sums alone, which are all of the answer. Nothing that depends on a
// row but through them may show: a row that cannot be read as the plan says contributes
// nothing, and no error tells of it.
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if err := h.answer(ctx, t, s); err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, nil, s.State())
}

func (h *site) answer(ctx context.Context, t method.Task, s *privacy.Session) error {
	b, err := h.Bind(&h.Encoding, h.Plan.Schema())
	if err != nil {
		return err
	}
	switch {
	case t.Kind == options.TaskAssess && h.noised.quality != nil:
		return predict.Release(ctx, h.Setup, t, s, b)
	case t.Kind != options.TaskUpdate:
		return fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(options.UpdateTask)
	if err := method.OpenTask(t, task); err != nil {
		return err
	}
	q, _, err := h.OpenUpdate(task, h.Options.Rounds, false) // a natural gradient is taken at q itself
	if err != nil {
		return err
	}
	return h.release(ctx, q, s, b)
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return fitted.Own(ctx, h.Setup, h.name, shared, data)
}

// release makes the one sum.
func (h *site) release(ctx context.Context, q glm.Gaussian, s *privacy.Session, b *glm.Binding) error {
	contribution := h.natural().Contribution(q)
	if h.noised.update.Unit != privacy.WholeSite {
		_, err := s.Sum(ctx, sumNatural, h.OverRows(b, contribution))
		return err
	}
	_, err := s.Whole(ctx, sumNatural, func(data dataset.Source, v []float64) error {
		read := h.Setup.Reader(b)
		for row, err := range data.Rows(ctx) {
			if err != nil {
				return err
			}
			if x, y, ok := read(row); ok {
				contribution(x, y, v)
			}
		}
		return nil
	})
	return err
}
