package exact

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// site is the half at one site. Between tasks it remembers only what one pass over
// the same rows gives again.
type site struct {
	common
	name string
	options.Reader
}

// NewSite is the site's half of a study.
func NewSite(s *options.Setup, name string) *site { return &site{common: common{s}, name: name} }

// Listed is what the site is asked for over the whole study, at most.
func (h *site) Listed() []privacy.Listed {
	ask := func(kind string, times, values int, what string) privacy.Listed {
		return privacy.Listed{Kind: kind, Times: times, Request: privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: what, Values: values}}}}
	}
	numbers, levels := h.Counted()
	p := h.Weights()
	list := []privacy.Listed{ask(options.TaskScale, 1, 3*len(numbers)+levels, "number of values, mean and sum of squared deviations of each number, and how often each level of each category was observed")}
	if h.Options.Random() {
		const what = "number of rows, their log-likelihood over the site's random intercept, and its first and second derivatives by all weights and by the logarithm of how much sites differ"
		list = append(list, ask(taskMarginal, h.Options.Rounds, h.values(1), what),
			ask(taskGrid, glm.MostGrid, h.values(glm.GridPoints), what+fmt.Sprintf(", for %d sizes of that", glm.GridPoints)))
	} else {
		values, what := 3+p+glm.Triangle(p), "number of rows, their log-likelihood at given weights, and sums of its first and second derivatives by all weights"
		if k := h.classes(); k > 1 {
			values, what = values+k, what+"; number of rows with each level of the outcome"
		}
		list = append(list, ask(taskSums, h.Options.Rounds, values, what))
	}
	values, says := predict.Values, predict.Says
	if h.classes() == 1 {
		values, says = values+predict.ResidualValues(p), says+"; "+predict.ResidualsDisclosure
	}
	if k := h.periods(); k > 0 {
		values, says = values+predict.PeriodValues(k, p), says+"; "+predict.PeriodsSay
	}
	if !h.Options.Random() {
		values, says = values+predict.ScatterValues(p), says+"; "+predict.ScatterSays
	}
	if names, _ := h.terms(); h.tested() {
		list = append(list, ask(taskNested, 1, 1+len(names)*(1+p), "log-likelihood of rows, and without each term of the model that and its derivatives by all weights"))
	}
	return append(list, ask(options.TaskAssess, 1, values, says))
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
	case taskMarginal, taskGrid:
		answer, err = h.derive(ctx, t, data)
	case taskNested:
		answer, err = h.nested(ctx, t, data)
	case taskSums, options.TaskAssess:
		answer, err = h.answer(ctx, t, data)
	default:
		err = fmt.Errorf("the plan has no task %q", t.Kind)
	}
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, s.State())
}

