package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"parley/methods/mixture/gmm"
)

// particle is a parameter, its log likelihood under a fixed covariance (see form), and the
// log correction to that with its own covariance: see target.
type landmarkParticle struct {
	parameter
	log        float64
	correction float64
}

// parameter is coordinates, and what follows from them component by component, so that a
// move works out anew what it changes alone.
type parameter struct {
	u         []float64
	weights   []float64
	densities []float64 // ln prior density of each component, and of the weights
	means     []float64 // E φ of each component
	visible   []float64 // and its sum: the visible mass per weight
	initial   []float64 // of each component, while they matter: see mixture.Initial.LogRatio
}

func newParameter(c gmm.Coordinates, landmarks int) parameter {
	return parameter{make([]float64, c.Len()), make([]float64, c.K), make([]float64, c.K+1), make([]float64, c.K*landmarks), make([]float64, c.K), make([]float64, c.K)}
}

// set copies what can differ if a component was touched, or all or none.
func (p *parameter) set(q *parameter, touched int) {
	copy(p.u, q.u)
	copy(p.weights, q.weights)
	copy(p.densities, q.densities)
	copy(p.visible, q.visible)
	copy(p.initial, q.initial)
	n := len(p.means) / len(p.initial)
	switch {
	case touched == gmm.All:
		copy(p.means, q.means)
	case touched != gmm.None:
		copy(p.means[touched*n:][:n], q.means[touched*n:][:n])
	}
}

// prior is the log prior density.
func (p *parameter) prior() (s float64) {
	for _, v := range p.densities {
		s += v
	}
	return s
}

// sampler is the state of the sequential Monte Carlo sampler.
type landmarkSampler struct {
	marks      Landmarks
	overlaps   *overlaps
	observed   Observation
	prior      gmm.Prior
	near       gmm.Mixture // where the observed density is
	opt        Sampling
	coords     gmm.Coordinates
	particles  []landmarkParticle
	spare      []landmarkParticle // memory for the next ones
	old        []float64          // coordinates of all, before a sweep
	workers    []*evaluator
	blocks     []gmm.Block
	form       *form // what particles were last moved under
	stages     int
	step       uint64 // counts sweeps, for their seeds
	scale      []float64
	acceptance float64
}

// Particles are divided among so many goroutines, whatever the machine has.
const workers = 4

func newSampler(l Landmarks, o Observation, p gmm.Prior, opt Sampling, near gmm.Mixture) *landmarkSampler {
	s := &landmarkSampler{marks: l, overlaps: newOverlaps(l), observed: o, prior: p, near: near, opt: opt, coords: gmm.Coordinates{K: p.Components(), Dim: p.Dim()}}
	s.blocks = s.coords.Blocks()
	s.scale = make([]float64, len(s.blocks))
	for b := range s.scale {
		s.scale[b] = 1
	}
	for range workers {
		s.workers = append(s.workers, s.evaluator())
	}
	size := s.coords.Len()
	s.old = make([]float64, opt.Particles*size)
	room := func() []landmarkParticle {
		all := make([]landmarkParticle, opt.Particles)
		for i := range all {
			all[i].parameter = newParameter(s.coords, l.Len())
		}
		return all
	}
	s.particles, s.spare = room(), room()
	s.each(func(e *evaluator, chains []chain, _ int) {
		for i := range chains {
			l := &chains[i]
			for ok := false; !ok; { // weights may underflow for tiny α
				e.initial.Draw(l.random, e.m)
				ok = s.coords.To(l.trial.u, e.m) == nil
			}
			e.propose(l, target{initialPower: 1}, gmm.All, true, gmm.None)
			l.particle.set(&l.trial, gmm.All)
		}
	})
	return s
}

// evaluator is one goroutine's workspace.
type evaluator struct {
	prior    *gmm.Unconstrained
	initial  *gmm.Initial
	division *division
	marks    *moments
	overlaps *overlaps
	observed Observation
	m        gmm.Mixture
	mean     []float64
	columns  []float64 // differences of observed and expected means, a column for each chain
	products []float64
	chains   [chainCount]chain
	square   []float64 // a covariance, and memory for its factor; made when first used
	wide     *gmm.Blocked
}

