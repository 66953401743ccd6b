package graffl

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mixture/gmm"
)

// stop is why a run ended.
type stop string

const (
	running     stop = ""
	allProposed stop = "proposals"  // all proposals were used
	fewAccepted stop = "acceptance" // too few were accepted
)

// setParticle is a parameter, in [gmm.Coordinates], and its discrepancy from the sites'
// rows, which may be negative where a constant was left out.
type setParticle struct {
	U        []float64 `json:"u" cbor:"u"`
	Prior    float64   `json:"prior" cbor:"prior"` // ln p(u)
	Distance float64   `json:"distance" cbor:"distance"`
}

// SMC is approximate Bayesian computation by sequential Monte Carlo with replenishment (Drovandi and Pettitt 2011): the
// particles farthest away are replaced by copies of others, which then move by Metropolis steps that stay below the
// threshold. Each proposal is one parameter and one simulated set: [SMC.Propose] says which, and [SMC.Fold] takes how
// far their sets lie. All that must be carried is in its fields.
type SMC struct {
	Prior      gmm.Prior     `json:"-" cbor:"prior"`
	Choices    SetOptions    `json:"-" cbor:"choices"`
	Seed       uint64        `json:"-" cbor:"seed"`
	Particles  []setParticle `json:"particles" cbor:"particles"`
	Generation int           `json:"generation" cbor:"generation"` // 0 while the prior is drawn from
	Threshold  float64       `json:"threshold" cbor:"threshold"`   // of the generation; +Inf in the first
	Used       int           `json:"used" cbor:"used"`             // proposals folded
	Tried      int           `json:"tried" cbor:"tried"`           // of this generation
	Accepted   int           `json:"accepted" cbor:"accepted"`     // of this generation
	Moves      int           `json:"moves" cbor:"moves"`           // thought of, with those that the prior refused
	Next       int           `json:"next" cbor:"next"`             // particle that moves next
	Scale      float64       `json:"scale" cbor:"scale"`           // of its steps
	Stopped    stop          `json:"stopped" cbor:"stopped"`
}

// newSMC begins a run.
func newSMC(p gmm.Prior, c SetOptions, seed uint64) (*SMC, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &SMC{Prior: p, Choices: c, Seed: seed, Threshold: math.Inf(1), Scale: 1}, c.Check()
}

func (s *SMC) coordinates() gmm.Coordinates {
	return gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}
}

// Propose returns up to n parameters, in coordinates, whose discrepancies [SMC.Fold]
// wants next: none once the run has stopped. The same state proposes the same.
func (s *SMC) Propose(n int) [][]float64 {
	moves, _ := s.moves(n)
	var out [][]float64
	for _, m := range moves {
		out = append(out, m.u)
	}
	return out
}

// move is a proposal: where a particle would go.
type move struct {
	particle int
	u        []float64
	prior    float64 // ln p(u)
	refused  bool    // whatever its discrepancy
}

// moves are the next proposals, at most n, and how many moves were thought of for them.
// A move that the ratio of prior densities refuses is none that a site is asked about:
// both parts of the Metropolis rule must agree, in whichever order they are asked.
func (s *SMC) moves(n int) (moves []move, tried int) {
	if s.Stopped != running {
		return nil, 0
	}
	n = min(n, s.Choices.Proposals-s.Used)
	density := gmm.NewUnconstrained(s.Prior)
	if s.Generation == 0 {
		n = min(n, s.Choices.Particles-len(s.Particles))
		for range n {
			u := s.draw(s.random(s.Moves + tried))
			moves = append(moves, move{len(s.Particles) + tried, u, density.LogDensity(u), false})
			tried++
		}
		return moves, tried
	}
	// A sweep at most, so that a particle moves from where it is; more only while there is nothing to ask.
	for all := len(s.Particles); len(moves) < n && (tried < all || len(moves) == 0); tried++ {
		r := s.random(s.Moves + tried)
		m := move{particle: (s.Next + tried) % all, u: make([]float64, s.coordinates().Len())}
		old := s.Particles[m.particle]
		s.step(r, m.u, old.U)
		m.prior = density.LogDensity(m.u)
		m.refused = !(math.Log(r.Float64()) < m.prior-old.Prior)
		if !m.refused || tried >= mostSweeps*all {
			moves = append(moves, m)
		}
	}
	return moves, tried
}

