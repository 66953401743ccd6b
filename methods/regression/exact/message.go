package exact

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

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

// largestSum bounds every number of an answer: far beyond what rows of honest studies give,
// and so that no product of a few overflows.
const largestSum = 1e75

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
