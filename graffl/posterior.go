package graffl

import (
	"fmt"
	"math"
	"slices"
)

// Sampling says how a posterior is sampled.
type Sampling struct {
	Particles int    `json:"particles" cbor:"particles"` // 64 to 65536
	Sweeps    int    `json:"sweeps" cbor:"sweeps"`       // moves of every block after each resampling, ≥ 1
	Seed      uint64 `json:"seed" cbor:"seed"`
}

// DefaultSampling takes about a second for three components and a hundred landmarks.
func DefaultSampling(seed uint64) Sampling { return Sampling{384, 2, seed} }

// Check reports what is wrong with the choices.
func (s Sampling) Check() error {
	if s.Particles < 64 || s.Particles > 1<<16 || s.Sweeps < 1 || s.Sweeps > 1000 {
		return fmt.Errorf("sampling with %d particles and %d sweeps: want 64 to 65536 particles and 1 to 1000 sweeps", s.Particles, s.Sweeps)
	}
	return nil
}

// Posterior is a weighted sample of parameters, and how it was made.
type Posterior struct {
	Draws   []Mixture `json:"draws" cbor:"draws"`
	Weights []float64 `json:"weights" cbor:"weights"` // sum 1
	// Size is the effective sample size of the weights: see [EffectiveSize].
	Size       float64 `json:"effective_size" cbor:"effective_size"`
	Stages     int     `json:"stages" cbor:"stages"`         // temperatures between prior and posterior
	Acceptance float64 `json:"acceptance" cbor:"acceptance"` // share of moves accepted in the last stage
}

// Posterior samples p(θ | observed means) by sequential Monte Carlo from the prior
// (Del Moral, Doucet and Jasra 2006), on the synthetic likelihood of
// [Landmarks.LogLikelihood]. Temperatures adapt so that half of the particles'
// weight survives each step. As the covariance of the means hardly changes where
// the posterior is, the way down holds it fixed, at first at a guess from the observed
// means, then at the best particle; the last weights put in its true value.
//
// Components are matched to the best particle if the prior does not tell them
// apart. No site is asked anything, and no privacy is spent: all this is
// post-processing of what was released.
func (l Landmarks) Posterior(o Observation, p Prior, opt Sampling) (*Posterior, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := o.Check(l.Len()); err != nil {
		return nil, err
	}
	if err := opt.Check(); err != nil {
		return nil, err
	}
	if l.Dim != p.Dim() {
		return nil, fmt.Errorf("landmarks in %d dimensions and a prior in %d", l.Dim, p.Dim())
	}
	// Landmarks that hardly a row comes near have means that are anything but Gaussian:
	// a row's worth of variance keeps them from deciding.
	o.NoiseVar += 1 / (o.Rows * o.Rows)
	near := l.guess(o)
	s := newCloud(l, o, p, opt, near)
	cov := make([]float64, l.Len()*l.Len())
	if !s.spread(near, s.evaluator(), cov) {
		return nil, fmt.Errorf("the covariance of a first guess is not positive definite")
	}
	var last *precision // the start's density
	for stage := range 3 {
		if stage > 0 {
			s.typical(cov)
		}
		next, err := newPrecision(o.Mean, cov)
		if err != nil {
			return nil, err
		}
		if err := s.temper(last, next); err != nil {
			return nil, err
		}
		last = next
	}
	return s.finish()
}

// guess is a mixture near the observed density: a component at every landmark that
// stands out of the noise.
func (l Landmarks) guess(o Observation) Mixture {
	order := make([]int, l.Len())
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if o.Mean[a] > o.Mean[b] {
			return -1
		}
		return 1
	})
	n := min(len(order), 48)
	floor := max(2*math.Sqrt(o.NoiseVar), o.Mean[order[0]]/100)
	for n > 1 && o.Mean[order[n-1]] < floor {
		n--
	}
	m, sum := NewMixture(n, l.Dim), 0.0
	for k, r := range order[:n] {
		m.Weights[k] = max(o.Mean[r], 1e-9)
		sum += m.Weights[k]
		copy(m.Mean(k), l.Point(r))
		for i, h := range l.Bandwidth {
			m.Cov(k)[i*l.Dim+i] = h * h
		}
	}
	for k := range m.Weights {
		m.Weights[k] /= sum
	}
	return m
}

// spread writes the covariance of the observed means under a mixture, and leaves
// their expectation in e.mean.
func (s *cloud) spread(m Mixture, e *evaluator, cov []float64) bool {
	if !e.marks.mean(m, e.mean) || !e.marks.covariance(m, s.overlaps, e.mean, cov) {
		return false
	}
	spread(s.observed, e.mean, cov)
	return true
}

// typical writes the mean covariance of the observed means over some particles.
func (s *cloud) typical(cov []float64) {
	const some = 64
	clear(cov)
	e, one, n := s.evaluator(), make([]float64, len(cov)), 0
	for i := 0; i < len(s.particles); i += max(1, len(s.particles)/some) {
		s.coords.From(e.m, s.particles[i].u)
		if s.spread(e.m, e, one) {
			n++
			for j, v := range one {
				cov[j] += v
			}
		}
	}
	for j := range cov {
		cov[j] /= float64(max(n, 1))
	}
}

// finish weights the particles by the likelihood with its own covariance.

func (s *cloud) finish() (*Posterior, error) {
	s.relabel()
	post := &Posterior{Draws: make([]Mixture, len(s.particles)), Stages: s.stages, Acceptance: s.acceptance}
	logs := make([]float64, len(s.particles))
	s.evaluate(s.form, func(i int, log float64) { logs[i] = -log })
	s.each(func(e *evaluator, lanes []lane, first int) {
		for i, l := range lanes {
			m := NewMixture(s.coords.K, s.coords.Dim)
			s.coords.From(m, l.trial)
			post.Draws[first+i] = m
			v, err := math.Inf(-1), error(nil)
			if s.spread(m, e, e.cov()) {
				if v, err = gaussianLog(s.observed, e.mean, e.cov()); err != nil {
					v = math.Inf(-1)
				}
			}
			logs[first+i] += v
		}
	})
	post.Weights = normalise(logs)
	post.Size = EffectiveSize(post.Weights)
	return post, nil
}
