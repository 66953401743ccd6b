package sketch

import (
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// target is the density that particles move under: prior · initial^initialPower · form ·
// correction^corrected. The correction is the likelihood with its own covariance over the
// form, which holds the covariance fixed. It costs a covariance, so that it is evaluated by
// delayed acceptance (Christen and Fox 2005): only for moves that the rest has accepted, and
// not at all where the exponent corrected is zero.
type target struct {
	form         *form
	initialPower float64 // of the initial density over the prior
	corrected    float64
}

// chain is one of the particles that a goroutine moves in step, so that the products
// of all of them are one of matrices.
type chain struct {
	particle    *landmarkParticle
	random      *rand.Rand
	source      *rand.PCG
	trial       parameter // the particle's, and what is proposed
	touches     int       // the block of the proposal
	fresh       bool      // its component was drawn from the initial density
	logHastings float64   // ln of the Hastings ratio's factors beside the densities
	prior       float64   // of the trial; −Inf where it is impossible
}

// propose evaluates what a trial changes. With a partner the touched component's weight
// makes up for what changes of its visible mass: see compensate.
func (e *evaluator) propose(l *chain, t target, touches int, fresh bool, partner int) {
	l.touches, l.fresh, l.prior = touches, fresh, math.Inf(-1)
	for k := range l.trial.weights {
		if (touches == gmm.All || touches == k) && !e.evaluateComponent(l, t, k, fresh) {
			return
		}
	}
	if partner == gmm.None || e.compensate(l, touches, partner) {
		e.evaluateWeights(l)
	}
}

// evaluateComponent evaluates component k of a trial. It reports false where that is impossible.
func (e *evaluator) evaluateComponent(l *chain, t target, k int, fresh bool) bool {
	p, n := &l.trial, len(e.mean)
	p.densities[k] = e.prior.LogComponent(p.u, k)
	if math.IsNaN(p.densities[k]) || math.IsInf(p.densities[k], -1) {
		return false
	}
	e.prior.Component(e.m, p.u, k)
	part := p.means[k*n:][:n]
	if !e.marks.component(e.m, k, part) {
		return false
	}
	p.visible[k] = gmm.Sum(part)
	if fresh || t.initialPower > 0 {
		p.initial[k] = e.initial.LogRatio(p.u, k)
	}
	return true
}

// evaluateWeights evaluates the weights of a trial, whose components are, and so its prior.
func (e *evaluator) evaluateWeights(l *chain) bool {
	p := &l.trial
	e.prior.Weights(p.weights, p.u)
	p.densities[len(p.weights)] = e.prior.LogWeights(p.weights)
	prior := p.prior()
	if math.IsNaN(prior) {
		return false
	}
	l.prior = prior
	return true
}

// compensate keeps the visible mass of component k, its weight times the sum of its E φ, by
// weight that it takes from component j or gives to it. Where a component is mostly beyond the
// landmarks, its distance and its weight are known together only: without this, a
// particle hardly moves along. With v the share of k in the weight of both, and
// v′ = ρv, its logit's derivative is (1 − v)/(1 − v′). It reports false where j has not enough.
func (e *evaluator) compensate(l *chain, k, j int) bool {
	weights := l.trial.weights // still those of the particle
	least := 1 / e.observed.Rows
	both := weights[k] + weights[j]
	v := weights[k] / both
	to := v * (least + l.particle.visible[k]) / (least + l.trial.visible[k])
	if !(to > 0 && to < 1 && v < 1) {
		return false
	}
	l.logHastings = math.Log((1 - v) / (1 - to))
	weights[k], weights[j] = both*to, both*(1-to)
	return e.prior.Logits(l.trial.u, weights)
}

// metropolis takes the trials by Metropolis steps, and reports for each whether it was.
func (e *evaluator) metropolis(chains []chain, t target, accepted func(chain int)) {
	for i := range chains {
		if l := &chains[i]; !math.IsInf(l.prior, -1) {
			e.add(&l.trial)
			t.form.fill(e.columns, i, e.mean)
		}
	}
	logs := t.form.logs(e.columns, e.products)
	for i := range chains {
		l := &chains[i]
		p := l.particle
		ratio := 0.0
		for k, v := range l.trial.initial {
			ratio += v - p.initial[k]
		}
		if l.fresh { // the initial density is prior · exp(start)
			ratio = (t.initialPower-1)*ratio + l.logHastings
		} else {
			ratio = l.prior - p.prior() + t.initialPower*ratio + l.logHastings
		}
		accept := !math.IsInf(l.prior, -1) && math.Log(l.random.Float64()) < ratio+logs[i]-p.log
		correction := p.correction
		if accept && t.corrected > 0 {
			correction = e.correction(l.trial.u, logs[i])
			accept = math.Log(l.random.Float64()) < t.corrected*(correction-p.correction)
		}
		if !accept {
			l.trial.set(&p.parameter, l.touches)
			continue
		}
		p.set(&l.trial, l.touches)
		p.log, p.correction = logs[i], correction
		accepted(i)
	}
}

// move moves every particle by Metropolis steps, block by block, along the
// difference of two others (ter Braak 2006), which has the scale and the direction of the
// particles' own spread.
func (s *landmarkSampler) move(t target, sweeps int) {
	s.evaluate(t.form, func(i int, log float64) { s.particles[i].log = log })
	s.relabel()
	size := s.coords.Len()
	accepted := make([]bool, len(s.particles)*len(s.blocks))
	for sweep := range sweeps {
		for i, p := range s.particles {
			copy(s.old[i*size:], p.u)
		}
		clear(accepted)
		blocks := s.blocks
		if n := len(blocks); blocks[n-1].Component == gmm.All && sweep%2 == 1 {
			blocks = blocks[:n-1] // it costs as much as the others together
		}
		s.each(func(e *evaluator, chains []chain, first int) {
			for b, block := range blocks {
				for i := range chains {
					l := &chains[i]
					s.proposeDifference(l, block, s.scale[b])
					partner := gmm.None
					if block.Component >= 0 && s.coords.K > 1 {
						partner = l.another(block.Component, s.coords.K)
					}
					e.propose(l, t, block.Component, false, partner)
				}
				e.metropolis(chains, t, func(i int) { accepted[(first+i)*len(s.blocks)+b] = true })
			}
			for _, trade := range []bool{false, true} {
				for i := range chains {
					s.proposeFresh(e, &chains[i], t, trade)
				}
				e.metropolis(chains, t, func(int) {})
			}
			if s.coords.K > 1 {
				for i := range chains {
					s.splitOrMerge(e, &chains[i], t)
				}
				e.metropolis(chains, t, func(int) {})
			}
		})
		s.acceptance = 0
		for b := range blocks {
			rate := 0.0
			for i := range s.particles {
				if accepted[i*len(s.blocks)+b] {
					rate += 1 / float64(len(s.particles))
				}
			}
			s.acceptance += rate / float64(len(blocks))
			s.scale[b] = min(max(s.scale[b]*math.Exp(rate-0.25), 0.05), 2)
		}
	}
}

// proposeDifference moves a trial along the difference of two particles; now and then by all
// of it, which leads from one mode to another.
func (s *landmarkSampler) proposeDifference(l *chain, b gmm.Block, scale float64) {
	l.logHastings = 0
	r, size := l.random, s.coords.Len()
	one, two := s.old[r.IntN(len(s.particles))*size:][:size], s.old[r.IntN(len(s.particles))*size:][:size]
	g := scale * 2.38 / math.Sqrt(2*float64(len(b.Coords)))
	if r.IntN(10) == 0 {
		g = 1
	}
	for _, c := range b.Coords {
		l.trial.u[c] += g*(one[c]-two[c]) + 1e-3*r.NormFloat64()*g
	}
}

// proposeFresh proposes a component drawn anew from the initial density: it is how a particle
// that lacks a mode, or has one twice, finds it. As modes differ in size, the
// component may trade weight with another one.
func (s *landmarkSampler) proposeFresh(e *evaluator, l *chain, t target, trade bool) {
	k, p := l.random.IntN(s.coords.K), &l.trial
	if t.initialPower == 0 { // then it is not kept up to date
		e.prior.LogComponent(p.u, k)
		p.initial[k] = e.initial.LogRatio(p.u, k)
		l.particle.initial[k] = p.initial[k]
	}
	l.touches, l.prior, l.logHastings = gmm.None, math.Inf(-1), 0
	if trade && (s.coords.K == 1 || !s.redistribute(l, k)) {
		return
	}
	mean, cov := e.m.Mean(k), e.m.Cov(k)
	e.initial.Component(l.random, mean, cov)
	if _, ok := gmm.Cholesky(cov, s.coords.Dim); ok {
		s.coords.Put(p.u, k, mean, cov)
		e.propose(l, t, k, true, gmm.None)
	}
}

// shareExponent is the exponent of the shares that are proposed: vᵃ⁻¹ prefers small ones.
const shareExponent = 0.25

// redistribute divides the weight of component k and of another one anew: k gets a share v of
// density a vᵃ⁻¹. It reports false where nothing would be left.
func (s *landmarkSampler) redistribute(l *chain, k int) bool {
	weights := l.trial.weights
	j := l.another(k, s.coords.K)
	both := weights[k] + weights[j]
	old, v := weights[k]/both, math.Pow(l.random.Float64(), 1/shareExponent)
	weights[k], weights[j] = both*v, both*(1-v)
	if !(weights[k] > 0 && weights[j] > 0 && old > 0 && old < 1) {
		return false
	}
	alpha := s.prior.Alpha
	l.logHastings = (alpha[k]-shareExponent)*math.Log(v/old) + (alpha[j]-1)*math.Log((1-v)/(1-old))
	return s.coords.Logits(l.trial.u, weights)
}

// another draws one of K components beside k.
func (l *chain) another(k, of int) int {
	j := l.random.IntN(of - 1)
	if j >= k {
		j++
	}
	return j
}
