package graffl

import (
	"math"
	"math/rand/v2"

	"parley/methods/graffl/mixture"
)

// target is what particles move under: prior · start^power · form · gain^share, the gain
// being that of the likelihood with its own covariance over the form. It is dear, so
// that only moves that the rest accepts are asked for theirs (Christen and Fox 2005);
// without a share, none.
type target struct {
	form  *form
	power float64
	share float64
}

// lane is one of the particles that a goroutine moves in step, so that the products
// of all of them are one of matrices.
type lane struct {
	particle *particle
	random   *rand.Rand
	source   *rand.PCG
	trial    parameter // the particle's, and what is proposed
	touches  int       // the block of the proposal
	fresh    bool      // its component was drawn from the start's density
	worth    float64   // ln of what else its acceptance is multiplied by
	prior    float64   // of the trial; −Inf where it is impossible
}

// propose evaluates what a trial changes. With a partner the touched component's weight
// follows what is seen of it.
func (e *evaluator) propose(l *lane, t target, touches int, fresh bool, partner int) {
	l.touches, l.fresh, l.prior = touches, fresh, math.Inf(-1)
	for k := range l.trial.weights {
		if (touches == mixture.All || touches == k) && !e.changed(l, t, k, fresh) {
			return
		}
	}
	if partner == mixture.None || e.follow(l, touches, partner) {
		e.weigh(l)
	}
}

// changed evaluates component k of a trial. It reports false where that is impossible.
func (e *evaluator) changed(l *lane, t target, k int, fresh bool) bool {
	p, n := &l.trial, len(e.mean)
	p.densities[k] = e.prior.LogComponent(p.u, k)
	if math.IsNaN(p.densities[k]) || math.IsInf(p.densities[k], -1) {
		return false
	}
	e.prior.Component(e.m, p.u, k)
	part := p.parts[k*n:][:n]
	if !e.marks.component(e.m, k, part) {
		return false
	}
	p.seen[k] = mixture.Sum(part)
	if fresh || t.power > 0 {
		p.starts[k] = e.start.LogRatio(p.u, k)
	}
	return true
}

