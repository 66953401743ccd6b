package options

import (
	"fmt"
	"math"

	"parley/methods/regression/glm"
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
	FactorLargest = 1e60 // where updates are noised natural gradients
	taskLargest   = 1e75
	// factorSure is how many times as sure as the prior another factor may be: beyond
	// about 1e16, the prior is below the rounding of the posterior, and nothing is left
	// of it when the factor is taken out again.
	factorSure = 1e14
	// factorFar is how far from 0 a factor may draw a weight, in standard deviations
	// of the prior times the factor: beyond about 1e9, steps of an optimum to 1e-7
	// standard deviations are below the rounding of its mean.
	factorFar = 1e8
	// MostRows is a number of subjects that no site has.
	MostRows = 1 << 31
)

// bounded reports entries of a Gaussian that no honest coordinator sends.
func bounded(g glm.Gaussian) error {
	for j, l := range g.Lambda {
		if !glm.Inside(g.Eta[j], -taskLargest, taskLargest) || !glm.Inside(l, -taskLargest, taskLargest) {
			return fmt.Errorf("natural parameters %v and %v of weight %d are beyond ±%v", g.Eta[j], l, j, taskLargest)
		}
	}
	return nil
}

// boundedDensity reports in addition precisions that no honest coordinator sends.
func boundedDensity(g glm.Gaussian) error {
	for j, l := range g.Lambda {
		if !(l >= 1/taskLargest) {
			return fmt.Errorf("precision %v of weight %d is below %v", l, j, 1/taskLargest)
		}
	}
	return bounded(g)
}

// Workable reports a factor of an exact or published update that leads where no
// site could work. It depends on this factor alone, so that no site answers for
// what another one has sent.
func Workable(factor, prior glm.Gaussian) error {
	if err := factor.Check(len(prior.Lambda)); err != nil {
		return err
	}
	for j, l := range factor.Lambda {
		least := prior.Lambda[j]
		if far := factorFar * math.Sqrt(least+l); !glm.Inside(l, 0, factorSure*least) || !glm.Inside(factor.Eta[j], -far, far) {
			return fmt.Errorf("with precision %v and precision × mean %v of weight %d the factor is beyond all measure", l, factor.Eta[j], j)
		}
	}
	return nil
}
