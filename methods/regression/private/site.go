// Package private is logistic regression under differential privacy with nothing to tune,
// and a posterior whose intervals count the noise.
//
// Four kinds of noised sums are all that sites release: histograms of numbers twice, unless the plan
// has constants, which tell the units of all that follows (units.go), totals and squares of columns
// once, their products once, and so many clipped gradients. From them, and for nothing
// more, the coordinator corrects what clipping does to gradients (curvature.go), steps by
// a Hessian (gram.go, curvature.go), and says how unsure the weights are (fit.go).
package private

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// columnsTask asks for histograms of numbers, in the bins of Units, or for the totals of columns. As in all tasks,
// Units are nil where the plan has constants, and else follow from it and from noised histograms: see
// [common.encoding].
type columnsTask struct {
	Units  *options.Scale `cbor:"units,omitempty"`
	Second bool           `cbor:"second,omitempty"` // histogram: see [ranged.binOf]
}

// gradientTask asks for the gradient at weights, clipped so; of several pairs of classes, all with the same base, for
// that of each. All of it follows from the plan and from noised sums.
type gradientTask struct {
	columnsTask
	point
	Others []point `cbor:"others,omitempty"` // of all pairs but the first
	Base   int     `cbor:"base,omitempty"`
}

// points are those of all pairs.
func (t *gradientTask) points() []point { return append([]point{t.point}, t.Others...) }

// productsTask asks for the products of rows divided by a scale, which follows from the plan and from noised counts.
type productsTask struct {
	columnsTask
	Scale float64 `cbor:"scale"`
}

// modelTask asks how well a posterior predicts. It is what sites get back, too.
type modelTask struct {
	columnsTask
	options.Density
}

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	columns  *columns
	releases []privacy.Listed
	prior    *prior
}

func newCommon(s *options.Setup) (*common, error) {
	c := &common{Setup: s, columns: columnsOf(s), prior: new(prior)}
	e, variance := s.Encoding.Width(), s.Options.PriorVariance
	c.prior.mean, c.prior.precision = make([]float64, e), slices.Clone(s.Prior.Lambda[:e])
	if c.columns.classes > 1 { // of the difference of two weights
		floats.Scale(0.5, c.prior.precision)
		variance *= 2
	}
	if o := c.columns.offset; o != nil {
		const surely = 1e6
		c.prior.mean = slices.Insert(c.prior.mean, e-1, o.Scale)
		c.prior.precision = slices.Insert(c.prior.precision, e-1, surely/(o.Scale*o.Scale))
	}
	shared := map[int]bool{}
	for j, i := range c.columns.Feature {
		kind := ownPrior
		if i >= 0 && i < len(s.Encoding.Columns) {
			shared[i] = true
			kind = ofNumbers
			if c.columns.Category[j] {
				kind = ofLevels
			}
		}
		c.prior.kind = append(c.prior.kind, kind)
	}
	c.prior.widest = widestOf(len(shared), variance)
	var err error
	c.releases, err = c.columns.declare(s.Options.Scaling == glm.ScaleStandard && len(c.columns.told) > 0,
		s.Options.Rounds, s.Plan.Privacy)
	return c, err
}

// release is the sum that a task asks for; nil of one that the plan does not have.
func (c *common) release(kind string) *privacy.Sum {
	if i := slices.IndexFunc(c.releases, func(r privacy.Listed) bool { return r.Kind == kind }); i >= 0 {
		return &c.releases[i].Request.Sums[0]
	}
	return nil
}

// check reports a task for gradients that no honest coordinator sends.
func (c *common) check(t *gradientTask) error {
	points := t.points()
	if len(points) != c.columns.pairs() || t.Base < 0 || t.Base >= max(c.columns.classes, 1) {
		return fmt.Errorf("gradients at %d points against class %d", len(points), t.Base)
	}
	for i := range points {
		if err := c.checkPoint(&points[i], c.columns.width()); err != nil {
			return err
		}
		least, most := c.columns.dispersions()
		if d := points[i].Dispersion; c.columns.linear && !glm.Inside(d, least, most) || !c.columns.linear && d != 0 {
			return fmt.Errorf("a dispersion of %v", d)
		}
	}
	return nil
}

