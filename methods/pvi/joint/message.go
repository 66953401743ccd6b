package joint

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
)

// open checks a task against the plan: that it is refused does not depend on the site's
// rows.
func (c common) open(t method.Task) (*Task, gvi.Normal, error) {
	task := new(Task)
	if err := method.OpenTask(t, task); err != nil {
		return nil, gvi.Normal{}, err
	}
	if t.Kind == taskSums && c.Options.Random() {
		return nil, gvi.Normal{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	q, err := c.check(task)
	return task, q, err
}

// check returns the density of a task.
func (c common) check(t *Task) (gvi.Normal, error) {
	if err := c.checkTau(t); err != nil {
		return gvi.Normal{}, err
	}
	return c.checkDensity(t)
}

func (c common) checkDensity(t *Task) (gvi.Normal, error) {
	if _, err := c.Scaled(t.Scale); err != nil {
		return gvi.Normal{}, err
	}
	if len(t.At.Mean) != c.Weights() {
		return gvi.Normal{}, fmt.Errorf("%d means of %d weights", len(t.At.Mean), c.Weights())
	}
	q, err := gvi.NewNormal(t.At.Mean, t.At.Covariance)
	if err != nil {
		return q, err
	}
	for j, m := range q.Mean {
		if !gvi.Inside(m, -message.FactorLargest, message.FactorLargest) || !gvi.Inside(q.Variance[j], 0, message.FactorLargest) {
			return q, fmt.Errorf("mean %v and variance %v of weight %d are beyond ±%v", m, q.Variance[j], j, message.FactorLargest)
		}
	}
	if c.estimated() != (t.At.Noise != 0) || t.At.Noise != 0 && !gvi.Inside(t.At.Noise, 1/message.FactorLargest, message.FactorLargest) {
		return q, fmt.Errorf("a noise variance of %v", t.At.Noise)
	}
	return q, nil
}

// largestSum bounds every number of an answer: far beyond what rows of honest studies give,
// and so that no product of a few overflows.
const largestSum = 1e75

// check refuses sums that no rows give. Whatever passes is of a kind that a step can be made
// of, and added to what others gave: the information is not negative in any direction,
// rounding aside.
func (s *Sums) check(weights, classes int) error {
	if len(s.Gradient) != weights || len(s.Information) != gvi.Triangle(weights) {
		return fmt.Errorf("%d and %d sums for %d weights", len(s.Gradient), len(s.Information), weights)
	}
	if s.Rows < 1 || s.Rows > message.MostRows || !gvi.Inside(s.Value, -largestSum, largestSum) || !gvi.Inside(s.Weight, 0, largestSum) {
		return fmt.Errorf("sums of %d rows with value %v and weight %v", s.Rows, s.Value, s.Weight)
	}
	if classes == 1 {
		classes = 0
	}
	rows := 0.0
	for _, n := range s.Classes {
		if rows += n; n < 0 || n != math.Trunc(n) {
			return fmt.Errorf("%v rows of a class", n)
		}
	}
	if len(s.Classes) != classes || classes > 0 && rows != float64(s.Rows) {
		return fmt.Errorf("%v rows of %d classes, of %d in all", s.Classes, classes, s.Rows)
	}
	for j, g := range s.Gradient {
		if v := s.Information[gvi.Packed(j, j)]; !gvi.Inside(g, -largestSum, largestSum) || !gvi.Inside(v, 0, largestSum) {
			return fmt.Errorf("gradient %v and information %v of weight %d", g, v, j)
		}
	}
	for i := range weights {
		for j := range i {
			x := s.Information[gvi.Packed(i, j)]
			if most := s.Information[gvi.Packed(i, i)] * s.Information[gvi.Packed(j, j)]; !(x*x <= most*1.000001) {
				return fmt.Errorf("information %v of weights %d and %d beyond that of each", x, j, i)
			}
		}
	}
	return nil
}