// weigh evaluates the weights of a trial, whose components are, and so its prior.
func (e *evaluator) weigh(l *lane) bool {
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

// follow keeps what is seen of component k, its weight times the sum of its E φ, by weight
// that it takes from component j or gives to it. Where a component is mostly beyond the
// landmarks, its distance and its weight are known together only: without this, a
// particle hardly moves along. With v the share of k in the weight of both, and
// v′ = ρv, its logit's derivative is (1 − v)/(1 − v′). It reports false where j has not enough.
func (e *evaluator) follow(l *lane, k, j int) bool {
	weights := l.trial.weights // still those of the particle
	least := 1 / e.observed.Rows
	both := weights[k] + weights[j]
	v := weights[k] / both
	to := v * (least + l.particle.seen[k]) / (least + l.trial.seen[k])
	if !(to > 0 && to < 1 && v < 1) {
		return false
	}
	l.worth = math.Log((1 - v) / (1 - to))
	weights[k], weights[j] = both*to, both*(1-to)
	return e.prior.Logits(l.trial.u, weights)
}

// decide takes the trials by Metropolis steps, and reports for each whether it was.
func (e *evaluator) decide(lanes []lane, t target, accepted func(lane int)) {
	for i := range lanes {
		if l := &lanes[i]; !math.IsInf(l.prior, -1) {
			e.add(&l.trial)
			t.form.fill(e.columns, i, e.mean)
		}
	}
	logs := t.form.logs(e.columns, e.products)
	for i := range lanes {
		l := &lanes[i]
		p := l.particle
		ratio := 0.0
		for k, v := range l.trial.starts {
			ratio += v - p.starts[k]
		}
		if l.fresh { // the start's density is prior · exp(start)
			ratio = (t.power-1)*ratio + l.worth
		} else {
			ratio = l.prior - p.prior() + t.power*ratio + l.worth
		}
		accept := !math.IsInf(l.prior, -1) && math.Log(l.random.Float64()) < ratio+logs[i]-p.log
		gain := p.gain
		if accept && t.share > 0 {
			gain = e.gain(l.trial.u, logs[i])
			accept = math.Log(l.random.Float64()) < t.share*(gain-p.gain)
		}
		if !accept {
			l.trial.set(&p.parameter, l.touches)
			continue
		}
		p.set(&l.trial, l.touches)
		p.log, p.gain = logs[i], gain
		accepted(i)
	}
}

// move moves every particle by Metropolis steps, block by block, along the
// difference of two others (ter Braak 2006), which knows the cloud's shape without
// being told.
func (s *cloud) move(t target, sweeps int) {
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
		if n := len(blocks); blocks[n-1].Component == mixture.All && sweep%2 == 1 {
			blocks = blocks[:n-1] // it costs as much as the others together
		}
		s.each(func(e *evaluator, lanes []lane, first int) {
			for b, block := range blocks {
				for i := range lanes {
					l := &lanes[i]
					s.difference(l, block, s.scale[b])
					partner := mixture.None
					if block.Component >= 0 && s.coords.K > 1 {
						partner = l.another(block.Component, s.coords.K)
					}
					e.propose(l, t, block.Component, false, partner)
				}
				e.decide(lanes, t, func(i int) { accepted[(first+i)*len(s.blocks)+b] = true })
			}
			for _, trade := range []bool{false, true} {
				for i := range lanes {
					s.renew(e, &lanes[i], t, trade)
				}
				e.decide(lanes, t, func(int) {})
			}
			if s.coords.K > 1 {
				for i := range lanes {
					s.divide(e, &lanes[i], t)
				}
				e.decide(lanes, t, func(int) {})
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

// difference moves a trial along the difference of two particles; now and then by all
// of it, which leads from one mode to another.
func (s *cloud) difference(l *lane, b mixture.Block, scale float64) {
	l.worth = 0
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

// renew proposes a component drawn anew from the start's density: it is how a particle
// that lacks a mode, or has one twice, finds it. As modes differ in size, the
// component may trade weight with another one.
func (s *cloud) renew(e *evaluator, l *lane, t target, trade bool) {
	k, p := l.random.IntN(s.coords.K), &l.trial
	if t.power == 0 { // nobody has kept it up to date
		e.prior.LogComponent(p.u, k)
		p.starts[k] = e.start.LogRatio(p.u, k)
		l.particle.starts[k] = p.starts[k]
	}
	l.touches, l.prior, l.worth = mixture.None, math.Inf(-1), 0
	if trade && (s.coords.K == 1 || !s.trade(l, k)) {
		return
	}
	mean, cov := e.m.Mean(k), e.m.Cov(k)
	e.start.Component(l.random, mean, cov)
	if _, ok := mixture.Cholesky(cov, s.coords.Dim); ok {
		s.coords.Put(p.u, k, mean, cov)
		e.propose(l, t, k, true, mixture.None)
	}
}

// smallShares is the exponent of the shares that are proposed: vᵃ⁻¹ prefers small ones.
const smallShares = 0.25

// trade divides the weight of component k and of another one anew: k gets a share v of
// density a vᵃ⁻¹. It reports false where nothing would be left.
func (s *cloud) trade(l *lane, k int) bool {
	weights := l.trial.weights
	j := l.another(k, s.coords.K)
	both := weights[k] + weights[j]
	old, v := weights[k]/both, math.Pow(l.random.Float64(), 1/smallShares)
	weights[k], weights[j] = both*v, both*(1-v)
	if !(weights[k] > 0 && weights[j] > 0 && old > 0 && old < 1) {
		return false
	}
	alpha := s.prior.Alpha
	l.worth = (alpha[k]-smallShares)*math.Log(v/old) + (alpha[j]-1)*math.Log((1-v)/(1-old))
	return s.coords.Logits(l.trial.u, weights)
}

// another draws one of K components beside k.
func (l *lane) another(k, of int) int {
	j := l.random.IntN(of - 1)
	if j >= k {
		j++
	}
	return j
}