// mostSweeps of moves that the prior refuses are followed by one that is asked about in vain, so that the run ends.
const mostSweeps = 16

// draw returns a parameter from the prior.
func (s *SMC) draw(r *rand.Rand) []float64 {
	c, sampler := s.coordinates(), NewSampler(s.Prior)
	u, m := make([]float64, c.Len()), gmm.NewMixture(c.K, c.Dim)
	for ok := false; !ok; { // weights may underflow for tiny α
		sampler.Draw(r, m)
		ok = c.To(u, m) == nil
	}
	return u
}

// Set simulates rows for proposal i of those proposed last, into Choices.Rows × Dim numbers: see [simulateBalanced].
func (s *SMC) Set(u []float64, i int, rows []float64) error {
	c := s.coordinates()
	m := gmm.NewMixture(c.K, c.Dim)
	c.From(m, u)
	a := gmm.SplitMix(s.Seed ^ 0x73657473)
	return simulateBalanced(m, rand.New(rand.NewPCG(a, gmm.SplitMix(a+uint64(s.Used+i)))), rows)
}

func (s *SMC) random(number int) *rand.Rand {
	a := gmm.SplitMix(s.Seed + 0x70726f70)
	return rand.New(rand.NewPCG(a, gmm.SplitMix(a+uint64(number))))
}

// step writes a proposal along the difference of two other particles, over one
// component, the weights or everything, which of them by chance.
func (s *SMC) step(r *rand.Rand, u, from []float64) {
	copy(u, from)
	all := blocks(s.coordinates())
	b := all[r.IntN(len(all))]
	one, two := s.Particles[r.IntN(len(s.Particles))].U, s.Particles[r.IntN(len(s.Particles))].U
	g := s.Scale * 2.38 / math.Sqrt(2*float64(len(b)))
	for _, i := range b {
		// A little of its own for each coordinate, in the particles' own units, lets them
		// leave the subspace that they span.
		u[i] += g * (1 + 0.05*r.NormFloat64()) * (one[i] - two[i])
	}
}

// Fold takes the discrepancies of what was proposed last, in order. A discrepancy
// that is NaN counts as infinitely far. What it leaves is the next state.
func (s *SMC) Fold(distances []float64) error {
	moves, tried := s.moves(len(distances))
	if len(moves) != len(distances) {
		return fmt.Errorf("%d discrepancies: at most %d proposals wait for any", len(distances), len(moves))
	}
	for i, m := range moves {
		d := distances[i]
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		p := setParticle{m.u, m.prior, d}
		s.Used++
		s.Tried++
		switch {
		case s.Generation == 0:
			s.Particles = append(s.Particles, p)
			s.Accepted++
		case d <= s.Threshold && !m.refused:
			s.Particles[m.particle] = p
			s.Accepted++
		}
	}
	s.Moves += tried
	if s.Generation > 0 {
		s.Next = (s.Next + tried) % len(s.Particles)
	}
	s.advance()
	return nil
}

// advance closes a generation once enough of its moves were accepted that most
// copies have moved, and stops the run, inside a generation too.
func (s *SMC) advance() {
	n := s.Choices.Particles
	rate := float64(s.Accepted) / float64(max(s.Tried, 1))
	copies := float64(n) * (1 - s.Choices.Keep)
	switch {
	case s.Used >= s.Choices.Proposals:
		s.Stopped = allProposed
	case len(s.Particles) < n:
	case s.Generation > 0 && s.Tried >= n && rate < s.Choices.LeastAcceptance:
		s.Stopped = fewAccepted
	case s.Generation == 0 || float64(s.Accepted) >= copies:
		s.renew(rate)
	}
}

