package graffl

import (
	"math"
	"testing"
)

// follow moves every component, its weight following, once, and nothing else: new draws of components would hide
// what is wrong with that.
func follow(s *cloud, t target) {
	size := s.coords.Len()
	for i, p := range s.particles {
		copy(s.old[i*size:], p.u)
	}
	s.each(func(e *evaluator, lanes []lane, _ int) {
		for k := range s.coords.K {
			for i := range lanes {
				s.difference(&lanes[i], s.blocks[k], s.scale[k])
				e.propose(&lanes[i], t, k, false, lanes[i].another(k, s.coords.K))
			}
			e.decide(lanes, t, func(int) {})
		}
	})
}

// Where hardly anything was observed particles are at rest from the beginning: moves,
// whatever they propose, must leave the law that they were drawn from. Means and mean
// squares of what moves change are compared with those of other draws; each of 24
// comparisons fails by chance with a probability below 1e-5 (five standard errors, the
// particles' dependence allowed for by 1.5).
func TestFollowingKeepsTheLaw(t *testing.T) {
	marks, err := Grid([]float64{-3, -3}, []float64{3, 3}, []float64{1.5, 1.5})
	if err != nil {
		t.Fatal(err)
	}
	n := marks.Len()
	o := Observation{Mean: make([]float64, n), Rows: 50}
	o.Mean[n/2] = 0.1
	// Components of which much is beyond the landmarks, whose weights are not alike.
	prior := Prior{[]float64{1, 2, 1.5}, []float64{1, 0}, 0.3, 6, []float64{2, .3, .3, 3}}
	cov := make([]float64, n*n)
	for i := range n {
		cov[i*n+i] = 1e12
	}
	p, err := newPrecision(o.Mean, cov)
	if err != nil {
		t.Fatal(err)
	}
	f, err := between(nil, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, power := range []float64{1, 0} { // the start's law, and the prior
		summary := func(seed uint64, sweeps int) (mean, variance []float64) {
			s := newCloud(marks, o, prior, Sampling{4096, 1, seed}, marks.guess(o))
			if power == 0 {
				s.each(func(e *evaluator, lanes []lane, _ int) {
					sampler := prior.Sampler()
					for i := range lanes {
						l := &lanes[i]
						sampler.Draw(l.random, e.m)
						if err := s.coords.To(l.trial.u, e.m); err != nil {
							t.Error(err)
						}
						e.propose(l, target{}, all, false, none)
						l.particle.set(&l.trial, all)
					}
				})
			}
			s.evaluate(f, func(i int, log float64) { s.particles[i].log = log })
			for range sweeps {
				follow(s, target{form: f, power: power})
			}
			mean, variance = make([]float64, 12), make([]float64, 12)
			for _, q := range s.particles {
				for k, w := range q.weights {
					for i, v := range []float64{w, w * w, math.Log(0.02 + q.seen[k]), w * q.seen[k]} {
						mean[4*k+i] += v / float64(len(s.particles))
						variance[4*k+i] += v * v / float64(len(s.particles))
					}
				}
			}
			for i, m := range mean {
				variance[i] = (variance[i] - m*m) / float64(len(s.particles))
			}
			return mean, variance
		}
		want, v1 := summary(1, 0)
		got, v2 := summary(2, 40)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 5*1.5*math.Sqrt(v1[i]+v2[i]) {
				t.Errorf("power %v: moment %d is %.4f after moves, %.4f before (standard error %.4f)", power, i, got[i], want[i], math.Sqrt(v1[i]+v2[i]))
			}
		}
	}
}
