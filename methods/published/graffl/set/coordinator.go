// Package set is variant set of graffl: [Variant] has the two halves of sequential Monte
// Carlo on sets that are simulated from proposals, one for each. Sites answer how far their
// rows as a whole are from each set, exactly: there is no protection, and intervals are not
// calibrated, which the report says first.
package set

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

// coordinator is sequential Monte Carlo on set discrepancies.
type coordinator struct{ *options.Setup }

// state is what it carries: threshold and generation are the sampler's.
type state struct {
	SMC     abc.SMC                         `cbor:"smc"`
	Answers map[string]*discrepanciesAnswer `cbor:"answers"` // to the batch that is out
	Rows    map[string]int                  `cbor:"rows"`    // of each site, from its first answer
	Asked   bool                            `cbor:"asked"`
	Trace   []point                         `cbor:"trace"`
}

// point is a generation that has ended.
type point struct {
	Used      int     `cbor:"used"`
	Threshold float64 `cbor:"threshold"` // of the next generation
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	smc, err := abc.NewSMC(c.Prior, c.Options.Choices(c.Seed("sets")))
	if err != nil {
		return nil, err
	}
	return &state{SMC: *smc, Answers: map[string]*discrepanciesAnswer{}, Rows: map[string]int{}}, nil
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.SMC.Choices != c.Options.Choices(c.Seed("sets")) || !s.SMC.Prior.Equal(c.Prior) {
		return nil, fmt.Errorf("the state is of another plan's sampler")
	}
	if err := s.SMC.Check(); err != nil {
		return nil, fmt.Errorf("the state's sampler: %w", err)
	}
	proposals := len(s.SMC.Propose(options.SetBatch))
	for name, a := range s.Answers {
		if !slices.Contains(c.Plan.Sites, name) || a == nil {
			return nil, fmt.Errorf("the state has an answer of %q, which is no site of the plan", name)
		}
		if err := a.check(proposals); err != nil {
			return nil, fmt.Errorf("the state's answer of site %s: %w", name, err)
		}
	}
	for name, n := range s.Rows {
		if !slices.Contains(c.Plan.Sites, name) || n < 0 || n > options.MaxRows {
			return nil, fmt.Errorf("the state has %d rows of %q", n, name)
		}
	}
	if s.Answers == nil {
		s.Answers = map[string]*discrepanciesAnswer{}
	}
	if s.Rows == nil {
		s.Rows = map[string]int{}
	}
	return s, nil
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	if s.Asked {
		if err := c.fold(s); err != nil {
			return method.Step{}, err
		}
		s.Asked = false
		clear(s.Answers)
	}
	step := method.Step{State: s, Progress: s.SMC.Used, Of: c.Options.Set.Proposals}
	if s.SMC.Generation > 0 {
		step.Info = method.Info{"generation": float64(s.SMC.Generation)}
		if !math.IsInf(s.SMC.Threshold, 0) { // as where no set is any distance from the rows
			step.Info["threshold"] = s.SMC.Threshold
		}
	}
	if s.SMC.Stopped != abc.Running {
		step.Done = true
		return step, nil
	}
	s.Asked = true
	var err error
	step.Tasks, err = Ask(c.Plan.Sites, s.SMC.Used, s.SMC.Propose(options.SetBatch))
	return step, err
}

// fold gives the sampler what the sites have answered.
func (c *coordinator) fold(s *state) error {
	var rows []int
	total := 0
	for _, site := range c.Plan.Sites {
		a := s.Answers[site]
		if a == nil {
			return fmt.Errorf("site %s has not answered", site)
		}
		rows = append(rows, a.Rows)
		total += a.Rows
	}
	if total == 0 {
		return c.NoRows()
	}
	d := c.Options.Discrepancy()
	proposals := s.SMC.Propose(options.SetBatch)
	distances := make([]float64, len(proposals))
	across := make([]float64, len(rows))
	Each(c.Setup, s.SMC.Used, proposals, func(i int, set []float64) {
		if set == nil {
			distances[i] = math.Inf(1)
			return
		}
		for j, site := range c.Plan.Sites {
			across[j] = s.Answers[site].Across[i]
		}
		distances[i] = d.Over(d.Cross(set, set, len(c.Names)), across, rows)
	})
	generation := s.SMC.Generation
	if err := s.SMC.Fold(distances); err != nil {
		return err
	}
	if s.SMC.Generation > generation {
		s.Trace = append(s.Trace, point{s.SMC.Used, s.SMC.Threshold})
	}
	return nil
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Member(c.Plan.Sites, in.Site); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != taskDiscrepancies || !s.Asked:
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	case s.Answers[in.Site] != nil:
		return nil, fmt.Errorf("site %s has already answered", in.Site)
	}
	a := new(discrepanciesAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return nil, err
	}
	if err := a.check(len(s.SMC.Propose(options.SetBatch))); err != nil {
		return nil, err
	}
	// Sites that had rows at first would else leave none to go on with.
	if rows, known := s.Rows[in.Site]; known && a.Rows != rows {
		return nil, fmt.Errorf("means over %d rows from a site that had %d before", a.Rows, rows)
	}
	s.Answers[in.Site], s.Rows[in.Site] = a, a.Rows
	return s, nil
}

// Leave implements [method.Coordinator]: distances from some sites' rows cannot be
// held against a threshold of distances from all.
func (c *coordinator) Leave(_ method.State, site string) (method.State, error) {
	return nil, fmt.Errorf("site %q will not answer, and variant set needs every site to the end", site)
}

// Share gives every site the posterior mean of the mixture.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	p, err := c.Draws(ms)
	if err != nil {
		return nil, err
	}
	return report.Share(p.Mean())
}

// Draws implements [options.Sampled].
func (c *coordinator) Draws(ms method.State) (*gmm.Posterior, error) {
	s := ms.(*state)
	if s.SMC.Stopped == abc.Running {
		return nil, fmt.Errorf("the study is not done: it has used %d proposals", s.SMC.Used)
	}
	p := s.SMC.Sample()
	return &p, nil
}
