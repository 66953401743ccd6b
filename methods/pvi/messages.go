package pvi

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
)

// The tasks, in the words that progress and logs show.
const (
	taskScale  = "scale"  // sums for common units of numbers
	taskUpdate = "update" // a refinement of the site's factor, or a step of variant global
	taskAssess = "assess" // how well the model predicts the site's outcomes
)

// gaussianMessage is a Gaussian as it travels and is kept.
type gaussianMessage struct {
	Eta    wire.Vector `cbor:"eta"`
	Lambda wire.Vector `cbor:"lambda"`
}

func packGaussian(g gvi.Gaussian) gaussianMessage { return gaussianMessage{g.Eta, g.Lambda} }

// gaussian returns it unchecked.
func (m gaussianMessage) gaussian() gvi.Gaussian { return gvi.Gaussian{Eta: m.Eta, Lambda: m.Lambda} }

// factor returns a Gaussian over p weights that need not be a density.
func (m gaussianMessage) factor(p int) (gvi.Gaussian, error) {
	g := m.gaussian()
	return g, g.Check(p)
}

// density returns a Gaussian over p weights that is one.
func (m gaussianMessage) density(p int) (gvi.Gaussian, error) {
	g := m.gaussian()
	return g, g.CheckProper(p)
}

// scaleMessage brings numbers to common units: one entry for each number of the
// plan, in its order.
type scaleMessage struct {
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
}

// scaleTask asks for the sums that a common scale needs.
type scaleTask struct{}

// scaleAnswer holds, for every number of the plan, how often it was observed, its
// mean, and the sum of squared deviations from it.
type scaleAnswer struct {
	N       wire.Vector `cbor:"n"`
	Mean    wire.Vector `cbor:"mean"`
	Squares wire.Vector `cbor:"squares"`
}

func (a *scaleAnswer) check(numbers int) error {
	if len(a.N) != numbers || len(a.Mean) != numbers || len(a.Squares) != numbers {
		return fmt.Errorf("sums of %d, %d and %d numbers where the plan has %d", len(a.N), len(a.Mean), len(a.Squares), numbers)
	}
	for i, n := range a.N {
		if n != math.Trunc(n) || !gvi.Inside(n, 0, mostRows) || !gvi.Inside(a.Squares[i], 0, n*options.Largest*options.Largest) || !gvi.Inside(a.Mean[i], -options.Largest, options.Largest) {
			return fmt.Errorf("number %d: a count of %v, a mean of %v and squares of %v", i+1, n, a.Mean[i], a.Squares[i])
		}
	}
	return nil
}

// updateTask asks for one update. What a site does with it is decided by the plan
// that it agreed to: the task brings the coordinator's state and chooses nothing.
type updateTask struct {
	Scale  *scaleMessage   `cbor:"scale"`
	Q      gaussianMessage `cbor:"q"`
	Factor gaussianMessage `cbor:"factor"` // the site's own
	Update int             `cbor:"update"` // the site's count, from 1
}

// updateAnswer is where the local optimisation led from q: the quotient of the two,
// before damping.
type updateAnswer struct {
	Change gaussianMessage `cbor:"change"`
}

// stepAnswer is a step of variant global: the change of means and of logarithms of
// variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// assessTask asks how well the model predicts; it is what sites get back, too.
type assessTask struct {
	Scale *scaleMessage   `cbor:"scale"`
	Q     gaussianMessage `cbor:"q"`
}

// open checks a task against the plan. Every number has a bound, so that none can
// lead a computation out of what it was made for; that a task is refused does not
// depend on the site's rows.
func (t *updateTask) open(s *setup, site string) (e *gvi.Encoding, q, factor gvi.Gaussian, err error) {
	if most := s.times(taskUpdate, site); t.Update < 1 || t.Update > most {
		return nil, q, factor, fmt.Errorf("update %d: the plan has 1 to %d", t.Update, most)
	}
	if e, q, err = openModel(s, t.Scale, t.Q); err != nil {
		return nil, q, factor, err
	}
	if factor, err = t.Factor.factor(s.weights()); err == nil {
		err = bounded(factor)
	}
	if err != nil {
		return nil, q, factor, fmt.Errorf("factor: %w", err)
	}
	if !s.variant.cavity() {
		return e, q, factor, nil
	}
	cavity := q.Over(factor)
	if err = cavity.CheckProper(s.weights()); err == nil {
		err = boundedDensity(cavity)
	}
	if err != nil {
		return nil, q, factor, fmt.Errorf("cavity: %w", err)
	}
	return e, q, factor, nil
}

// open checks a task against the plan.
func (t *assessTask) open(s *setup) (e *gvi.Encoding, q gvi.Gaussian, err error) {
	return openModel(s, t.Scale, t.Q)
}

// openModel checks what makes predictions.
func openModel(s *setup, scale *scaleMessage, m gaussianMessage) (e *gvi.Encoding, q gvi.Gaussian, err error) {
	if e, err = s.scaled(scale); err != nil {
		return nil, q, err
	}
	if q, err = m.density(s.weights()); err == nil {
		err = boundedDensity(q)
	}
	if err != nil {
		return nil, q, fmt.Errorf("q: %w", err)
	}
	return e, q, nil
}
