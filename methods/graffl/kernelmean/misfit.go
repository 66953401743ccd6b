package kernelmean

import (
	"fmt"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/graffl/mixture"
)

// Misfit returns how far the observed landmark means are from those of a parameter, in
// standard deviations: (y − E φ)ᵀ C⁻¹ (y − E φ) with C the covariance of
// [Landmarks.LogLikelihood]. Under the parameter it is χ² with as many degrees of
// freedom as there are landmarks: the predictive check of what was released.
func (l Landmarks) Misfit(o Observation, m mixture.Mixture) (chiSq, tail float64, err error) {
	if err := o.Check(l.Len()); err != nil {
		return 0, 0, err
	}
	mean, cov, err := l.Moments(m)
	if err != nil {
		return 0, 0, err
	}
	spread(regularised(o), mean, cov)
	n := len(mean)
	if _, ok := mixture.Cholesky(cov, n); !ok {
		return 0, 0, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	off := make([]float64, n)
	for r := range off {
		off[r] = o.Mean[r] - mean[r]
	}
	mixture.Forward(cov, n, off)
	chiSq = mixture.Squares(off)
	return chiSq, distuv.ChiSquared{K: float64(n)}.Survival(chiSq), nil
}

// regularised is an observation with a variance of ¼/n² more on every mean: the means of
// landmarks that hardly a row comes near are far from Gaussian. The posterior uses it, too.
func regularised(o Observation) Observation {
	o.NoiseVar += 1 / (4 * o.Rows * o.Rows)
	return o
}
