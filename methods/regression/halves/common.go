// Package halves is what the variants of pvi have in common: [Coordinator], which asks
// sites in the order of a schedule and keeps a factor of each, and [Site], which answers
// without privacy or from noised sums alone. [New] puts a plan and its [Variant] together
// for both.
//
// A variant is a room of its own, which imports this one: nothing here knows which there
// are. It embeds [Product] where the posterior is a product of factors, and is [Exact] or
// [Private]. What comes from the other end is checked, and gives errors, never panics.
package halves

import (
	"context"
	"fmt"

	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy"
)

// Variant is what tells the variants of the method apart: how sites refine, and what
// the coordinator makes of it. All else is the same for all of them: schedules,
// scales, messages, assessments and results.
type Variant interface {
	// Record is a pointer to what the variant carries beside the rest of [State], empty.
	// It is kept as [State.Own].
	Record() any
	// Begin completes the state before any task.
	Begin(s *State)
	// Check reports a state from elsewhere that is none of the variant.
	Check(s *State) error
	// Posterior returns q.
	Posterior(s *State) (glm.Gaussian, error)
	// Fold takes in a site's answer to an update. The posterior before it is q.
	Fold(s *State, in method.Contribution, q glm.Gaussian) error
	// Cavity says whether updates divide q by the site's own factor.
	Cavity() bool
	// Updates returns how many updates all sites make, where that does not follow
	// from the rounds; 0 where it does.
	Updates() int
}

// Exact is a variant without protection.
type Exact interface {
	Variant
	// Releases says what an update tells.
	Releases() privacy.Content
	// Refine answers an update, of a design that has all rows of the site; carry is what
	// the site gets back as carried with its next update.
	Refine(u *Update, d *glm.Design) (answer any, carry []byte, err error)
}

// Private is a variant under differential privacy.
type Private interface {
	Variant
	// Protection works out what a site releases.
	Protection(site string) (*Protection, error)
	// Release answers an update from noised sums over the session's rows alone; answer is
	// nil where these are all of it.
	Release(ctx context.Context, u *Update, s *privacy.Session, b *glm.Binding) (answer any, carry []byte, err error)
}

// Update is one update that a site is asked for.
type Update struct {
	Site      string
	Number    int          // the site's count, from 1
	Q, Factor glm.Gaussian // the posterior, and the site's own factor in it
	Carried   []byte       // by the site since its update before; nil at first
}

// Common is what both halves know of a plan and its variant.
type Common struct {
	*options.Setup
	Variant Variant
	exact   Exact // either this or private is Variant
	private Private
	// Protected is what sites release under differential privacy; nil without it.
	Protected map[string]*Protection
}

// New works out what a plan says to the halves of the given sites.
func New(s *options.Setup, sites []string, variant func(*Common) Variant) (*Common, error) {
	c := &Common{Setup: s}
	c.Variant = variant(c)
	c.exact, _ = c.Variant.(Exact)
	if c.private, _ = c.Variant.(Private); c.private == nil {
		return c, nil
	}
	c.Protected = map[string]*Protection{}
	for _, site := range sites {
		p, err := c.private.Protection(site)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		c.Protected[site] = p
	}
	return c, nil
}

// times says how often a site is asked for something, at most.
func (c *Common) times(kind, site string) int {
	p := c.Protected[site]
	switch kind {
	case options.TaskScale:
		if c.Options.Scaling == options.ScaleStandard {
			return 1
		}
		return 0
	case options.TaskUpdate:
		switch {
		case p != nil:
			return p.Updates
		case c.Options.ByTotal():
			return c.Options.Rounds * len(c.Plan.Sites)
		}
		return c.Options.Rounds
	}
	if p != nil && p.Quality == nil {
		return 0
	}
	return 1
}

// OpenUpdate checks a task against the plan. Every number has a bound, so that none can
// lead a computation out of what it was made for; that a task is refused does not
// depend on the site's rows.
func (c *Common) OpenUpdate(t *options.UpdateTask, site string) (*Update, error) {
	if most := c.times(options.TaskUpdate, site); t.Update < 1 || t.Update > most {
		return nil, fmt.Errorf("update %d: the plan has 1 to %d", t.Update, most)
	}
	_, q, err := c.OpenModel(t.Scale, t.Q)
	if err != nil {
		return nil, err
	}
	factor, err := t.Factor.Factor(c.Weights())
	if err == nil {
		err = options.Bounded(factor)
	}
	if err != nil {
		return nil, fmt.Errorf("factor: %w", err)
	}
	u := &Update{Site: site, Number: t.Update, Q: q, Factor: factor}
	if !c.Variant.Cavity() {
		return u, nil
	}
	cavity := q.Over(factor)
	if err = cavity.CheckProper(c.Weights()); err == nil {
		err = options.BoundedDensity(cavity)
	}
	if err != nil {
		return nil, fmt.Errorf("cavity: %w", err)
	}
	return u, nil
}

// OpenModel checks what makes predictions against the plan.
func (c *Common) OpenModel(scale *options.Scale, m options.Gaussian) (e *glm.Encoding, q glm.Gaussian, err error) {
	if e, err = c.Scaled(scale); err != nil {
		return nil, q, err
	}
	if q, err = m.Density(c.Weights()); err == nil {
		err = options.BoundedDensity(q)
	}
	if err != nil {
		return nil, q, fmt.Errorf("q: %w", err)
	}
	return e, q, nil
}