func (s *landmarkSampler) evaluator() *evaluator {
	n, k := s.marks.Len(), s.coords.K
	prior := gmm.NewUnconstrained(s.prior)
	e := &evaluator{prior: prior, initial: gmm.NewInitial(prior, s.near), division: newDivision(s.coords.Dim), marks: newMoments(s.marks), overlaps: s.overlaps, observed: s.observed, m: gmm.NewMixture(k, s.coords.Dim),
		mean: make([]float64, n), columns: make([]float64, n*chainCount), products: make([]float64, n*chainCount)}
	for i := range e.chains {
		source := rand.NewPCG(0, 0)
		e.chains[i] = chain{source: source, random: rand.New(source), trial: newParameter(s.coords, n)}
	}
	return e
}

func (e *evaluator) cov() []float64 {
	if e.square == nil {
		e.square, e.wide = make([]float64, len(e.mean)*len(e.mean)), gmm.NewBlocked(len(e.mean))
	}
	return e.square
}

// spread writes the lower triangle of the covariance of the observed means under e.m, and
// leaves their expectation in e.mean.
func (e *evaluator) spread(cov []float64) bool {
	if !e.marks.mean(e.m, e.mean) || !e.marks.covariance(e.m, e.overlaps, e.mean, cov) {
		return false
	}
	spread(e.observed, e.mean, cov)
	return true
}

// correction returns the log likelihood of u with its own covariance, less that by a form.
func (e *evaluator) correction(u []float64, form float64) float64 {
	e.prior.From(e.m, u)
	if !e.spread(e.cov()) {
		return math.Inf(-1)
	}
	v, ok := gaussianLog(e.observed, e.mean, e.cov(), e.wide)
	if !ok {
		return math.Inf(-1)
	}
	return v - form
}

// add writes E φ, given those of components.
func (e *evaluator) add(p *parameter) {
	n := len(e.mean)
	clear(e.mean)
	for k, w := range p.weights {
		for r, v := range p.means[k*n:][:n] {
			e.mean[r] += w * v
		}
	}
}

// each runs a function for all particles, some at a time, each with random numbers of
// its own, so that results do not depend on the number of goroutines.
func (s *landmarkSampler) each(f func(e *evaluator, chains []chain, first int)) {
	s.step++
	var wait sync.WaitGroup
	for w, e := range s.workers {
		wait.Go(func() {
			for first := w * chainCount; first < len(s.particles); first += workers * chainCount {
				some := e.chains[:min(chainCount, len(s.particles)-first)]
				for i := range some {
					a := gmm.SplitMix(s.opt.Seed + s.step*0x9e3779b97f4a7c15)
					some[i].source.Seed(a, gmm.SplitMix(a+uint64(first+i)))
					some[i].particle = &s.particles[first+i]
					some[i].trial.set(&some[i].particle.parameter, gmm.All)
				}
				f(e, some, first)
			}
		})
	}
	wait.Wait()
}

// evaluate hands the logarithm of a form over for every particle.
func (s *landmarkSampler) evaluate(f *form, take func(i int, log float64)) {
	s.each(func(e *evaluator, chains []chain, first int) {
		for i := range chains {
			e.add(&chains[i].trial)
			f.fill(e.columns, i, e.mean)
		}
		logs := f.logs(e.columns, e.products)
		for i := range chains {
			take(first+i, logs[i])
		}
	})
}

// maxTemperatures bounds the time that a likelihood takes which no parameter comes near, as
// what a hostile site may send: the last step is then as large as it must be. Honest sums
// over 10⁹ rows take 78 in all.
const maxTemperatures = 128

// temper carries the particles from the likelihood before, nil being none, to then,
// along before^(1−β) then^β.
func (s *landmarkSampler) temper(before, then *precision) error {
	goal, err := geometricPath(nil, then, 1)
	if err != nil {
		return err
	}
	from := goal
	if before != nil {
		if from, err = geometricPath(nil, before, 1); err != nil {
			return err
		}
	}
	logs := make([]float64, len(s.particles))
	steps := make([]float64, len(s.particles)) // logarithms of what is gone to over what is gone from
	for beta, step := 0.0, 0; beta < 1; s.stages++ {
		s.evaluate(goal, func(i int, log float64) { steps[i] = log })
		if before == nil {
			for i, p := range s.particles {
				for _, v := range p.initial {
					steps[i] -= v
				}
			}
		} else {
			s.evaluate(from, func(i int, log float64) { steps[i] -= log })
		}
		to := nextTemperature(beta, steps, logs)
		if step++; step == maxTemperatures {
			to = 1
		}
		for i, v := range steps {
			logs[i] = (to - beta) * v
		}
		beta = to
		s.resample(logs)
		if s.form, err = geometricPath(before, then, beta); err != nil {
			return err
		}
		t := target{form: s.form}
		if before == nil {
			t.initialPower = 1 - beta
		}
		s.move(t, s.opt.Sweeps)
	}
	return nil
}

