package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/privacy"
)

// variant is what tells the variants of the method apart: how sites refine, and what
// the coordinator makes of it. All else is the same for all of them: schedules,
// scales, messages, assessments and results.
type variant interface {
	// begin completes the state before any task.
	begin(s *state)
	// check reports a state that is none of the variant.
	check(s *state) error
	// posterior returns q.
	posterior(s *state) (gvi.Gaussian, error)
	// fold takes in a site's answer to an update. The posterior before it is q.
	fold(s *state, in method.Contribution, q gvi.Gaussian) error
	// cavity says whether updates divide q by the site's own factor.
	cavity() bool
	// updates returns how many updates all sites make, where that does not follow
	// from the rounds; 0 where it does.
	updates() int
}

// exactVariant is a variant without protection.
type exactVariant interface {
	variant
	// releases says what an update tells.
	releases() privacy.Content
	// refine answers an update from q with the site's own factor, of a design that
	// has all rows of the site; carry is what the site gets back as carried with its
	// next update.
	refine(h *site, t *updateTask, q, factor gvi.Gaussian, d *gvi.Design, carried []byte) (answer any, carry []byte, err error)
}

// privateVariant is a variant under differential privacy.
type privateVariant interface {
	variant
	// protection works out what a site releases.
	protection(site string) (*protection, error)
	// release answers an update from q with the site's own factor, from noised sums
	// over the session's rows alone; answer is nil where these are all of it.
	release(ctx context.Context, h *site, t *updateTask, q, factor gvi.Gaussian, s *privacy.Session, b *gvi.Binding) (answer any, carry []byte, err error)
}

// choose sets the plan's variant.
func (s *setup) choose() {
	p := product{s}
	differential := s.plan.Privacy.Differential()
	switch {
	case differential && s.opts.Variant == options.VariantPublished:
		s.private = paper{p}
	case differential:
		s.private = natural{p}
	case s.opts.Variant == options.VariantGlobal:
		s.exact = global{p}
	default:
		s.exact = partitioned{p}
	}
	if s.variant = s.exact; s.private != nil {
		s.variant = s.private
	}
}

// product is what variants have in common whose posterior is the prior times the
// sites' factors, of which an answer changes one.
type product struct{ *setup }

func (product) begin(*state)       {}
func (product) check(*state) error { return nil }
func (product) cavity() bool       { return true }
func (product) updates() int       { return 0 }

func (c product) posterior(s *state) (gvi.Gaussian, error) {
	q := c.prior
	for _, f := range c.factors(s) {
		q = q.Times(f)
	}
	return q, q.CheckProper(c.weights())
}

// factors lists those of all sites, in the plan's order.
func (c product) factors(s *state) []gvi.Gaussian {
	factors := make([]gvi.Gaussian, 0, len(c.plan.Sites))
	for _, name := range c.plan.Sites {
		factors = append(factors, s.Sites[name].Factor.gaussian())
	}
	return factors
}

// fold moves the site's factor by the change that it asks for.
func (c product) fold(s *state, in method.Contribution, q gvi.Gaussian) error {
	a := new(updateAnswer)
	if err := rounds.Decode(in, a); err != nil {
		return err
	}
	change, err := a.Change.factor(c.weights())
	if err != nil {
		return err
	}
	r := s.Sites[in.Site]
	// Damping and projection need the quotient of the optimum and q alone.
	factor, applied, projected := gvi.Refine(r.Factor.gaussian(), gvi.Flat(c.weights()), change, c.opts.Damping)
	if err := c.workable(factor); err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	r.Factor = packGaussian(factor)
	r.Moved = moved(q, applied) / c.opts.Damping
	s.Projected += projected
	return nil
}

// moved says how far a change leads from q: the largest shift of a mean, in
// standard deviations, or of the logarithm of a precision.
func moved(q, change gvi.Gaussian) float64 {
	far := 0.0
	for j, l := range q.Lambda {
		next := l + change.Lambda[j]
		shift := (q.Eta[j]+change.Eta[j])/next - q.Eta[j]/l
		far = max(far, math.Abs(shift)*math.Sqrt(l), math.Abs(math.Log(next/l)))
	}
	if !gvi.Finite(far) { // a change that belongs to another q may lead beyond this one
		return math.MaxFloat64
	}
	return far
}
