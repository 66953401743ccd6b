package graffl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
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
	var last *whitened // the start's density
	for m, stage := near, 0; stage < 3; m, stage = s.best(), stage+1 {
		next, err := s.whitening(m)
		if err != nil {
			return nil, err
		}
		s.temper(last, next)
		last = next
	}
	return s.finish(last)
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

// whitened is a Gaussian likelihood whose covariance C is fixed.
type whitened struct {
	inverse  []float64 // L⁻¹ of C = LLᵀ, rows at their length: packed
	observed []float64 // L⁻¹ y
}

func (s *cloud) whitening(m Mixture) (*whitened, error) {
	n := s.marks.Len()
	mean, cov, err := s.marks.Moments(m)
	if err != nil {
		return nil, err
	}
	spread(s.observed, mean, cov)
	if _, ok := cholesky(cov, n); !ok {
		return nil, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	w := &whitened{inverse: make([]float64, n*(n+1)/2), observed: slices.Clone(s.observed.Mean)}
	forward(cov, n, w.observed)
	e := make([]float64, n)
	for j := range n { // column j of L⁻¹
		clear(e)
		e[j] = 1
		forward(cov, n, e)
		for i := j; i < n; i++ {
			w.inverse[i*(i+1)/2+j] = e[i]
		}
	}
	return w, nil
}

// log returns −½ |L⁻¹ (y − mean)|².
func (w *whitened) log(mean []float64) (s float64) {
	row := w.inverse
	for i, y := range w.observed {
		var a, b, c, d float64
		r, m := row[:i+1], mean[:i+1]
		for ; len(r) >= 4 && len(m) >= 4; r, m = r[4:], m[4:] {
			a += r[0] * m[0]
			b += r[1] * m[1]
			c += r[2] * m[2]
			d += r[3] * m[3]
		}
		for j, v := range r {
			a += v * m[j]
		}
		t := y - (a + b + c + d)
		s -= t * t / 2
		row = row[i+1:]
	}
	return s
}

// particle is a parameter, its log prior density, and its log likelihood by the
// covariance that is left and the one that is gone to.
type particle struct {
	u            []float64
	parts        []float64 // E φ of each component
	starts       []float64 // of each component: see start.over
	prior        float64
	before, then float64
}

// cloud is the state of the sampler.
type cloud struct {
	marks      Landmarks
	observed   Observation
	prior      Prior
	near       Mixture // where the observed density is
	opt        Sampling
	coords     Coordinates
	particles  []particle
	blocks     []block
	stages     int
	step       uint64 // counts sweeps, for their seeds
	scale      []float64
	acceptance float64
}

func newCloud(l Landmarks, o Observation, p Prior, opt Sampling, near Mixture) *cloud {
	s := &cloud{marks: l, observed: o, prior: p, near: near, opt: opt, coords: Coordinates{p.Components(), p.Dim()}, particles: make([]particle, opt.Particles)}
	s.blocks = s.coords.blocks()
	s.scale = make([]float64, len(s.blocks))
	for b := range s.scale {
		s.scale[b] = 1
	}
	s.each(func(e *evaluator, i int, r *rand.Rand) {
		u := make([]float64, s.coords.Len())
		for ok := false; !ok; { // weights may underflow for tiny α
			e.start.Draw(r, e.m)
			ok = s.coords.To(u, e.m) == nil
		}
		s.particles[i] = particle{u: u, parts: make([]float64, len(e.parts)), starts: make([]float64, len(e.starts)), prior: e.prior.LogDensity(u)}
	})
	return s
}

// block is coordinates that move together: the weights, one component, everything.
type block struct {
	coords []int
	of     int // the component; all or none
}

func (c Coordinates) blocks() (blocks []block) {
	index := make([]int, c.Len())
	for i := range index {
		index[i] = i
	}
	for k := range c.K {
		own := slices.Clone(index[c.K-1+k*c.Dim:][:c.Dim])
		blocks = append(blocks, block{append(own, index[c.K-1+c.K*c.Dim+k*c.triangle():][:c.triangle()]...), k})
	}
	if c.K > 1 {
		blocks = append(blocks, block{index[:c.K-1], none}, block{index, all})
	}
	return blocks
}

// evaluator is one goroutine's room.
type evaluator struct {
	prior  *unconstrained
	start  *start
	marks  *moments
	m      Mixture
	parts  []float64 // E φ of each component, its weight left out
	starts []float64
	mean   []float64
}

func (s *cloud) evaluator() *evaluator {
	n, k := s.marks.Len(), s.coords.K
	prior := newUnconstrained(s.prior)
	return &evaluator{prior, newStart(prior, s.near), newMoments(s.marks), NewMixture(k, s.coords.Dim), make([]float64, k*n), make([]float64, k), make([]float64, n)}
}

// all is a block that touches every component, none one that touches no component.
const (
	all  = -1
	none = -2
)

// evaluate writes the parts that a move of a block changes (those of one
// component, all or none), and returns the logarithms that the path goes from and to:
// both are relative to the prior density, which was evaluated at u just before.
func (e *evaluator) evaluate(u []float64, block int, before, then *whitened) (a, b float64) {
	e.prior.From(e.m, u)
	n := len(e.mean)
	clear(e.mean)
	for k, w := range e.m.Weights {
		part := e.parts[k*n:][:n]
		if block == all || block == k {
			if !e.marks.component(e.m, k, part) {
				return math.Inf(-1), math.Inf(-1)
			}
			if before == nil {
				e.starts[k] = e.start.over(u, k)
			}
		}
		for r, v := range part {
			e.mean[r] += w * v
		}
	}
	if before == nil {
		for _, v := range e.starts {
			a += v
		}
	} else {
		a = before.log(e.mean)
	}
	b = then.log(e.mean)
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.Inf(-1), math.Inf(-1)
	}
	return a, b
}

