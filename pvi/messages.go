package pvi

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/privacy"
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

func packGaussian(g Gaussian) gaussianMessage { return gaussianMessage{g.Eta, g.Lambda} }

// factor returns a Gaussian over p weights that need not be a density.
func (m gaussianMessage) factor(p int) (Gaussian, error) {
	g := Gaussian{m.Eta, m.Lambda}
	return g, g.Check(p)
}

// density returns a Gaussian over p weights that is one.
func (m gaussianMessage) density(p int) (Gaussian, error) {
	g := Gaussian{m.Eta, m.Lambda}
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
		if n != math.Trunc(n) || n < 0 || a.Squares[i] < 0 {
			return fmt.Errorf("number %d: a count of %v and squares of %v", i+1, n, a.Squares[i])
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

// sumAnswer is a noised sum of contributions, as the session made it: see [natural].
type sumAnswer struct {
	Sum privacy.Noised `cbor:"sum"`
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

// open checks a task against the plan.
func (t *updateTask) open(s *setup) (e *Encoding, q, factor Gaussian, err error) {
	if e, err = s.scaled(t.Scale); err != nil {
		return nil, q, factor, err
	}
	if q, err = t.Q.density(s.weights()); err != nil {
		return nil, q, factor, fmt.Errorf("q: %w", err)
	}
	if factor, err = t.Factor.factor(s.weights()); err != nil {
		return nil, q, factor, fmt.Errorf("factor: %w", err)
	}
	if s.opts.private(s.plan) { // which knows no cavity
		return e, q, factor, t.check()
	}
	if err := q.Over(factor).CheckProper(s.weights()); err != nil {
		return nil, q, factor, fmt.Errorf("cavity: %w", err)
	}
	return e, q, factor, t.check()
}

func (t *updateTask) check() error {
	if t.Update < 1 {
		return fmt.Errorf("update %d: the first is 1", t.Update)
	}
	return nil
}