// nextTemperature returns the largest inverse temperature above β, up to 1, at which importance
// weights, whose logarithms grow by steps, have an effective sample size of at least half of
// the particles. It overwrites logs.
func nextTemperature(beta float64, steps, logs []float64) float64 {
	enough := func(to float64) bool {
		for i, v := range steps {
			logs[i] = (to - beta) * v
		}
		return gmm.EffectiveSize(normalise(logs)) >= float64(len(logs))/2
	}
	if enough(1) {
		return 1
	}
	lo, hi := beta, 1.0
	for range 50 {
		if mid := (lo + hi) / 2; enough(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi // above lo, so that there is an end
}

// normalise turns logarithms of weights into weights of sum 1, in place.
func normalise(logs []float64) []float64 {
	top := slices.Max(logs)
	sum := 0.0
	for i, v := range logs {
		if math.IsInf(top, -1) || math.IsNaN(top) {
			logs[i] = 1
		} else {
			logs[i] = math.Exp(v - top)
		}
		sum += logs[i]
	}
	for i := range logs {
		logs[i] /= sum
	}
	return logs
}

// resample draws particles in proportion to weights, systematically.
func (s *landmarkSampler) resample(logs []float64) {
	weights := normalise(logs)
	s.step++
	r := rand.New(rand.NewPCG(s.opt.Seed, s.step))
	n := len(weights)
	at, sum := r.Float64()/float64(n), weights[0]
	for i, k := 0, 0; i < n; i++ {
		for sum < at && k < n-1 {
			k++
			sum += weights[k]
		}
		s.spare[i].set(&s.particles[k].parameter, gmm.All)
		s.spare[i].log, s.spare[i].correction = s.particles[k].log, s.particles[k].correction
		at += 1 / float64(n)
	}
	s.particles, s.spare = s.spare, s.particles
}

// relabel gives every particle the order of components closest to one of the particles,
// that of highest density.
func (s *landmarkSampler) relabel() {
	if !s.prior.Symmetric() || s.coords.K == 1 {
		return
	}
	top := 0
	for i, p := range s.particles {
		if q := &s.particles[top]; p.log+p.prior() > q.log+q.prior() {
			top = i
		}
	}
	reference := gmm.NewMixture(s.coords.K, s.coords.Dim)
	s.coords.From(reference, s.particles[top].u)
	s.each(func(e *evaluator, chains []chain, _ int) {
		for _, l := range chains {
			p := l.particle
			s.coords.From(e.m, p.u)
			order := gmm.Match(reference, e.m, s.marks.Bandwidth)
			s.coords.Reorder(p.u, order)
			n := len(e.mean)
			for k, j := range order {
				q := &l.trial
				p.weights[k], p.densities[k], p.visible[k], p.initial[k] = q.weights[j], q.densities[j], q.visible[j], q.initial[j]
				copy(p.means[k*n:][:n], l.trial.means[j*n:])
			}
		}
	})
}

// Sampling says how a posterior is sampled.
type Sampling struct {
	Particles int    `json:"particles" cbor:"particles"` // 64 to 65536
	Sweeps    int    `json:"sweeps" cbor:"sweeps"`       // moves of every block after each resampling, ≥ 1
	Seed      uint64 `json:"seed" cbor:"seed"`
	// Widths says that Ψ of the prior follows from the fit: where sums can tell how wide components are.
	Widths bool `json:"widths,omitempty" cbor:"widths,omitempty"`
}

// DefaultSampling is what the toy's coverage and calibration were measured with; what it
// costs, BenchmarkPosterior says.
func DefaultSampling(seed uint64) Sampling { return Sampling{Particles: 384, Sweeps: 2, Seed: seed} }

// Check reports what is wrong with the choices.
func (s Sampling) Check() error {
	if s.Particles < 64 || s.Particles > 1<<16 || s.Sweeps < 1 || s.Sweeps > 1000 {
		return fmt.Errorf("sampling with %d particles and %d sweeps: want 64 to 65536 particles and 1 to 1000 sweeps", s.Particles, s.Sweeps)
	}
	return nil
}
