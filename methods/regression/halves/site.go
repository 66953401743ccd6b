package halves

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
	"parley/privacy"
)

// Site is the half at one site. Between tasks it remembers only what one pass over
// the same rows gives again.
type Site struct {
	*Common
	name string
	options.Reader
}

// NewSite is the site's half of a study of this variant.
func NewSite(c *Common, name string) *Site { return &Site{Common: c, name: name} }

// Listed is what the site is asked for over the whole study, at most.
func (h *Site) Listed() (list []privacy.Listed) {
	for _, kind := range []string{options.TaskScale, options.TaskUpdate, options.TaskAssess} {
		if times := h.times(kind, h.name); times > 0 {
			list = append(list, privacy.Listed{Kind: kind, Times: times, Request: h.request(kind)})
		}
	}
	return list
}

// request is what a task of a kind releases.
func (h *Site) request(kind string) privacy.Request {
	r := privacy.Request{Protection: privacy.Unprotected}
	say := func(values int, what string) {
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: values})
	}
	switch p := h.Protected[h.name]; {
	case p != nil && kind == options.TaskUpdate:
		return p.request(p.Sum)
	case p != nil:
		return p.request(*p.Quality)
	case kind == options.TaskScale:
		say(3*len(h.Numbers()), "number of values, mean and sum of squared deviations of each number")
	case kind == options.TaskUpdate:
		r.Contents = []privacy.Content{h.exact.Releases()}
	case kind == options.TaskAssess:
		say(predict.Values, predict.Says)
	}
	return r
}

// Run implements [method.Site].
func (h *Site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	run := h.exactRun
	if h.Protected[h.name] != nil {
		run = h.protectedRun
	}
	answer, state, err := run(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, state)
}

// exactRun answers without protection. The state is what the site carries on.
func (h *Site) exactRun(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	data, err := s.Data()
	if err != nil {
		return nil, nil, err
	}
	state = s.State()
	switch t.Kind {
	case options.TaskScale:
		answer, err = h.Moments(ctx, data)
	case options.TaskUpdate:
		answer, state, err = h.update(ctx, t, data, state)
	case options.TaskAssess:
		answer, err = h.assess(ctx, t, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return answer, state, err
}

// update answers one update.
func (h *Site) update(ctx context.Context, t method.Task, data dataset.Source, carried []byte) (answer any, carry []byte, err error) {
	task := new(options.UpdateTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, nil, err
	}
	u, err := h.OpenUpdate(task, h.name)
	if err != nil {
		return nil, nil, err
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, nil, err
	}
	u.Carried = carried
	return h.exact.Refine(u, d)
}

// assess predicts the site's own rows.
func (h *Site) assess(ctx context.Context, t method.Task, data dataset.Source) (*predict.Assessment, error) {
	task := new(options.AssessTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	_, q, err := h.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	return report.Assess(h.Likelihood, q.Normal(), nil, d), nil
}
