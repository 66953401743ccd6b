package halves

import (
	"math"
	"slices"

	"parley/method"
	"parley/methods/regression/options"
)

// turn says which sites are asked next; none when the updates are done, or as long
// as everybody who could be asked still has an answer to give.
func (c *Coordinator) turn(s *State) []string {
	if c.settled(s) {
		return nil
	}
	switch c.Options.Schedule {
	case options.ScheduleSequential:
		return c.inOrder(s)
	case options.ScheduleSynchronous:
		if s.Round == c.Options.Rounds {
			return nil
		}
		s.Round++
		return c.able(s)
	case options.ScheduleRandom:
		return c.drawn(s)
	}
	var free []string
	for _, site := range c.able(s) {
		if !s.waits(site) && s.Asked+len(free) < c.updates() {
			free = append(free, site)
		}
	}
	return free
}

// able lists the sites that may be asked for one more update: a private site makes
// as many as its noise was chosen for.
func (c *Coordinator) able(s *State) []string {
	return slices.DeleteFunc(c.staying(s), func(site string) bool {
		p := c.Protected[site]
		return p != nil && s.Sites[site].Asked >= p.Updates
	})
}

// updates returns how many updates there are in all, where a schedule counts so.
func (c *Coordinator) updates() int { return c.Options.Rounds * len(c.Plan.Sites) }

// inOrder returns the next site of the plan's order.
func (c *Coordinator) inOrder(s *State) []string {
	able := map[string]bool{}
	for _, site := range c.able(s) {
		able[site] = true
	}
	for len(able) > 0 && s.Round < c.Options.Rounds {
		site := c.Plan.Sites[s.Turn]
		if s.Turn++; s.Turn == len(c.Plan.Sites) {
			s.Turn, s.Round = 0, s.Round+1
		}
		if able[site] {
			return []string{site}
		}
	}
	return nil
}

// drawn returns one site, drawn with a probability in proportion to 1/rows.
func (c *Coordinator) drawn(s *State) []string {
	able := c.able(s)
	if s.Asked >= c.updates() || len(able) == 0 {
		return nil
	}
	total := 0.0
	for _, site := range able {
		total += 1 / float64(c.Options.RowsOf(site))
	}
	u := total * options.Draws(c.Plan, "turn", "", s.Asked).Float64()
	for _, site := range able {
		if u -= 1 / float64(c.Options.RowsOf(site)); u < 0 {
			return []string{site}
		}
	}
	return able[len(able)-1:]
}

// takes draws how long a site works on its n-th update: exponential, with a mean
// in proportion to its declared rows.
func (c *Coordinator) takes(site string, n int) float64 {
	return float64(c.Options.RowsOf(site)) * options.Draws(c.Plan, "takes", site, n).ExpFloat64()
}

// settled says whether no site's last update moved q by more than the tolerance, nor would all
// later ones together move it far: many small steps are a long way.
func (c *Coordinator) settled(s *State) bool {
	if c.Options.Tolerance == nil {
		return false
	}
	for _, site := range c.staying(s) {
		if r := s.Sites[site]; r.Folded == 0 || r.Moved > *c.Options.Tolerance {
			return false
		}
	}
	return c.left(s) <= near
}

// near is how far from its end, in standard deviations, a fit counts as converged: as close
// as a joint one.
const near = 0.01

// left estimates how far q is from where updates would lead it, in standard deviations. Steps
// of partitioned inference shrink by nearly the same factor ρ from one of a site's updates to
// the next, so that those still to come add up to ρ/(1 − ρ) times the last (Aitken's
// extrapolation). Infinite where steps do not shrink, or a site has made only one.
func (c *Coordinator) left(s *State) float64 {
	last, before := 0.0, 0.0
	for _, site := range c.staying(s) {
		r := s.Sites[site]
		if r.Folded == 0 {
			return math.Inf(1)
		}
		last, before = last+c.Options.Damping*r.Moved, before+c.Options.Damping*r.Before
	}
	switch rest := before - last; {
	case last < near*1e-4: // rounding
		return 0
	case rest > 0:
		return last * max(last/rest, 1)
	}
	return math.Inf(1)
}

// progress counts the times that sites are asked, and an estimate of how many
// there will be.
func (c *Coordinator) progress(s *State) (done, of int) {
	of = c.Options.Rounds * len(c.Plan.Sites)
	done = s.Asked
	if c.Options.Schedule == options.ScheduleSynchronous {
		of, done = c.Options.Rounds, s.Round
	}
	if n := c.Variant.Updates(); n > 0 {
		of = n
	}
	of++ // the assessment
	if s.Phase == options.TaskAssess || s.Phase == method.Done {
		done = of
	}
	return min(done, of), of
}
