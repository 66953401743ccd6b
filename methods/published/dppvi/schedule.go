package dppvi

import (
	"slices"

	"parley/method"
	"parley/methods/regression/options"
)

// turn says which sites are asked next; none when the updates are done, or as long
// as everybody who could be asked still has an answer to give.
func (c coordinator) turn(s *State) []string {
	if c.settled(s.Sites, c.staying(s)) {
		return nil
	}
	switch c.own.Schedule {
	case scheduleSequential:
		return c.inOrder(s)
	case scheduleSynchronous:
		if s.Round == c.own.Rounds {
			return nil
		}
		s.Round++
		return c.able(s)
	case scheduleRandom:
		return c.drawn(s)
	}
	var free []string
	for _, site := range c.able(s) {
		if !s.Sites[site].waits() && s.Asked+len(free) < c.updates() {
			free = append(free, site)
		}
	}
	return free
}

// able lists the sites that may be asked for one more update: a private site makes
// as many as its noise was chosen for.
func (c coordinator) able(s *State) []string {
	return slices.DeleteFunc(c.staying(s), func(site string) bool {
		p := c.protected[site]
		return p != nil && s.Sites[site].Asked >= p.updates
	})
}

// updates returns how many updates there are in all, where a schedule counts so.
func (c coordinator) updates() int { return c.own.Rounds * len(c.Plan.Sites) }

// inOrder returns the next site of the plan's order.
func (c coordinator) inOrder(s *State) []string {
	able := map[string]bool{}
	for _, site := range c.able(s) {
		able[site] = true
	}
	for len(able) > 0 && s.Round < c.own.Rounds {
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
func (c coordinator) drawn(s *State) []string {
	able := c.able(s)
	if s.Asked >= c.updates() || len(able) == 0 {
		return nil
	}
	total := 0.0
	for _, site := range able {
		total += 1 / float64(c.own.rowsOf(site))
	}
	u := total * options.Draws(c.Plan, "turn", "", s.Asked).Float64()
	for _, site := range able {
		if u -= 1 / float64(c.own.rowsOf(site)); u < 0 {
			return []string{site}
		}
	}
	return able[len(able)-1:]
}

// takes draws how long a site works on its n-th update: exponential, with a mean
// in proportion to its declared rows.
func (c coordinator) takes(site string, n int) float64 {
	return float64(c.own.rowsOf(site)) * options.Draws(c.Plan, "takes", site, n).ExpFloat64()
}

// progress counts the times that sites are asked, and an estimate of how many
// there will be.
func (c coordinator) progress(s *State) (done, of int) {
	of = c.own.Rounds * len(c.Plan.Sites)
	done = s.Asked
	if c.own.Schedule == scheduleSynchronous {
		of, done = c.own.Rounds, s.Round
	}
	if c.protected != nil { // what the sites' totals allow
		of = 0
		for _, p := range c.protected {
			of += p.updates
		}
	}
	of++ // the assessment
	if s.Phase == options.TaskAssess || s.Phase == method.Done {
		done = of
	}
	return min(done, of), of
}
