package dppvi

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// siteHalf is the half at one site. Between tasks it remembers only what one pass over the same rows gives again.
type siteHalf struct {
	*common
	name string
	glm.Reader
}

// updates is how often the site is asked for an update, at most.
func (h *siteHalf) updates() int {
	switch p := h.protected[h.name]; {
	case p != nil:
		return p.updates
	case h.own.byTotal():
		return h.own.Rounds * len(h.Plan.Sites)
	}
	return h.own.Rounds
}

// listed is what the site is asked for over the whole study, at most.
func (h *siteHalf) listed() (list []privacy.Listed) {
	add := func(kind string, times int, sum *privacy.Sum, what string, values int) {
		r := privacy.Request{Protection: privacy.Unprotected}
		if sum != nil {
			r = privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*sum}}
		}
		if what != "" {
			r.Contents = []privacy.Content{{What: what, Values: values}}
		}
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: r})
	}
	if p := h.protected[h.name]; p != nil {
		add(TaskUpdate, p.updates, &p.sum, "change of the posterior that the noised gradients lead to", p.sum.Blocks[0])
		if p.quality != nil {
			add(taskAssess, 1, p.quality, "", 0)
		}
		return list
	}
	if h.own.Scaling == glm.ScaleStandard {
		add(taskScale, 1, nil, "number of values, mean and sum of squared deviations of each number",
			3*len(h.Numbers()))
	}
	says := "change of the posterior's precision and precision × mean of each weight that the site's rows ask for"
	if h.global() {
		says = "a step along the gradient of a minibatch, for mean and variance of each weight"
	}
	add(TaskUpdate, h.updates(), nil, says, 2*h.Weights())
	add(taskAssess, 1, nil, predict.Says, predict.Values)
	return list
}

// updating is one update that the site is asked for.
type updating struct {
	*updateTask
	encoding *glm.Encoding
	carried  []byte // by the site since its update before; nil at first
}

// open checks the task of an update against the plan. Every number has a bound, so that none can lead
// a computation out of what it was made for; that a task is refused does not depend on the site's rows.
// q divided by the site's own factor is a density.
func (h *siteHalf) open(t method.Task, carried []byte) (*updating, error) {
	task := new(updateTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	if most := h.updates(); task.Update < 1 || task.Update > most {
		return nil, fmt.Errorf("update %d: the plan has 1 to %d", task.Update, most)
	}
	e, err := h.openModel(task.Scale, task.Q)
	if err != nil {
		return nil, err
	}
	if err = task.Factor.Check(h.Weights()); err == nil {
		err = bounded(task.Factor)
	}
	if err != nil {
		return nil, fmt.Errorf("factor: %w", err)
	}
	return &updating{task, e, carried},
		h.boundedDensity("cavity", over(task.Q, task.Factor))
}

// Run implements [method.Site].
func (h *siteHalf) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	run := h.exact
	if h.protected != nil {
		run = h.noised
	}
	answer, state, err := run(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, state)
}