// answer answers what is asked under a posterior.
func (h *site) answer(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task, q, err := h.open(t)
	if err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	l := h.at(task.At.Noise)
	if t.Kind == taskSums {
		return gather(l, q.Mean, task.First, d), nil
	}
	b, err := h.own(task, d)
	if err != nil {
		return nil, err
	}
	a := fitted.Assess(l, q, b, d, h.Options.Survey())
	if h.classes() == 1 {
		a.Residuals = predict.ResidualsOf(l, q, b, d, h.Options.Survey())
	}
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
	task := new(Task)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	q, err := h.check(task)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	e, err := h.Scaled(task.Scale)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	if task.Tau == nil {
		return fitted.OwnReport(ctx, h.Setup, h.at(task.At.Noise), h.name, e, q, nil, data)
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	b, err := h.own(task, d)
	if err != nil {
		return nil, err
	}
	r, err := fitted.OwnReport(ctx, h.Setup, h.Likelihood, h.name, e, q, b, data)
	if err != nil {
		return nil, err
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

// open checks a task against the plan: that it is refused does not depend on the site's
// rows.
func (c common) open(t method.Task) (*Task, glm.Normal, error) {
	task := new(Task)
	if err := method.OpenTask(t, task); err != nil {
		return nil, glm.Normal{}, err
	}
	if t.Kind == taskSums && c.Options.Random() {
		return nil, glm.Normal{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	if t.Kind == taskSums && len(task.At.Covariance) == 0 {
		task.At.Covariance = make([]float64, glm.Triangle(len(task.At.Mean)))
	}
	q, err := c.check(task)
	return task, q, err
}

// check returns the density of a task.
func (c common) check(t *Task) (glm.Normal, error) {
	if err := c.checkTau(t); err != nil {
		return glm.Normal{}, err
	}
	return c.checkDensity(t)
}

func (c common) checkDensity(t *Task) (glm.Normal, error) {
	if _, err := c.Scaled(t.Scale); err != nil {
		return glm.Normal{}, err
	}
	if len(t.At.Mean) != c.Weights() {
		return glm.Normal{}, fmt.Errorf("%d means of %d weights", len(t.At.Mean), c.Weights())
	}
	q, err := glm.NewNormal(t.At.Mean, t.At.Covariance)
	if err != nil {
		return q, err
	}
	for j, m := range q.Mean {
		if !glm.Inside(m, -options.FactorLargest, options.FactorLargest) || !glm.Inside(q.Variance[j], 0, options.FactorLargest) {
			return q, fmt.Errorf("mean %v and variance %v of weight %d are beyond ±%v", m, q.Variance[j], j, options.FactorLargest)
		}
	}
	if c.estimated() != (t.At.Noise != 0) || t.At.Noise != 0 && !glm.Inside(t.At.Noise, 1/options.FactorLargest, options.FactorLargest) {
		return q, fmt.Errorf("a noise variance of %v", t.At.Noise)
	}
	return q, nil
}

// checkSums refuses sums that no rows give. Whatever passes is of a kind that a step can be made
// of, and added to what others gave: the information is not negative in any direction,
// rounding aside.
func (c common) checkSums(s *Sums) error {
	if err := method.CheckSums(c.sums(), s, largestSum); err != nil {
		return err
	}
	if s.Rows < 1 || s.Rows > options.MostRows {
		return fmt.Errorf("sums of %d rows", s.Rows)
	}
	rows := 0.0
	for _, n := range s.Classes {
		if rows += n; n != math.Trunc(n) {
			return fmt.Errorf("%v rows of a class", n)
		}
	}
	if len(s.Classes) > 0 && rows != float64(s.Rows) {
		return fmt.Errorf("%v rows by class, of %d in all", s.Classes, s.Rows)
	}
	for i := range s.Gradient {
		for j := range i + 1 {
			x := s.Information[glm.Packed(i, j)]
			if most := s.Information[glm.Packed(i, i)] * s.Information[glm.Packed(j, j)]; !(x*x <= most*1.000001) || i == j && x < 0 {
				return fmt.Errorf("information %v of weights %d and %d beyond that of each", x, j, i)
			}
		}
	}
	return nil
}

// taskNested asks for the log-likelihood without each term of the model, for tests of ratios of likelihoods.
const taskNested = "nested"

// nestedTask has the weights of the fit, and then of each model without a term.
type nestedTask struct {
	Scale  *options.Scale `cbor:"scale"`
	Noise  float64        `cbor:"noise"`
	Points []wire.Vector  `cbor:"points"`
}

// nestedAnswer has the log-likelihood at each point, and after the first its derivatives by all weights.
type nestedAnswer struct {
	Value    wire.Vector   `cbor:"value" sums:"signed"`
	Gradient []wire.Vector `cbor:"gradient" sums:"signed"`
}

// checkNested refuses likelihoods that do not belong to the plan's terms.
func (c common) checkNested(a *nestedAnswer) error {
	return method.CheckSums(c.likelihoods(), a, largestSum)
}

// Form is an answer to a task of this kind with everything that it may have, all 0: see [method.Flatten].
func Form(s *options.Setup, kind string) (any, error) {
	c := common{s}
	switch kind {
	case options.TaskScale:
		names, levels := c.Counted()
		n := len(names)
		return &options.ScaleAnswer{N: make(wire.Vector, n), Mean: make(wire.Vector, n), Squares: make(wire.Vector, n), Levels: make(wire.Vector, levels)}, nil
	case taskSums:
		return c.sums(), nil
	case taskNested:
		return c.likelihoods(), nil
	case options.TaskAssess:
		return c.assessment(), nil
	}
	return nil, fmt.Errorf("no sums answer task %q", kind)
}

// sums are those of an exchange.
func (c common) sums() *Sums {
	s := newSums(c.Weights())
	if k := c.classes(); k > 1 {
		s.Classes = make([]float64, k)
	}
	return s
}

// likelihoods are those without each term.
func (c common) likelihoods() *nestedAnswer {
	names, _ := c.terms()
	a := &nestedAnswer{Value: make(wire.Vector, 1+len(names))}
	for range names {
		a.Gradient = append(a.Gradient, make(wire.Vector, c.Weights()))
	}
	return a
}

// assessment is how well the model predicts, with all that is asked of it.
func (c common) assessment() *predict.Assessment {
	return predict.Form(c.Weights(), c.classes(), c.periods(), !c.Options.Random())
}
