package dppvi

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// gaussian is a Gaussian as it travels and is kept.
type gaussian struct {
	Eta    wire.Vector `cbor:"eta"`
	Lambda wire.Vector `cbor:"lambda"`
}

// packed writes a Gaussian.
func packed(g glm.Gaussian) gaussian { return gaussian{g.Eta, g.Lambda} }

// unchecked returns it unchecked.
func (m gaussian) unchecked() glm.Gaussian { return glm.Gaussian{Eta: m.Eta, Lambda: m.Lambda} }

// factor returns a Gaussian over p weights that need not be a density.
func (m gaussian) factor(p int) (glm.Gaussian, error) {
	g := m.unchecked()
	return g, g.Check(p)
}

// density returns a Gaussian over p weights that is one.
func (m gaussian) density(p int) (glm.Gaussian, error) {
	g := m.unchecked()
	return g, g.CheckProper(p)
}

// updateTask asks for one update. What a site does with it is decided by the plan
// that it agreed to: the task brings the coordinator's state and chooses nothing.
type updateTask struct {
	Scale  *options.Scale `cbor:"scale"`
	Q      gaussian       `cbor:"q"`
	Factor gaussian       `cbor:"factor"` // the site's own
	Update int            `cbor:"update"` // the site's count, from 1
}

// updateAnswer is where the local optimisation led from q: the quotient of the two,
// before damping.
type updateAnswer struct {
	Change gaussian `cbor:"change"`
}

// assessTask asks how well the model predicts; it is what sites get back, too.
type assessTask struct {
	Scale *options.Scale `cbor:"scale"`
	Q     gaussian       `cbor:"q"`
}

// Bounds on every number that passes between the halves, beside those of package options: a site's factor is
// bounded by itself, so that posteriors, which hold one factor of each site, stay within taskLargest, which sites
// demand of tasks. So a factor that the coordinator takes never makes another site refuse.
const (
	taskLargest = 1e75
	// factorSure is how many times as sure as the prior a factor may be: beyond about 1e16, the prior is below the
	// rounding of the posterior, and nothing is left of it when the factor is taken out again.
	factorSure = 1e14
	// factorFar is how far from 0 a factor may draw a weight, in standard deviations of the prior times the factor:
	// beyond about 1e9, steps of an optimum to 1e-7 standard deviations are below the rounding of its mean.
	factorFar = 1e8
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

// workable reports a factor of an exact or published update that leads where no
// site could work. It depends on this factor alone, so that no site answers for
// what another one has sent.
func workable(factor, prior glm.Gaussian) error {
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