// take makes the parts those of a particle, give gives them to it.
func (e *evaluator) take(p *particle) { copy(e.parts, p.parts); copy(e.starts, p.starts) }
func (e *evaluator) give(p *particle) { copy(p.parts, e.parts); copy(p.starts, e.starts) }

// each runs a function for every particle, each with random numbers of its own, so
// that results do not depend on the number of goroutines.
func (s *cloud) each(f func(e *evaluator, i int, r *rand.Rand)) {
	s.step++
	const workers = 4
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			e, source := s.evaluator(), rand.NewPCG(0, 0)
			r := rand.New(source)
			for i := w; i < len(s.particles); i += workers {
				a := mix(s.opt.Seed + s.step*0x9e3779b97f4a7c15)
				source.Seed(a, mix(a+uint64(i)))
				f(e, i, r)
			}
		})
	}
	wait.Wait()
}

// temper carries the particles from the likelihood before, nil being none, to then,
// along before^(1−β) then^β.
func (s *cloud) temper(before, then *whitened) {
	s.each(func(e *evaluator, i int, _ *rand.Rand) {
		p := &s.particles[i]
		p.prior = e.prior.LogDensity(p.u)
		p.before, p.then = e.evaluate(p.u, all, before, then)
		e.give(p)
	})
	logs := make([]float64, len(s.particles))
	for beta := 0.0; beta < 1; s.stages++ {
		next := s.next(beta, logs)
		for i, p := range s.particles {
			logs[i] = (next - beta) * (p.then - p.before)
		}
		beta = next
		s.resample(logs)
		s.move(beta, before, then)
	}
}

