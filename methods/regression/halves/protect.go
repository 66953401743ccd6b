package halves

import (
	"context"
	"fmt"

	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// Protection is what one site releases under differential privacy: so many updates
// of one kind of noised sum, and perhaps one more for the report.
type Protection struct {
	Updates int
	Sum     privacy.Sum  // of one update
	Quality *privacy.Sum // how well outcomes are predicted; nil if nothing is spent on it
}

// request declares one use of a protected site's sum.
func (*Protection) request(sum privacy.Sum) privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}
	if sum.Kept {
		r.Contents = []privacy.Content{{What: "change of the posterior that the noised gradients lead to", Values: sum.Blocks[0]}}
	}
	return r
}

// protectedRun answers from noised sums alone. Nothing that depends on a row but
// through them may show: a row that cannot be read as the plan says contributes
// nothing, and no error tells of it.
func (h *Site) protectedRun(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	b, err := h.Bind(&h.Encoding, h.Plan.Schema())
	if err != nil {
		return nil, nil, err
	}
	p := h.Protected[h.name]
	switch {
	case t.Kind == options.TaskAssess && p.Quality != nil:
		return nil, s.State(), h.protectedQuality(ctx, t, s, b)
	case t.Kind != options.TaskUpdate:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(options.UpdateTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, nil, err
	}
	u, err := h.OpenUpdate(task, h.name)
	if err != nil {
		return nil, nil, err
	}
	u.Carried = s.State()
	return h.private.Release(ctx, u, s, b)
}

// protectedQuality sums up, with noise, how well outcomes are predicted.
func (h *Site) protectedQuality(ctx context.Context, t method.Task, s *privacy.Session, b *glm.Binding) error {
	task := new(options.AssessTask)
	if err := method.OpenTask(t, task); err != nil {
		return err
	}
	_, q, err := h.OpenModel(task.Scale, task.Q)
	if err != nil {
		return err
	}
	_, err = s.Sum(ctx, predict.SumName, h.OverRows(b, predict.Contribution(h.Likelihood, q.Normal(), h.Encoding.Width())))
	return err
}
