package sketch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"parley/methods/mixture/gmm"
)

// Posterior samples p(θ | observed means) by sequential Monte Carlo from the prior
// (Del Moral, Doucet and Jasra 2006), on the synthetic likelihood of
// [Landmarks.LogLikelihood]. Temperatures adapt so that the effective sample size of each
// step is half of the particles. As the covariance of the means hardly changes where the
// posterior is, tempering holds it fixed, at first at a guess from the observed means, then
// at its average over particles, until that moves no more. Each particle's own is put in at
// the end, by importance weights, or by tempering if these would leave an effective sample
// size of less than half. Between, particles are rejuvenated by Metropolis moves.
//
// Components are matched to the best particle if the prior does not tell them
// apart, and then numbered by their mean weight, the largest first. No site is asked
// anything, and no privacy is spent: all this is post-processing of what was released.
func (l Landmarks) Posterior(o Observation, p gmm.Prior, opt Sampling) (*gmm.Posterior, error) {
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
	o = regularised(o)
	near := l.initialGuess(o)
	s := newSampler(l, o, p, opt, near)
	cov := make([]float64, l.Len()*l.Len())
	guess := s.evaluator()
	guess.m = near
	if !guess.spread(cov) {
		return nil, fmt.Errorf("the covariance of a first guess is not positive definite")
	}
	var last *precision // the initial density
	for stage := 0; ; stage++ {
		next, err := newPrecision(o.Mean, cov)
		if err != nil {
			return nil, err
		}
		if err := s.temper(last, next); err != nil {
			return nil, err
		}
		last = next
		if near := s.meanCovariance(cov); near && stage > 0 || stage == maxRefits {
			break
		}
	}
	s.rejuvenate(rejuvenationSweeps * opt.Sweeps)
	return s.finish(), nil
}

// maxRefits bounds how often the covariance is put where the particles are.
const maxRefits = 3

// rejuvenate moves particles until the sample has mixed: until no summary of a particle
// correlates with what it was before. Resampling leaves few ancestors, which show for as
// long as moves are slow. Where components are apart two or three rounds are enough; where
// they overlap, or lie outside the landmarks, many are needed.
func (s *landmarkSampler) rejuvenate(sweeps int) {
	first := s.summaries()
	for range maxRejuvenations {
		s.move(target{form: s.form}, sweeps)
		now, mixed := s.summaries(), true
		for i := range first {
			// A constant summary, as the weight of an only component, has no correlation.
			mixed = mixed && !(math.Abs(stat.Correlation(first[i], now[i], nil)) >= mixedCorrelation)
		}
		if mixed {
			return
		}
	}
}

// summaries of every particle: its largest weight, its densities.
func (s *landmarkSampler) summaries() (t [3][]float64) {
	for _, p := range s.particles {
		t[0] = append(t[0], slices.Max(p.weights))
		t[1] = append(t[1], p.prior())
		t[2] = append(t[2], p.log)
	}
	return t
}

const (
	rejuvenationSweeps = 4    // times as many sweeps make a round as follow a resampling
	maxRejuvenations   = 24   // at most
	mixedCorrelation   = 0.15 // below which a correlation counts as none; chance makes 0.05 for 384 particles
)

// initialGuess is a mixture near the observed density: a component at every landmark that
// stands out of the noise.
func (l Landmarks) initialGuess(o Observation) gmm.Mixture {
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
	m, sum := gmm.NewMixture(n, l.Dim), 0.0
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

// meanCovariance writes the covariance of the observed means, averaged over some particles
// with importance weights: the likelihood with its own covariance over that with the one
// held fixed, tempered to an effective sample size of half of them. It reports whether no
// tempering was needed: then the fixed covariance is near enough.
func (s *landmarkSampler) meanCovariance(cov []float64) (near bool) {
	const some = 64
	stride := max(1, len(s.particles)/some)
	corrections := make([]float64, (len(s.particles)+stride-1)/stride)
	var wait sync.WaitGroup
	for w, e := range s.workers {
		wait.Go(func() {
			for i := w; i < len(corrections); i += workers {
				p := &s.particles[i*stride]
				corrections[i] = e.correction(p.u, p.log)
			}
		})
	}
	wait.Wait()
	e := s.workers[0]
	weights := make([]float64, len(corrections))
	share := nextTemperature(0, corrections, weights)
	for i, v := range corrections {
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

// finish goes from the fixed covariance to the likelihood with its own: by importance
// weights alone if their effective sample size is at least half of the particles, otherwise
// by tempering.
func (s *landmarkSampler) finish() *gmm.Posterior {
	corrections, logs := make([]float64, len(s.particles)), make([]float64, len(s.particles))
	s.each(func(e *evaluator, chains []chain, _ int) {
		for _, l := range chains {
			l.particle.correction = e.correction(l.trial.u, l.particle.log)
		}
	})
	for share, step := 0.0, 0; share < 1; step++ {
		for i, p := range s.particles {
			corrections[i] = p.correction
		}
		to := nextTemperature(share, corrections, logs)
		if step == maxFinishSteps {
			to = 1
		}
		for i, v := range corrections {
			logs[i] = (to - share) * v
		}
		if share = to; share < 1 {
			s.resample(logs)
			s.move(target{form: s.form, corrected: share}, finishSweeps)
			s.stages++
		}
	}
	s.relabel()
	post := &gmm.Posterior{Weights: normalise(logs), Stages: s.stages, Acceptance: s.acceptance}
	for _, p := range s.particles {
		m := gmm.NewMixture(s.coords.K, s.coords.Dim)
		s.coords.From(m, p.u)
		post.Draws = append(post.Draws, m)
	}
	post.Size = gmm.EffectiveSize(post.Weights)
	if s.prior.Symmetric() {
		post.LargestFirst()
	}
	return post
}

// finishSweeps is how many sweeps follow each of finish's steps: fewer than elsewhere, as
// each move that the fixed covariance accepts then costs a covariance of its own.
const finishSweeps = 2

// maxFinishSteps bounds the time that finish takes: then weights do the rest, and the effective
// sample size says so.
const maxFinishSteps = 12
