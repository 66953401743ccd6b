package graffl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"parley/methods/graffl/mixture"
)

// Sampling says how a posterior is sampled.
type Sampling struct {
	Particles int    `json:"particles" cbor:"particles"` // 64 to 65536
	Sweeps    int    `json:"sweeps" cbor:"sweeps"`       // moves of every block after each resampling, ≥ 1
	Seed      uint64 `json:"seed" cbor:"seed"`
}

// DefaultSampling is what the toy's coverage and calibration were measured with; what it
// costs, BenchmarkPosterior says.
func DefaultSampling(seed uint64) Sampling { return Sampling{384, 2, seed} }

// Check reports what is wrong with the choices.
func (s Sampling) Check() error {
	if s.Particles < 64 || s.Particles > 1<<16 || s.Sweeps < 1 || s.Sweeps > 1000 {
		return fmt.Errorf("sampling with %d particles and %d sweeps: want 64 to 65536 particles and 1 to 1000 sweeps", s.Particles, s.Sweeps)
	}
	return nil
}

// Posterior samples p(θ | observed means) by sequential Monte Carlo from the prior
// (Del Moral, Doucet and Jasra 2006), on the synthetic likelihood of
// [Landmarks.LogLikelihood]. Temperatures adapt so that half of the particles'
// weight survives each step. As the covariance of the means hardly changes where
// the posterior is, the way down holds it fixed, at first at a guess from the observed
// means, then at its average over particles, until that moves no more. Its true value is
// put in at the end, by weights, or step by step if these would leave less than half.
//
// Components are matched to the best particle if the prior does not tell them
// apart, and then numbered by their mean weight, the largest first. No site is asked
// anything, and no privacy is spent: all this is post-processing of what was released.
func (l Landmarks) Posterior(o Observation, p mixture.Prior, opt Sampling) (*mixture.Posterior, error) {
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
	o = rough(o)
	near := l.guess(o)
	s := newCloud(l, o, p, opt, near)
	cov := make([]float64, l.Len()*l.Len())
	guess := s.evaluator()
	guess.m = near
	if !guess.spread(cov) {
		return nil, fmt.Errorf("the covariance of a first guess is not positive definite")
	}
	var last *precision // the start's density
	for stage := 0; ; stage++ {
		next, err := newPrecision(o.Mean, cov)
		if err != nil {
			return nil, err
		}
		if err := s.temper(last, next); err != nil {
			return nil, err
		}
		last = next
		if near := s.typical(cov); near && stage > 0 || stage == maxRefits {
			break
		}
	}
	s.spreadOut(lastSweeps * opt.Sweeps)
	return s.finish(), nil
}

// maxRefits bounds how often the covariance is put where the particles are.
const maxRefits = 3

// spreadOut moves particles until what they were tells nothing of what they are: resampling
// has left few ancestors, which show for as long as moves are slow. Where components
// are apart two or three rounds are enough; where they overlap, or are out of sight, many are
// needed.
func (s *cloud) spreadOut(sweeps int) {
	first := s.traits()
	for range lastRounds {
		s.move(target{form: s.form}, sweeps)
		now, forgotten := s.traits(), true
		for i := range first {
			// A trait that all have in common, as the weight of one component, has none.
			forgotten = forgotten && !(math.Abs(stat.Correlation(first[i], now[i], nil)) >= remembered)
		}
		if forgotten {
			return
		}
	}
}

// traits of every particle: its largest weight, its densities.
func (s *cloud) traits() (t [3][]float64) {
	for _, p := range s.particles {
		t[0] = append(t[0], slices.Max(p.weights))
		t[1] = append(t[1], p.prior())
		t[2] = append(t[2], p.log)
	}
	return t
}

const (
	lastSweeps = 4    // times as many sweeps make a round as follow a resampling
	lastRounds = 24   // at most
	remembered = 0.15 // is a correlation, of which chance makes 0.05 for 384 particles
)

// guess is a mixture near the observed density: a component at every landmark that
// stands out of the noise.
func (l Landmarks) guess(o Observation) mixture.Mixture {
	order := make([]int, l.Len())
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.Mean[b], o.Mean[a]) })
	n := min(len(order), 48)
	floor := max(2*math.Sqrt(o.NoiseVar), o.Mean[order[0]]/100)
	for n > 1 && o.Mean[order[n-1]] < floor {
		n--
	}
	m, sum := mixture.NewMixture(n, l.Dim), 0.0
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

// typical writes the mean covariance of the observed means over some particles, those
// counting more that the likelihood with its own covariance prefers to the form. It
// reports whether these preferences leave the particles' better half.
func (s *cloud) typical(cov []float64) (near bool) {
	const some = 64
	stride := max(1, len(s.particles)/some)
	gains := make([]float64, (len(s.particles)+stride-1)/stride)
	var wait sync.WaitGroup
	for w, e := range s.workers {
		wait.Go(func() {
			for i := w; i < len(gains); i += workers {
				p := &s.particles[i*stride]
				gains[i] = e.gain(p.u, p.log)
			}
		})
	}
	wait.Wait()
	e := s.workers[0]
	weights := make([]float64, len(gains))
	share := further(0, gains, weights)
	for i, v := range gains {
		weights[i] = share * v
	}
	normalise(weights)
	clear(cov)
	for i, w := range weights {
		e.prior.From(e.m, s.particles[i*stride].u)
		if e.spread(e.cov()) {
			for j, v := range e.cov() {
				cov[j] += w * v
			}
		}
	}
	return share == 1
}

// finish goes from the form to the likelihood with its own covariance: by weights alone
// if these leave half of the particles, otherwise step by step.
func (s *cloud) finish() *mixture.Posterior {
	gains, logs := make([]float64, len(s.particles)), make([]float64, len(s.particles))
	s.each(func(e *evaluator, lanes []lane, _ int) {
		for _, l := range lanes {
			l.particle.gain = e.gain(l.trial.u, l.particle.log)
		}
	})
	for share, step := 0.0, 0; share < 1; step++ {
		for i, p := range s.particles {
			gains[i] = p.gain
		}
		to := further(share, gains, logs)
		if step == maxSteps {
			to = 1
		}
		for i, v := range gains {
			logs[i] = (to - share) * v
		}
		if share = to; share < 1 {
			s.resample(logs)
			s.move(target{form: s.form, share: share}, dearSweeps)
			s.stages++
		}
	}
	s.relabel()
	post := &mixture.Posterior{Weights: normalise(logs), Stages: s.stages, Acceptance: s.acceptance}
	for _, p := range s.particles {
		m := mixture.NewMixture(s.coords.K, s.coords.Dim)
		s.coords.From(m, p.u)
		post.Draws = append(post.Draws, m)
	}
	post.Size = mixture.EffectiveSize(post.Weights)
	if s.prior.Symmetric() {
		post.LargestFirst()
	}
	return post
}

// dearSweeps is how many moves follow each of finish's steps, where a move that is taken
// costs a covariance.
const dearSweeps = 2

// maxSteps bounds the time that finish takes: then weights do the rest, and the effective
// size says so.
const maxSteps = 12