// renew lowers the threshold and replaces the particles above it by copies.
func (s *SMC) renew(rate float64) {
	n := len(s.Particles)
	slices.SortStableFunc(s.Particles, func(a, b setParticle) int { return cmp.Compare(a.Distance, b.Distance) })
	keep := max(int(s.Choices.Keep*float64(n)), 2)
	s.Threshold = s.Particles[keep-1].Distance
	if s.Generation > 0 {
		s.Scale = min(max(s.Scale*math.Exp(rate-0.2), 0.1), 1.5)
	}
	r := rand.New(rand.NewPCG(gmm.SplitMix(s.Seed+0x636f7079), uint64(s.Generation)))
	for i := keep; i < n; i++ {
		p := s.Particles[r.IntN(keep)]
		p.U = slices.Clone(p.U)
		s.Particles[i] = p
	}
	// Copies move first.
	s.Next = keep % n
	s.relabel()
	s.Generation++
	s.Tried, s.Accepted = 0, 0
}

// relabel gives every particle the order of components closest to the best one's, if
// the prior does not tell components apart.
func (s *SMC) relabel() {
	c := s.coordinates()
	if !alike(s.Prior) || c.K == 1 {
		return
	}
	best, m, scale := gmm.NewMixture(c.K, c.Dim), gmm.NewMixture(c.K, c.Dim), scaleOf(s.Prior)
	c.From(best, s.Particles[0].U)
	for _, p := range s.Particles[1:] {
		c.From(m, p.U)
		reorder(c, p.U, gmm.Match(best, m, scale))
	}
}

// alike says whether a prior is the same for every order of components.
func alike(p gmm.Prior) bool { return slices.Min(p.Alpha) == slices.Max(p.Alpha) }

// Sample returns the particles as an equally weighted sample, the component of the
// largest mean weight first if the prior does not tell them apart.
func (s *SMC) Sample() gmm.Posterior {
	c := s.coordinates()
	var post gmm.Posterior
	for _, p := range s.Particles {
		m := gmm.NewMixture(c.K, c.Dim)
		c.From(m, p.U)
		post.Draws = append(post.Draws, m)
		post.Weights = append(post.Weights, 1/float64(len(s.Particles)))
	}
	post.Size = float64(len(s.Particles))
	post.Stages = s.Generation
	post.Acceptance = float64(s.Accepted) / float64(max(s.Tried, 1))
	if alike(s.Prior) {
		post.LargestFirst()
	}
	return post
}

// blocks lists coordinates that move together: one block for each component, then, of several, the
// weights and everything.
func blocks(c gmm.Coordinates) (all [][]int) {
	index := make([]int, c.Len())
	for i := range index {
		index[i] = i
	}
	for k := range c.K {
		own := slices.Clone(index[c.K-1+k*c.Dim:][:c.Dim])
		all = append(all, append(own, index[c.K-1+c.K*c.Dim+k*c.Triangle():][:c.Triangle()]...))
	}
	if c.K > 1 {
		all = append(all, index[:c.K-1], index)
	}
	return all
}

// reorder puts component order[k] of u in place k.
func reorder(c gmm.Coordinates, u []float64, order []int) {
	old := slices.Clone(u)
	logit := func(k int) float64 {
		if k < c.K-1 {
			return old[k]
		}
		return 0
	}
	covs := c.K - 1 + c.K*c.Dim
	for k, j := range order {
		if k < c.K-1 {
			u[k] = logit(j) - logit(order[c.K-1])
		}
		copy(u[c.K-1+k*c.Dim:][:c.Dim], old[c.K-1+j*c.Dim:])
		copy(u[covs+k*c.Triangle():][:c.Triangle()], old[covs+j*c.Triangle():])
	}
}
