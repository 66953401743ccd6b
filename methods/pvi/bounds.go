package pvi

import (
	"fmt"
	"math"

	"parley/methods/pvi/gvi"
)

// Bounds on every number that passes between the halves. They lie far outside of
// what honest studies need, and so that whatever keeps them can be calculated
// with: no product of a few of them overflows.
//
// A plan's own numbers are within 1/options.Largest … options.Largest. A site's factor
// is bounded by itself, so that posteriors, which hold one factor of each
// site, stay within taskLargest, which sites demand of tasks: a factor that the
// coordinator takes never makes another site refuse, nor another site's answer
// fail.
const (
	factorLargest = 1e60 // where updates are noised natural gradients
	taskLargest   = 1e75
	// factorSure is how many times as sure as the prior another factor may be: beyond
	// about 1e16, the prior is below the rounding of the posterior, and nothing is left
	// of it when the factor is taken out again.
	factorSure = 1e14
	// factorFar is how far from 0 a factor may draw a weight, in standard deviations
	// of the prior times the factor: beyond about 1e9, steps of an optimum to 1e-7
	// standard deviations are below the rounding of its mean.
	factorFar = 1e8
	// mostRows is a number of subjects that no site has.
	mostRows = 1 << 31
	// pointLargest bounds the means of variant global, and pointWidest the
	// logarithms of its variances.
	pointLargest, pointWidest = 1e15, 100
)

// bounded reports entries of a Gaussian that no honest coordinator sends.
func bounded(g gvi.Gaussian) error {
	for j, l := range g.Lambda {
		if !gvi.Inside(g.Eta[j], -taskLargest, taskLargest) || !gvi.Inside(l, -taskLargest, taskLargest) {
			return fmt.Errorf("natural parameters %v and %v of weight %d are beyond ±%v", g.Eta[j], l, j, taskLargest)
		}
	}
	return nil
}

// boundedDensity reports in addition precisions that no honest coordinator sends.
func boundedDensity(g gvi.Gaussian) error {
	for j, l := range g.Lambda {
		if !(l >= 1/taskLargest) {
			return fmt.Errorf("precision %v of weight %d is below %v", l, j, 1/taskLargest)
		}
	}
	return bounded(g)
}

// workable reports a factor of an exact or published update that leads where no
// site could work. It depends on this factor alone, so that no site answers for
// what another one has sent.
func (s *setup) workable(factor gvi.Gaussian) error {
	if err := factor.Check(s.weights()); err != nil {
		return err
	}
	for j, l := range factor.Lambda {
		prior := s.prior.Lambda[j]
		if far := factorFar * math.Sqrt(prior+l); !gvi.Inside(l, 0, factorSure*prior) || !gvi.Inside(factor.Eta[j], -far, far) {
			return fmt.Errorf("with precision %v and precision × mean %v of weight %d the factor is beyond all measure", l, factor.Eta[j], j)
		}
	}
	return nil
}

// check reports a scale that no honest coordinator sends.
func (m *scaleMessage) check() error {
	for i, x := range m.Scale {
		if !gvi.Inside(x, 1/taskLargest, taskLargest) || !gvi.Inside(m.Centre[i], -taskLargest, taskLargest) {
			return fmt.Errorf("number %d: centre %v and scale %v are beyond all measure", i+1, m.Centre[i], x)
		}
	}
	return nil
}
