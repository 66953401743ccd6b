package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
)

// block is coordinates that move together: the weights, one component, everything.
type block struct {
	coords []int
	of     int // the component; all or none
}

// all is a block that touches every component, none one that touches no component.
const (
	all  = -1
	none = -2
)

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
	trial    []float64 // coordinates: the particle's, and what is proposed
	parts    []float64 // of the trial
	starts   []float64
	touches  int     // the block of the proposal
	fresh    bool    // its component was drawn from the start's density
	weights  float64 // and ln of what its weights are worth: prior over proposal, against the particle's
	prior    float64 // of the trial; −Inf where it is impossible
}

// begin makes a lane a particle's.
func (l *lane) begin(p *particle) {
	l.particle = p
	copy(l.trial, p.u)
	copy(l.parts, p.parts)
	copy(l.starts, p.starts)
}

// settle makes the trial's numbers the particle's, or the other way round, as far as
// they can differ.
func (l *lane) settle(accept bool) {
	p := l.particle
	pair := func(trial, own []float64) {
		if accept {
			copy(own, trial)
		} else {
			copy(trial, own)
		}
	}
	pair(l.trial, p.u)
	pair(l.starts, p.starts)
	n := len(l.parts) / len(l.starts)
	switch {
	case l.touches == all:
		pair(l.parts, p.parts)
	case l.touches != none:
		pair(l.parts[l.touches*n:][:n], p.parts[l.touches*n:][:n])
	}
}

// propose evaluates what a trial changes.
func (e *evaluator) propose(l *lane, t target, touches int, fresh bool) {
	l.touches, l.fresh = touches, fresh
	l.prior = e.prior.LogDensity(l.trial)
	if math.IsInf(l.prior, -1) {
		return
	}
	n := len(e.mean)
	for k := range e.m.Weights {
		if touches != all && touches != k {
			continue
		}
		e.prior.component(e.m, l.trial, k)
		if !e.marks.component(e.m, k, l.parts[k*n:][:n]) {
			l.prior = math.Inf(-1)
			return
		}
		if fresh || t.power > 0 {
			l.starts[k] = e.start.over(l.trial, k)
		}
	}
}

// decide takes the trials by Metropolis steps, and reports for each whether it was.
func (e *evaluator) decide(lanes []lane, t target, accepted func(lane int)) {
	for i := range lanes {
		if l := &lanes[i]; !math.IsInf(l.prior, -1) {
			e.prior.weights(e.m.Weights, l.trial)
			e.add(l.parts)
			t.form.fill(e.columns, i, e.mean)
		}
	}
	logs := t.form.logs(e.columns, e.products)
	for i := range lanes {
		l := &lanes[i]
		p := l.particle
		ratio := 0.0
		for k, v := range l.starts {
			ratio += v - p.starts[k]
		}
		if l.fresh { // the start's density is prior · exp(start)
			ratio = (t.power-1)*ratio + l.weights
		} else {
			ratio = l.prior - p.prior + t.power*ratio
		}
		accept := !math.IsInf(l.prior, -1) && math.Log(l.random.Float64()) < ratio+logs[i]-p.log
		gain := p.gain
		if accept && t.share > 0 {
			gain = e.gain(l.trial, logs[i])
			accept = math.Log(l.random.Float64()) < t.share*(gain-p.gain)
		}
		l.settle(accept)
		if accept {
			p.prior, p.log, p.gain = l.prior, logs[i], gain
			accepted(i)
		}
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
	for range sweeps {
		for i, p := range s.particles {
			copy(s.old[i*size:], p.u)
		}
		clear(accepted)
		s.each(func(e *evaluator, lanes []lane, first int) {
			for b, block := range s.blocks {
				for i := range lanes {
					s.difference(&lanes[i], block, s.scale[b])
					e.propose(&lanes[i], t, block.of, false)
				}
				e.decide(lanes, t, func(i int) { accepted[(first+i)*len(s.blocks)+b] = true })
			}
			for _, trade := range []bool{false, true} {
				for i := range lanes {
					s.renew(e, &lanes[i], t, trade)
				}
				e.decide(lanes, t, func(int) {})
			}
		})
		s.acceptance = 0
		for b := range s.blocks {
			rate := 0.0
			for i := range s.particles {
				if accepted[i*len(s.blocks)+b] {
					rate += 1 / float64(len(s.particles))
				}
			}
			s.acceptance += rate / float64(len(s.blocks))
			s.scale[b] = min(max(s.scale[b]*math.Exp(rate-0.25), 0.05), 2)
		}
	}
}

// difference moves a trial along the difference of two particles; now and then by all
// of it, which leads from one mode to another.
func (s *cloud) difference(l *lane, b block, scale float64) {
	r, size := l.random, s.coords.Len()
	one, two := s.old[r.IntN(len(s.particles))*size:][:size], s.old[r.IntN(len(s.particles))*size:][:size]
	g := scale * 2.38 / math.Sqrt(2*float64(len(b.coords)))
	if r.IntN(10) == 0 {
		g = 1
	}
	for _, c := range b.coords {
		l.trial[c] += g*(one[c]-two[c]) + 1e-3*r.NormFloat64()*g
	}
}

// renew proposes a component drawn anew from the start's density: it is how a particle
// that lacks a mode, or has one twice, finds it. As modes differ in size, the
// component may trade weight with another one.
func (s *cloud) renew(e *evaluator, l *lane, t target, trade bool) {
	k := l.random.IntN(s.coords.K)
	e.prior.LogDensity(l.trial)
	if t.power == 0 { // nobody has kept it up to date
		l.particle.starts[k] = e.start.over(l.trial, k)
		l.starts[k] = l.particle.starts[k]
	}
	l.touches, l.prior, l.weights = none, math.Inf(-1), 0
	if trade && (s.coords.K == 1 || !s.trade(e.prior.pi, l, k)) {
		return
	}
	mean, cov := e.m.Mean(k), e.m.Cov(k)
	e.start.component(l.random, mean, cov)
	if _, ok := cholesky(cov, s.coords.Dim); ok {
		s.coords.put(l.trial, k, mean, cov)
		e.propose(l, t, k, true)
	}
}

// smallShares is the exponent of the shares that are proposed: vᵃ⁻¹ prefers small ones.
const smallShares = 0.25

// trade divides the weight of component k and of another one anew, given all weights,
// which it overwrites: k gets a share v of density a vᵃ⁻¹. It reports false where
// nothing would be left.
func (s *cloud) trade(weights []float64, l *lane, k int) bool {
	j := l.random.IntN(s.coords.K - 1)
	if j >= k {
		j++
	}
	both := weights[k] + weights[j]
	old, v := weights[k]/both, math.Pow(l.random.Float64(), 1/smallShares)
	weights[k], weights[j] = both*v, both*(1-v)
	if !(weights[k] > 0 && weights[j] > 0 && old > 0 && old < 1) {
		return false
	}
	alpha := s.prior.Alpha
	l.weights = (alpha[k]-smallShares)*math.Log(v/old) + (alpha[j]-1)*math.Log((1-v)/(1-old))
	last := weights[s.coords.K-1]
	for i := range s.coords.K - 1 {
		l.trial[i] = math.Log(weights[i] / last)
	}
	return true
}
