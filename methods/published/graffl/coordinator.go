// Package graffl is variant published of graffl: [Variant] has the two halves of
// Algorithm 2 as it was published, for comparison alone. It gives every row away, by exact
// distances to known points, and what it accepts does not become the posterior; its report
// begins with both. Options refuse it where a plan is private.
package graffl

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/methods/published/graffl/abc"
)

// coordinator is Algorithm 2 as it was published.
type coordinator struct{ *options.Setup }

// state is what it carries: in memory that does not grow with proposals.
type state struct {
	Iteration int            `cbor:"iteration"` // the first of those that answers are waited for; rounds, when done
	Asked     bool           `cbor:"asked"`
	Rows      map[string]int `cbor:"rows"`   // of each site, from its first answer
	Folded    map[string]int `cbor:"folded"` // iterations that each site has answered
	Left      []string       `cbor:"left"`
	Kept      abc.Acceptance `cbor:"kept"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	kept, err := abc.NewAcceptance(c.Options.Published.Accepted)
	if err != nil {
		return nil, err
	}
	return &state{Rows: map[string]int{}, Folded: map[string]int{}, Kept: *kept}, nil
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	all := c.Options.Published.Rounds
	if s.Iteration < 0 || s.Iteration > all || s.Kept.Limit != c.Options.Published.Accepted || len(s.Kept.Kept) > s.Kept.Limit || math.IsNaN(s.Kept.Rejected) {
		return nil, fmt.Errorf("the state is of iteration %d with %d of %d proposals: it is not of this plan", s.Iteration, len(s.Kept.Kept), s.Kept.Limit)
	}
	if begins := s.Iteration%c.Options.Published.Batch() == 0; s.Iteration == all && s.Asked || s.Iteration < all && !begins {
		return nil, fmt.Errorf("the state waits for iteration %d, with which no task begins", s.Iteration)
	}
	for name, n := range s.Rows {
		if !slices.Contains(c.Plan.Sites, name) || n < 0 || n > options.MaxRows {
			return nil, fmt.Errorf("the state has %d rows of %q", n, name)
		}
	}
	for name, n := range s.Folded {
		if !slices.Contains(c.Plan.Sites, name) || n < 0 || n > all {
			return nil, fmt.Errorf("the state has %d of %d iterations answered by %q", n, all, name)
		}
	}
	for i, a := range s.Kept.Kept {
		if a.Site < 0 || a.Site >= len(c.Plan.Sites) || a.Iteration < 0 || a.Iteration >= all || a.Row < 0 || a.Row >= s.Rows[c.Plan.Sites[a.Site]] || !(a.Distance >= 0) ||
			i > 0 && a.Compare(s.Kept.Kept[(i-1)/2]) > 0 {
			return nil, fmt.Errorf("the state's accepted proposal %d is none of this plan, or out of place", i+1)
		}
	}
	if s.Rows == nil {
		s.Rows = map[string]int{}
	}
	if s.Folded == nil {
		s.Folded = map[string]int{}
	}
	return s, nil
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	all := c.Options.Published.Rounds
	if s.Asked {
		s.Asked = false
		s.Iteration += c.Options.Published.Together(s.Iteration)
	}
	step := method.Step{State: s, Progress: s.Iteration, Of: all}
	if len(s.Kept.Kept) > 0 {
		largest, _ := s.Kept.Thresholds()
		step.Info = method.Info{"threshold": largest}
	}
	if s.Iteration >= all {
		if len(s.Kept.Kept) == 0 {
			return step, c.NoRows()
		}
		step.Done = true
		return step, nil
	}
	s.Asked = true
	var err error
	step.Tasks, err = method.Ask(taskDistances, method.Staying(c.Plan.Sites, s.Left), func(string) (any, error) { return distancesTask{s.Iteration}, nil })
	return step, err
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Member(c.Plan.Sites, in.Site); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != taskDistances || !s.Asked:
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	case s.Folded[in.Site] > s.Iteration:
		return nil, fmt.Errorf("site %s has already answered", in.Site)
	}
	a := new(distancesAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return nil, err
	}
	together, at := c.Options.Published.Together(s.Iteration), slices.Index(c.Plan.Sites, in.Site)
	if len(a.Distances)%together != 0 {
		return nil, fmt.Errorf("%d distances in %d iterations: want as many in each as the site has rows", len(a.Distances), together)
	}
	n := len(a.Distances) / together
	if rows, known := s.Rows[in.Site]; known && n != rows {
		return nil, fmt.Errorf("distances of %d rows from a site that had %d before", n, rows)
	}
	for t := range together {
		for k, d := range a.Distances[t*n:][:n] {
			if err := s.Kept.Offer(abc.Answer{Iteration: s.Iteration + t, Site: at, Row: k, Distance: d}); err != nil {
				return nil, err
			}
		}
	}
	s.Rows[in.Site], s.Folded[in.Site] = n, s.Iteration+together
	return s, nil
}

// Leave implements [method.Coordinator]: what was accepted stays.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	var err error
	s.Left, err = method.Leave(c.Plan.Sites, s.Left, site)
	return s, err
}

// Share gives nothing: the mean of a cloud that does not contract is no model.
func (c *coordinator) Share(method.State, string) ([]byte, error) {
	return report.Share(gmm.Mixture{})
}

// Draws implements [options.Sampled]: the parameters that were accepted, which are no
// posterior.
func (c *coordinator) Draws(ms method.State) (*gmm.Posterior, error) {
	p, _, err := c.accepted(ms.(*state))
	return p, err
}

// accepted makes the accepted parameters again, in the order of their distance, and
// says where the component lies that made the row of each.
func (c *coordinator) accepted(s *state) (p *gmm.Posterior, made []float64, err error) {
	if s.Iteration < c.Options.Published.Rounds || len(s.Kept.Kept) == 0 {
		return nil, nil, fmt.Errorf("the study is not done: it waits for iteration %d", s.Iteration+1)
	}
	kept := s.Kept.Sorted()
	p = &gmm.Posterior{}
	proposers := make([]*abc.Proposer, len(c.Plan.Sites))
	for _, a := range kept {
		site := c.Plan.Sites[a.Site]
		if proposers[a.Site] == nil {
			proposers[a.Site] = NewProposer(c.Setup, site)
		}
		m := gmm.NewMixture(c.Prior.Components(), c.Prior.Dim())
		k := proposers[a.Site].Parameter(a.Iteration*s.Rows[site]+a.Row, m)
		made = append(made, m.Mean(k)...)
		if len(p.Draws) > 0 {
			m = m.Reorder(gmm.Match(p.Draws[0], m, c.Prior.Scale()))
		}
		p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, 1/float64(len(kept)))
	}
	p.Size = gmm.EffectiveSize(p.Weights)
	return p, made, nil
}