// next returns the largest temperature at which the weights leave half of the
// particles.
func (s *cloud) next(beta float64, logs []float64) float64 {
	enough := func(to float64) bool {
		for i, p := range s.particles {
			logs[i] = (to - beta) * (p.then - p.before)
		}
		return EffectiveSize(normalise(logs)) >= float64(len(logs))/2
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
func (s *cloud) resample(logs []float64) {
	weights := normalise(logs)
	s.step++
	r := rand.New(rand.NewPCG(s.opt.Seed, s.step))
	n := len(weights)
	at, sum := (r.Float64())/float64(n), weights[0]
	chosen := make([]particle, 0, n)
	for i, k := 0, 0; i < n; i++ {
		for sum < at && k < n-1 {
			k++
			sum += weights[k]
		}
		p := s.particles[k]
		p.u, p.parts, p.starts = slices.Clone(p.u), slices.Clone(p.parts), slices.Clone(p.starts)
		chosen = append(chosen, p)
		at += 1 / float64(n)
	}
	s.particles = chosen
}

// best returns the parameter of highest posterior density.
func (s *cloud) best() Mixture {
	m := NewMixture(s.coords.K, s.coords.Dim)
	top := 0
	for i, p := range s.particles {
		if q := &s.particles[top]; p.then+p.prior > q.then+q.prior {
			top = i
		}
	}
	s.coords.From(m, s.particles[top].u)
	return m
}

// relabel gives every particle the order of components closest to a reference.
func (s *cloud) relabel(reference Mixture) {
	if !s.prior.symmetric() || s.coords.K == 1 {
		return
	}
	s.each(func(e *evaluator, i int, _ *rand.Rand) {
		p := &s.particles[i]
		s.coords.From(e.m, p.u)
		order := Match(reference, e.m, s.marks.Bandwidth)
		s.coords.reorder(p.u, order)
		e.take(p)
		n := len(e.mean)
		for k, j := range order {
			p.starts[k] = e.starts[j]
			copy(p.parts[k*n:][:n], e.parts[j*n:])
		}
	})
}

func (c Coordinates) reorder(u []float64, order []int) {
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
		copy(u[covs+k*c.triangle():][:c.triangle()], old[covs+j*c.triangle():])
	}
}

// move moves every particle by Metropolis steps, block by block, along the
// difference of two others (ter Braak 2006), which knows the cloud's shape without
// being told.
func (s *cloud) move(beta float64, before, then *whitened) {
	s.relabel(s.best())
	for range s.opt.Sweeps {
		old := make([][]float64, len(s.particles))
		for i, p := range s.particles {
			old[i] = slices.Clone(p.u)
		}
		accepted := make([]float64, len(s.particles)*len(s.blocks))
		s.each(func(e *evaluator, i int, r *rand.Rand) {
			p := &s.particles[i]
			trial := slices.Clone(p.u)
			e.take(p)
			for b, block := range s.blocks {
				one, two := old[r.IntN(len(old))], old[r.IntN(len(old))]
				g := s.scale[b] * 2.38 / math.Sqrt(2*float64(len(block.coords)))
				for _, c := range block.coords {
					trial[c] = p.u[c] + g*(one[c]-two[c]) + 1e-3*r.NormFloat64()*g
				}
				prior := e.prior.LogDensity(trial)
				ratio := prior - p.prior
				var left, right float64
				if !math.IsInf(prior, -1) {
					left, right = e.evaluate(trial, block.of, before, then)
					ratio += (1-beta)*(left-p.before) + beta*(right-p.then)
				}
				if math.Log(r.Float64()) < ratio {
					p.prior, p.before, p.then = prior, left, right
					for _, c := range block.coords {
						p.u[c] = trial[c]
					}
					e.give(p)
					accepted[i*len(s.blocks)+b] = 1
				} else {
					for _, c := range block.coords {
						trial[c] = p.u[c]
					}
					e.take(p)
				}
			}
			s.renewComponent(e, p, trial, r, beta, before, then)
		})
		s.acceptance = 0
		for b := range s.blocks {
			rate := 0.0
			for i := range s.particles {
				rate += accepted[i*len(s.blocks)+b] / float64(len(s.particles))
			}
			s.acceptance += rate / float64(len(s.blocks))
			s.scale[b] = min(max(s.scale[b]*math.Exp(rate-0.25), 0.05), 2)
		}
	}
}

// renewComponent offers a particle a component drawn anew from the start's density, by
// a Metropolis step whose prior densities cancel: it is how a particle that lacks a
// mode, or has one twice, finds it.
func (s *cloud) renewComponent(e *evaluator, p *particle, trial []float64, r *rand.Rand, beta float64, before, then *whitened) {
	k := r.IntN(s.coords.K)
	e.prior.LogDensity(p.u)
	old := e.start.over(p.u, k)
	mean, cov := e.m.Mean(k), e.m.Cov(k)
	e.start.component(r, mean, cov)
	if _, ok := cholesky(cov, s.coords.Dim); !ok {
		return
	}
	s.coords.put(trial, k, mean, cov)
	prior := e.prior.LogDensity(trial)
	if math.IsInf(prior, -1) {
		return
	}
	fresh := e.start.over(trial, k)
	left, right := e.evaluate(trial, k, before, then)
	if math.Log(r.Float64()) < (1-beta)*(left-p.before)+beta*(right-p.then)+old-fresh {
		p.prior, p.before, p.then = prior, left, right
		copy(p.u, trial)
		e.give(p)
	}
}

// finish weights the particles by the likelihood with its own covariance.
func (s *cloud) finish(fixed *whitened) (*Posterior, error) {
	s.relabel(s.best())
	post := &Posterior{Draws: make([]Mixture, len(s.particles)), Stages: s.stages, Acceptance: s.acceptance}
	logs := make([]float64, len(s.particles))
	s.each(func(e *evaluator, i int, _ *rand.Rand) {
		m := NewMixture(s.coords.K, s.coords.Dim)
		s.coords.From(m, s.particles[i].u)
		post.Draws[i] = m
		logs[i] = math.Inf(-1)
		n := len(e.mean)
		cov := make([]float64, n*n)
		if e.marks.mean(m, e.mean) && e.marks.covariance(m, e.mean, cov) {
			if v, err := gaussianLog(s.observed, e.mean, cov); err == nil {
				logs[i] = v - fixed.log(e.mean)
			}
		}
	})
	post.Weights = normalise(logs)
	post.Size = EffectiveSize(post.Weights)
	return post, nil
}
