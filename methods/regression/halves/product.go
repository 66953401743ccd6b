package halves

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Product is what variants have in common whose posterior is the prior times the
// sites' factors, of which an answer changes one.
type Product struct{ *Common }

// Record is nothing: all is in the factors.
func (Product) Record() any { return new(struct{}) }

// Begin leaves the state as it is.
func (Product) Begin(*State) {}

// Check takes any such record.
func (Product) Check(*State) error { return nil }

// Cavity is true: sites refine their factor against all others.
func (Product) Cavity() bool { return true }

// Updates follow from the rounds.
func (Product) Updates() int { return 0 }

// Posterior implements [Variant].
func (c Product) Posterior(s *State) (glm.Gaussian, error) {
	q := c.Prior
	for _, f := range c.Factors(s) {
		q = q.Times(f)
	}
	return q, q.CheckProper(c.Weights())
}

// Factors lists those of all sites, in the plan's order.
func (c Product) Factors(s *State) []glm.Gaussian {
	factors := make([]glm.Gaussian, 0, len(c.Plan.Sites))
	for _, name := range c.Plan.Sites {
		factors = append(factors, s.Sites[name].Factor.Unchecked())
	}
	return factors
}

// Fold moves the site's factor by the change that it asks for.
func (c Product) Fold(s *State, in method.Contribution, q glm.Gaussian) error {
	a := new(options.UpdateAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	change, err := a.Change.Factor(c.Weights())
	if err != nil {
		return err
	}
	r := s.Sites[in.Site]
	// Damping and projection need the quotient of the optimum and q alone.
	factor, applied, projected := glm.Refine(r.Factor.Unchecked(), glm.Flat(c.Weights()), change, c.Options.Damping)
	if err := options.Workable(factor, c.Prior); err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	r.Factor = options.Pack(factor)
	r.Moved = moved(q, applied) / c.Options.Damping
	s.Projected += projected
	return nil
}

// moved says how far a change leads from q: the largest shift of a mean, in
// standard deviations, or of the logarithm of a precision.
func moved(q, change glm.Gaussian) float64 {
	far := 0.0
	for j, l := range q.Lambda {
		next := l + change.Lambda[j]
		shift := (q.Eta[j]+change.Eta[j])/next - q.Eta[j]/l
		far = max(far, math.Abs(shift)*math.Sqrt(l), math.Abs(math.Log(next/l)))
	}
	if !glm.Finite(far) { // a change that belongs to another q may lead beyond this one
		return math.MaxFloat64
	}
	return far
}
