package private

import (
	"fmt"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy"
)

// The tasks. An early gradient has less of the budget.
const (
	taskHistogram = "histogram"
	taskTotals    = "totals"
	taskProducts  = "products"
	taskEarly     = "early gradient"
	taskLate      = "gradient"
)

// columnsTask asks for histograms of numbers, in the bins of Units, or for the totals of columns. As in all tasks,
// Units are nil where the plan has constants, and else follow from it and from noised histograms: see [common.encoding].
type columnsTask struct {
	Units *options.Scale `cbor:"units,omitempty"`
}

// gradientTask asks for a gradient at weights, clipped so. All of it follows from the plan and
// from noised sums.
type gradientTask struct {
	columnsTask
	point
}

// point is where a gradient is taken.
type point struct {
	Mean wire.Vector `cbor:"mean"`
	Clip float64     `cbor:"clip"`
}

// productsTask asks for the products of rows divided by a scale, which follows from the plan and
// from noised counts.
type productsTask struct {
	columnsTask
	Scale float64 `cbor:"scale"`
}

// modelTask asks how well a posterior predicts. It is what sites get back, too.
type modelTask struct {
	columnsTask
	Mean       wire.Vector `cbor:"mean"`
	Covariance wire.Vector `cbor:"covariance"` // its lower triangle by rows
}

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	columns *columns
	sums    *sums
	prior   *prior
}

func newCommon(s *options.Setup) (*common, error) {
	c := &common{Setup: s, columns: columnsOf(&s.Encoding), prior: new(prior)}
	c.prior.mean, _ = s.Prior.Moments()
	c.prior.precision = s.Prior.Lambda
	names, groups := s.Encoding.Features(), s.Encoding.Groups()
	shared := map[int]bool{}
	for j, i := range c.columns.Feature {
		kind := ownPrior
		if i >= 0 && !s.Options.OwnPrior(names[j], groups[j]) {
			shared[i] = true
			kind = ofNumbers
			if c.columns.Category[j] {
				kind = ofLevels
			}
		}
		c.prior.kind = append(c.prior.kind, kind)
	}
	c.prior.widest = widestOf(len(shared), s.Options.PriorVariance)
	var err error
	c.sums, err = c.columns.declare(s.Options.Scaling == options.ScaleStandard && len(c.columns.numbers) > 0, s.Options.Rounds, s.Plan.Privacy)
	return c, err
}

// sum is what a task releases; nil of one that the plan does not have.
func (c *common) sum(kind string) *privacy.Sum {
	switch kind {
	case taskHistogram:
		return c.sums.histogram
	case taskTotals:
		return &c.sums.totals
	case taskProducts:
		return &c.sums.products
	case taskEarly:
		return &c.sums.early
	case taskLate:
		return &c.sums.late
	case options.TaskAssess:
		return c.sums.quality
	}
	return nil
}

// check reports a task for a gradient that no honest coordinator sends.
func (c *common) check(t *point) error {
	if len(t.Mean) != c.columns.width() {
		return fmt.Errorf("%d weights, want %d", len(t.Mean), c.columns.width())
	}
	for j, m := range t.Mean {
		if !glm.Inside(m, -options.FactorLargest, options.FactorLargest) {
			return fmt.Errorf("weight %d is %v", j, m)
		}
	}
	if !glm.Inside(t.Clip, c.columns.shortest(), c.columns.longest()) {
		return fmt.Errorf("a clip of %v", t.Clip)
	}
	return nil
}

// checkProducts reports a task for products that no honest coordinator sends.
func (c *common) checkProducts(scale float64) error {
	if !glm.Inside(scale, 1, largestScale) {
		return fmt.Errorf("a scale of %v", scale)
	}
	return nil
}

// normal returns the density of a model that was sent.
func (c *common) normal(m *modelTask) (glm.Normal, error) {
	if err := c.check(&point{m.Mean, c.columns.reach()}); err != nil {
		return glm.Normal{}, err
	}
	return glm.NewNormal(m.Mean, m.Covariance)
}
