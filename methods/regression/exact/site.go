package exact

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

// site is the half at one site. Between tasks it remembers only what one pass over the same rows gives again.
type site struct {
	common
	name string
	glm.Reader
}

// NewSite is the site's half of a study.
func NewSite(s *options.Setup, name string) *site { return &site{common: common{s}, name: name} }

// Listed is what the site is asked for over the whole study, at most.
func (h *site) Listed() []privacy.Listed {
	ask := func(kind string, times int, what string) privacy.Listed {
		form := Form(h.Setup, kind)
		numbers, _ := method.Flatten(form, form)
		return privacy.Listed{Kind: kind, Times: times, Request: privacy.Request{Protection: privacy.Unprotected,
			Contents: []privacy.Content{{What: what, Values: len(numbers)}}}}
	}
	what := "number of values, mean and sum of squared deviations of each number, and how often each level of each " +
		"category was observed"
	if h.Plan.Privacy.Secure() {
		what += "; for the mean, what it adds to sums and squares, each in three parts"
	}
	if len(h.NewScaleAnswer().ByClass) > 0 {
		what += "; for each level of the outcome number of rows, of values of each number and their sum, and of levels"
	}
	list := []privacy.Listed{ask(options.TaskScale, 1, what)}
	if h.Options.Random() {
		const what = "number of rows, their log-likelihood over the site's random intercept, and its first and " +
			"second derivatives by all weights and by the logarithm of how much sites differ"
		list = append(list, ask(taskMarginal, h.Options.Rounds, what),
			ask(taskGrid, glm.MostGrid, what+fmt.Sprintf(", for %d sizes of that", glm.GridPoints)))
	} else {
		list = append(list, ask(taskSums, h.Options.Rounds, "number of rows, their log-likelihood at given weights, "+
			"and sums of its first and second derivatives by all weights"))
	}
	says := predict.Says
	if h.classes() == 1 {
		says += ". Also " + predict.ResidualsDisclosure
	}
	if h.periods() > 0 {
		says += ". Also " + predict.PeriodsSay
	}
	if !h.Options.Random() {
		says += ". Also " + predict.ScatterSays
	}
	if h.tested() {
		list = append(list, ask(taskNested, mostNested, "log-likelihood of rows and its derivatives by all weights, "+
			"with and without each term of the model"))
	}
	return append(list, ask(options.TaskAssess, 1, says))
}

// Run implements [method.Site].
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	var answer any
	switch t.Kind {
	case options.TaskScale:
		if err = h.CheckRows(ctx, data); err == nil {
			answer, err = h.Moments(ctx, data)
		}
	case taskSums, taskMarginal, taskGrid, taskNested:
		answer, err = h.sums(ctx, t, data)
	case options.TaskAssess:
		answer, err = h.assess(ctx, t, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, s.State())
}

// sums answers with sums at points.
func (h *site) sums(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task := new(pointsTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	e, err := h.checkPoints(task, t.Kind)
	if err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, &h.Frame, e, data)
	if err != nil {
		return nil, err
	}
	var marginal *glm.Marginal
	if h.Options.Random() {
		if marginal, err = glm.New(h.Likelihood, d); err != nil {
			return nil, err
		}
	}
	a := h.form(t.Kind)
	for i, x := range task.Points {
		s := &a.At[i]
		if marginal == nil {
			s.gather(h.At(task.Noise), x.Weights, task.First, d)
			continue
		}
		at, err := marginal.At(x)
		if err != nil {
			return nil, err
		}
		s.Rows, s.Derivatives = d.Rows(), *at
	}
	return a, nil
}

// assess answers how well a posterior predicts.
func (h *site) assess(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task := new(modelTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	e, q, err := h.check(task)
	if err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, &h.Frame, e, data)
	if err != nil {
		return nil, err
	}
	l := h.At(task.At.Noise)
	b, err := h.own(task, d)
	if err != nil {
		return nil, err
	}
	a := predict.Assess(l, q, b, d, h.Options.Survey(), h.classes() == 1)
	if !h.Options.Random() {
		a.Scatter = predict.ScatterOf(l, q, d, h.Options.Survey())
	}
	if k := h.periods(); k > 0 {
		a.Periods = predict.PeriodsOf(l, q, b, d, k)
	}
	return a, nil
}

// Report shows a site its own rows under the shared model, and with random intercepts has the
// model of its own subjects. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(modelTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := h.check(task)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	var b *glm.Intercept
	if task.Tau != nil {
		d, err := h.Read(ctx, &h.Frame, e, data)
		if err != nil {
			return nil, err
		}
		if b, err = h.own(task, d); err != nil {
			return nil, err
		}
	}
	r, err := fitted.OwnReport(ctx, &h.Frame, h.Options, h.At(task.At.Noise), h.name, e, q, b, data)
	if err != nil || b == nil {
		return r, err
	}
	m, err := h.model(task.Scale, &fit{At: task.At, Settled: true})
	if err != nil {
		return nil, err
	}
	m.BetweenSites, m.Verdicts = task.Tau, fitted.Undetermined(m)
	file, err := m.At(h.name, *b).Encode()
	r.Files = []method.File{{Name: "model/model.json", Data: file}}
	return r, err
}

// own is what the site knows of its own intercept under the shared model; nil without random
// intercepts. It stays at the site.
func (h *site) own(t *modelTask, d *glm.Design) (*glm.Intercept, error) {
	if t.Tau == nil {
		return nil, nil
	}
	m, err := glm.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	b := m.InterceptOver(t.At.Mean, *t.Tau)
	return &b, nil
}

// check returns the encoding and the density of a task.
func (c common) check(t *modelTask) (e *glm.Encoding, q glm.Normal, err error) {
	if c.Options.Random() != (t.Tau != nil) {
		return nil, q, fmt.Errorf("a spread of sites that does not fit the plan")
	}
	if t.Tau != nil {
		if err := t.Tau.Check(); err != nil {
			return nil, q, err
		}
	}
	if e, err = c.Scaled(t.Scale); err != nil {
		return nil, q, err
	}
	return e, t.At.Normal(), c.CheckDensity(&t.At)
}

// Form is an answer to a task of this kind with everything that it may have, all 0: see [method.Flatten].
func Form(s *options.Setup, kind string) any {
	c := common{s}
	switch kind {
	case options.TaskScale:
		a := c.NewScaleAnswer()
		a.Parts = make([]float64, 5*len(a.N))
		return a
	case options.TaskAssess:
		return c.assessment()
	}
	return c.form(kind)
}

// assessment is how well the model predicts, with all that is asked of it.
func (c common) assessment() *predict.Assessment {
	return predict.Form(c.Weights(), c.classes(), c.periods(), !c.Options.Random())
}