// checkPoint reports weights or a clip that no honest coordinator sends.
func (c *common) checkPoint(t *point, weights int) error {
	if len(t.Mean) != weights {
		return fmt.Errorf("%d weights, want %d", len(t.Mean), weights)
	}
	for j, m := range t.Mean {
		if !glm.Inside(m, -glm.FactorLargest, glm.FactorLargest) {
			return fmt.Errorf("weight %d is %v", j, m)
		}
	}
	least, most := c.columns.dispersions()
	if !glm.Inside(t.Clip, c.columns.clip(least, 0), c.columns.clip(most, clips-1)) {
		return fmt.Errorf("a clip of %v", t.Clip)
	}
	return nil
}

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
func (h *site) Listed() []privacy.Listed { return h.releases }

// Run answers from one noised sum alone. Nothing that depends on a row but through it may show: a row that cannot be
// read as the plan says contributes nothing, and no error tells of it.
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	units, contribution, err := h.contribution(t)
	if err != nil {
		return method.Answer{}, err
	}
	e, err := h.encoding(units, t.Kind == taskHistogram)
	if err != nil {
		return method.Answer{}, err
	}
	b, err := e.Bind(h.Plan.Schema(), &h.Outcome)
	if err != nil {
		return method.Answer{}, err
	}
	var of func(y float64) int
	if t.Kind == taskTotals || t.Kind == taskProducts {
		of = h.columns.class
	}
	if _, err = s.Sum(ctx, h.release(t.Kind).Name, h.OverRows(b, of, contribution)); err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, nil, s.State())
}

// contribution is what a row gives to the sum that a task asks for, and the units that it is in.
func (h *site) contribution(t method.Task) (units *options.Scale, each func(x glm.Row, y float64, v []float64),
	err error) {
	switch {
	case h.release(t.Kind) == nil:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	case t.Kind == taskHistogram, t.Kind == taskTotals:
		task := new(columnsTask)
		each = func(x glm.Row, y float64, v []float64) {
			h.columns.histogram(task, x, h.columns.outcome(task.Units, x, y), v)
		}
		if t.Kind == taskTotals {
			each = func(x glm.Row, y float64, v []float64) {
				h.columns.totals(h.columns.row(x), h.columns.outcome(task.Units, x, y), v)
				h.columns.shorten(v)
			}
		}
		err = method.OpenTask(t, task)
		return task.Units, each, err
	case t.Kind == taskProducts:
		task := new(productsTask)
		if err = method.OpenTask(t, task); err == nil && !glm.Inside(task.Scale, 1, largestScale) {
			err = fmt.Errorf("a scale of %v", task.Scale)
		}
		return task.Units, func(x glm.Row, _ float64, v []float64) {
			products(h.columns.row(x), task.Scale, v)
		}, err
	case t.Kind == options.TaskAssess:
		m := new(modelTask)
		if err = method.OpenTask(t, m); err != nil {
			return nil, nil, err
		}
		err = h.CheckDensity(&m.Density)
		return m.Units, predict.Contribution(h.Likelihood, m.Normal(), h.columns.width()), err
	}
	task := new(gradientTask)
	if err = method.OpenTask(t, task); err == nil {
		err = h.check(task)
	}
	points := task.points()
	return task.Units, func(x glm.Row, y float64, v []float64) {
		h.columns.scores(task.Base, points, h.columns.row(x), h.columns.outcome(task.Units, x, y), v)
	}, err
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	m := new(modelTask)
	if err := wire.Unmarshal(shared, m); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, err := h.encoding(m.Units, false)
	if err = cmp.Or(h.CheckDensity(&m.Density), err); err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return fitted.OwnReport(ctx, &h.Frame, h.Options, h.At(m.Noise), h.name, e, m.Normal(), nil, data)
}