// exact answers without protection. The state is what the site carries on.
func (h *siteHalf) exact(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	data, err := s.Data()
	if err != nil {
		return nil, nil, err
	}
	state = s.State()
	switch t.Kind {
	case taskScale:
		answer, err = h.moments(ctx, data)
	case TaskUpdate:
		answer, state, err = h.update(ctx, t, data, state)
	case taskAssess:
		answer, err = h.assess(ctx, t, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	return answer, state, err
}

// update answers one update: with steps towards the optimum of the local free energy (equation 3), with
// that optimum, or with a step of the baseline. Steps are of rows drawn without replacement and of an
// Adagrad of the site's own, which it carries.
func (h *siteHalf) update(ctx context.Context, t method.Task, data dataset.Source,
	carried []byte) (answer any, carry []byte, err error) {
	u, err := h.open(t, carried)
	if err != nil {
		return nil, nil, err
	}
	d, err := h.Read(ctx, &h.Frame, u.encoding, data)
	if err != nil {
		return nil, nil, err
	}
	activations := h.draws("activations", h.name, u.Update)
	minibatch := func(s *updateSettings) (int, rowSum) {
		n := s.of(d.Rows())
		return n, minibatches(d, n, 2*h.Weights(), h.draws("batch", h.name, u.Update))
	}
	switch h.own.Algorithm {
	case algorithmExact:
		answer, err = h.optimum(u.Q, u.Factor, d)
		return answer, nil, err
	case algorithmPVI:
		_, sum := minibatch(h.own.Update)
		return h.refine(u, h.updateOf(d.Rows()), activations, sum)
	}
	n, sum := minibatch(h.own.Global)
	change, carry, err := baselineStep(h.common, n, u.Q, carried, activations, sum)
	return stepAnswer{change}, carry, err
}

// noised answers from noised sums alone. Nothing that depends on a row but through them may show: a row that cannot be
// read as the plan says contributes nothing, and no error tells of it.
func (h *siteHalf) noised(ctx context.Context, t method.Task,
	s *privacy.Session) (answer any, state []byte, err error) {
	b, err := h.Encoding.Bind(h.Plan.Schema(), &h.Outcome)
	if err != nil {
		return nil, nil, err
	}
	switch p := h.protected[h.name]; {
	case t.Kind == taskAssess && p.quality != nil:
		_, q, err := h.model(t.Body)
		if err == nil {
			_, err = s.Sum(ctx, p.quality.Name,
				h.OverRows(b, nil, predict.Contribution(h.Likelihood, q, h.Encoding.Width())))
		}
		return nil, s.State(), err
	case t.Kind != TaskUpdate:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	u, err := h.open(t, s.State())
	if err != nil {
		return nil, nil, err
	}
	sum := func(contribution func(glm.Row, float64, []float64)) ([]float64, error) {
		noised, err := s.Sum(ctx, sumPublished, h.OverRows(b, nil, contribution))
		if err != nil {
			return nil, err
		}
		return noised.Floats(0), nil
	}
	return h.refine(u, h.updateOf(h.own.rowsOf(h.name)), h.draws("activations", h.name, u.Update), sum)
}

// model opens the task of an assessment, or what a site gets back.
func (h *siteHalf) model(body []byte) (*glm.Encoding, glm.Normal, error) {
	task := new(assessTask)
	if err := wire.Unmarshal(body, task); err != nil {
		return nil, glm.Normal{}, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, err := h.openModel(task.Scale, task.Q)
	if err != nil {
		return nil, glm.Normal{}, fmt.Errorf("the shared model: %w", err)
	}
	return e, task.Q.Normal(), nil
}

// assess answers without protection how well the model predicts the site's rows.
func (h *siteHalf) assess(ctx context.Context, t method.Task, data dataset.Source) (*predict.Assessment, error) {
	e, q, err := h.model(t.Body)
	if err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, &h.Frame, e, data)
	if err != nil {
		return nil, err
	}
	return predict.Assess(h.Likelihood, q, nil, d, false, false), nil
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *siteHalf) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	e, q, err := h.model(shared)
	if err != nil {
		return nil, err
	}
	o, err := fitted.OptionsOf(h.own)
	if err != nil {
		return nil, err
	}
	return fitted.OwnReport(ctx, &h.Frame, o, h.Likelihood, h.name, e, q, nil, data)
}

// refine answers with the change that steps lead to, and what the site carries to its next update.
func (h *siteHalf) refine(u *updating, by *gradients, activations *rand.Rand, sum rowSum) (any, []byte, error) {
	target, carry, err := by.Refine(u.Q, u.Factor, u.carried, activations, sum)
	if err != nil {
		return nil, nil, err
	}
	change := over(target, u.Q)
	if refined, _, _ := refine(u.Factor, flat(h.Weights()), change, h.own.Damping); workable(refined,
		h.prior) != nil {
		change = flat(h.Weights()) // nobody could go on from there, and the coordinator would refuse it
	}
	return updateAnswer{Change: change}, carry, nil
}

// baselineStep takes a site's step of the paper's baseline, global variational inference by stochastic gradients: from
// q, without privacy, by one step of its own Adagrad for the evidence lower bound of all rows, estimated from a
// minibatch of its own rows alone. Where sites differ and some come more often, it settles on the wrong posterior: its
// published failure. It returns the change of means and of logarithms of variances, and what the site carries to its
// next step, the accumulators; carried is what the step before returned, nil at first.
func baselineStep(c *common, minibatch int, q glm.Gaussian, carried []byte, r *rand.Rand, sum rowSum) (
	change []float64, carry []byte, err error) {
	all := 0
	for _, s := range c.own.Rows {
		all += s.Rows
	}
	with := *c.own.Global
	with.Steps, with.Batch = 1, minibatch
	u := gradients{expectationsOf(c.Likelihood), c.Encoding.Width(), max(all, minibatch), with}
	from := pointOf(q)
	if change, carry, err = u.run(q, c.prior, carried, r, sum); err != nil {
		return nil, nil, err
	}
	floats.Sub(change, from)
	return change, carry, nil
}
