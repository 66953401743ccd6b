package regression

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
)

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	noised *sums // what sites release
}

func newCommon(s *options.Setup) (c *common, err error) {
	c = &common{Setup: s}
	c.noised, err = c.protect()
	return c, err
}

// sums are what every site releases: in each round one noised natural
// gradient over all of its rows ([glm.Natural]), and perhaps once how well outcomes are predicted.
type sums struct {
	update  privacy.Sum
	quality *privacy.Sum
}

const sumNatural = "gradients of the log-likelihood"

func (c *common) natural() glm.Natural {
	return glm.Natural{Likelihood: c.Likelihood, Columns: c.Encoding.Width()}
}

// protect makes every site's sums cost the plan's total together.
func (c *common) protect() (*sums, error) {
	pr := c.Plan.Privacy
	update := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: c.Options.Rounds}
	all := []account.Mechanism{update}
	if d := pr.Diagnostics; d > 0 {
		// Squares of signal over noise add up, so that these are the shares of the total.
		all = append(all, account.Mechanism{Kind: account.Gaussian, Noise: math.Sqrt((1 - d) / d / float64(c.Options.Rounds)), Rate: 1, Diameter: 2, Count: 1})
	}
	factor, err := account.Scale(all, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	update.Noise, update.Count = account.RoundUp(factor), 1
	out := &sums{update: privacy.Sum{Name: sumNatural, Unit: privacy.Unit(pr.Unit), Form: privacy.Vectors, Blocks: []int{c.natural().Len()}, Bound: *c.Options.Clip, Mechanism: update}}
	if len(all) > 1 {
		noise := all[1]
		noise.Noise = account.RoundUp(noise.Noise * factor)
		out.quality = predict.Sum(noise)
	}
	return out, nil
}

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
	add := func(kind string, times int, sum privacy.Sum) {
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}})
	}
	add(options.TaskUpdate, h.Options.Rounds, h.noised.update)
	if q := h.noised.quality; q != nil {
		add(options.TaskAssess, 1, *q)
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
