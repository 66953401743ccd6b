package options

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// The tasks, in the words that progress and logs show.
const (
	TaskScale  = "scale"  // sums for common units of numbers
	TaskUpdate = "update" // a refinement of the site's factor
	TaskAssess = "assess" // how well the model predicts the site's outcomes
)

// Scale brings numbers to common units: one entry for each number of the
// plan, in its order.
type Scale struct {
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
	// Joint posteriors: the reference of each category, as a place among its levels, and
	// the variance of the outcome, of which the prior is in units, 1 if it is not; and the
	// outcome's mean, about which the intercept's prior is.
	References []int   `cbor:"references,omitempty"`
	Outcome    float64 `cbor:"outcome,omitempty"`
	Mean       float64 `cbor:"mean,omitempty"`
	Weight     float64 `cbor:"weight,omitempty"` // the mean of a sample's weights, which are divided by it
}

// Check reports a scale that no honest coordinator sends.
func (m *Scale) Check() error {
	if m.Outcome != 0 && !glm.Inside(m.Outcome, 1/taskLargest, taskLargest) || !glm.Inside(m.Mean, -FactorLargest, FactorLargest) {
		return fmt.Errorf("the variance %v or the mean %v of the outcome is beyond all measure", m.Outcome, m.Mean)
	}
	if m.Weight != 0 && !glm.Inside(m.Weight, 1/FactorLargest, FactorLargest) {
		return fmt.Errorf("a mean weight of %v is beyond all measure", m.Weight)
	}
	for i, x := range m.Scale {
		if !glm.Inside(x, 1/taskLargest, taskLargest) || !glm.Inside(m.Centre[i], -taskLargest, taskLargest) {
			return fmt.Errorf("number %d: centre %v and scale %v are beyond all measure", i+1, m.Centre[i], x)
		}
	}
	return nil
}

// ScaleTask asks for the sums that a common scale needs.
type ScaleTask struct{}

// ScaleAnswer holds, for every number of the plan, how often it was observed, its
// mean, and the sum of squared deviations from it; of a joint posterior of a number also
// the same of the outcome, last, and how often each level of each category was observed.
type ScaleAnswer struct {
	N       wire.Vector `cbor:"n"`
	Mean    wire.Vector `cbor:"mean"`
	Squares wire.Vector `cbor:"squares"`
	Levels  wire.Vector `cbor:"levels,omitempty"`
}

// Check refuses what no rows can give; numbers are the names of those that have moments.
func (a *ScaleAnswer) Check(numbers []string, levels int) error {
	if len(a.Levels) != levels {
		return fmt.Errorf("counts of %d levels where the plan has %d", len(a.Levels), levels)
	}
	for i, n := range a.Levels {
		if n != math.Trunc(n) || !glm.Inside(n, 0, MostRows) {
			return fmt.Errorf("level %d: a count of %v", i+1, n)
		}
	}
	if n := len(numbers); len(a.N) != n || len(a.Mean) != n || len(a.Squares) != n {
		return fmt.Errorf("sums of %d, %d and %d numbers where the plan has %d", len(a.N), len(a.Mean), len(a.Squares), n)
	}
	for i, n := range a.N {
		if n != math.Trunc(n) || !glm.Inside(n, 0, MostRows) || !glm.Inside(a.Squares[i], 0, n*Largest*Largest) || !glm.Inside(a.Mean[i], -Largest, Largest) {
			return fmt.Errorf("%s: a count of %v, a mean of %v and squares of %v", numbers[i], n, a.Mean[i], a.Squares[i])
		}
	}
	return nil
}

// Sum turns means and squared deviations into Σ x and Σ x², which add up over sites.
func (a *ScaleAnswer) Sum() {
	for i, n := range a.N {
		mean := a.Mean[i]
		a.Mean[i], a.Squares[i] = n*mean, a.Squares[i]+n*mean*mean
	}
}

// Centre is the inverse of [ScaleAnswer.Sum].
func (a *ScaleAnswer) Centre() {
	for i, n := range a.N {
		if n > 0 {
			a.Mean[i] /= n
			a.Squares[i] = max(0, a.Squares[i]-n*a.Mean[i]*a.Mean[i])
		}
	}
}
