package sketch

import (
	"math"
	"testing"

	"parley/methods/mixture/gmm"
)

// following moves every component, its weight following, and nothing else: new draws of
// components would hide what is wrong with that.
func following(s *landmarkSampler, t target) {
	size := s.coords.Len()
	for i, p := range s.particles {
		copy(s.old[i*size:], p.u)
	}
	s.each(func(e *evaluator, chains []chain, _ int) {
		for k := range s.coords.K {
			for i := range chains {
				s.proposeDifference(&chains[i], s.blocks[k], s.scale[k])
				e.propose(&chains[i], t, k, false, chains[i].another(k, s.coords.K))
			}
			e.metropolis(chains, t, func(int) {})
		}
	})
}

// dividing splits and merges, and nothing else.
func dividing(s *landmarkSampler, t target) {
	s.each(func(e *evaluator, chains []chain, _ int) {
		for i := range chains {
			s.splitOrMerge(e, &chains[i], t)
		}
		e.metropolis(chains, t, func(int) {})
	})
}

// Where hardly anything was observed particles are at rest from the beginning: moves,
// whatever they propose, must leave the law that they were drawn from. What one move
// changes is zero on average; each of 72 averages is beyond five standard errors by
// chance with a probability below 1e-6.
func TestMovesKeepTheLawTheyStartFrom(t *testing.T) {
	marks, err := Grid([]float64{-3, -3}, []float64{3, 3}, []float64{1.5, 1.5})
	if err != nil {
		t.Fatal(err)
	}
	n := marks.Len()
	o := Observation{Mean: make([]float64, n), Rows: 50}
	o.Mean[n/2] = 0.1
	// Components of which much is beyond the landmarks, whose weights are not alike.
	prior := gmm.Prior{Alpha: []float64{1, 2, 1.5}, Mean: []float64{1, 0}, Kappa: 0.3, Nu: 4, Psi: []float64{2, .3, .3, 3}}
	cov := make([]float64, n*n)
	for i := range n {
		cov[i*n+i] = 1e12
	}
	p, err := newPrecision(o.Mean, cov)
	if err != nil {
		t.Fatal(err)
	}
	f, err := geometricPath(nil, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		move  func(*landmarkSampler, target)
		power float64 // 1 for the start's law, 0 for the prior
	}{{"following", following, 1}, {"following", following, 0}, {"dividing", dividing, 1}, {"dividing", dividing, 0}} {
		s := newSampler(marks, o, prior, Sampling{Particles: 1 << 14, Sweeps: 1, Seed: 1}, marks.initialGuess(o))
		if c.power == 0 {
			s.each(func(e *evaluator, chains []chain, _ int) {
				sampler := prior.Sampler()
				for i := range chains {
					l := &chains[i]
					sampler.Draw(l.random, e.m)
					if err := s.coords.To(l.trial.u, e.m); err != nil {
						t.Error(err)
					}
					e.propose(l, target{}, gmm.All, false, gmm.None)
					l.particle.set(&l.trial, gmm.All)
				}
			})
		}
		s.evaluate(f, func(i int, log float64) { s.particles[i].log = log })
		before := summariesOf(s)
		c.move(s, target{form: f, initialPower: c.power})
		after := summariesOf(s)
		for i, was := range before {
			mean, square := 0.0, 0.0
			for j, v := range was {
				x := (after[i][j] - v) / float64(len(was))
				mean += x
				square += x * x
			}
			if math.Abs(mean) > 5*math.Sqrt(square) || square == 0 {
				t.Errorf("%s, power %v: trait %d changes by %.5f, standard error %.5f", c.name, c.power, i, mean, math.Sqrt(square))
			}
		}
	}
}

// summariesOf are what moves may get wrong, for all particles.
func summariesOf(s *landmarkSampler) [18][]float64 {
	var out [18][]float64
	for _, q := range s.particles {
		for k, w := range q.weights {
			size := s.coords.Jacobian(q.u, k)
			for i, v := range []float64{w, w * w, math.Log(0.02 + q.visible[k]), w * q.visible[k], size, gmm.Squares(s.coords.Means(q.u)[2*k:][:2])} {
				out[6*k+i] = append(out[6*k+i], v)
			}
		}
	}
	return out
}
