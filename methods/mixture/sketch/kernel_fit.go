package sketch

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/mixture/gmm"
)

// Fit compares what was observed at the landmarks with what the posterior expects.
type Fit struct {
	Expected []float64
	SD       []float64 // of the observed means around the expected ones, noise included
	Largest  float64   // distance, in sd
	ChiSq    float64   // of all distances together: see Landmarks.Misfit
	Freedom  float64   // degrees of freedom of ChiSq
	// Tail is the probability of being as far off if the model is right, by a posterior
	// predictive check: see [Null] and [tailOf].
	Tail float64
}

// fitDraws is how many draws the covariance of observed means is averaged over: it
// hardly changes where the posterior is.
const fitDraws = 16

// nullRows is of how many rows data sets of a check are made at most: few landmarks have any, and
// what few rows do is part of it.
const landmarkNullRows = 2000

// Fit takes expectations over draws, and not at the posterior means of parameters: a
// component that hardly a row belongs to may be anywhere, and the mean of its places is none of them.
// The check is by χ² and by the largest distance. Degrees of freedom are as many as landmarks, less
// by how much more draws are off on average than their mean (Spiegelhalter and others 2002, p_D).
func (l Landmarks) Fit(o Observation, p *gmm.Posterior) (*Fit, error) {
	if err := o.Check(l.Len()); err != nil {
		return nil, err
	}
	n := l.Len()
	f := &Fit{Expected: make([]float64, n), SD: make([]float64, n)}
	e, pairs := newMoments(l), newOverlaps(l)
	means, one, cov := make([]float64, n*len(p.Draws)), make([]float64, n*n), make([]float64, n*n)
	sum, next := 0.0, 0.5
	for i, m := range p.Draws {
		mean := means[i*n:][:n]
		if !e.mean(m, mean) {
			return nil, fmt.Errorf("draw %d has a covariance that is not positive definite", i+1)
		}
		for r, v := range mean {
			f.Expected[r] += p.Weights[i] * v
		}
		// At equal steps of the summed weight; a draw that several fall on counts as often.
		times := 0.0
		for sum += p.Weights[i]; sum*fitDraws > next; next++ {
			times++
		}
		if times == 0 {
			continue
		}
		if !e.covariance(m, pairs, mean, one) {
			return nil, fmt.Errorf("draw %d has a covariance that is not positive definite", i+1)
		}
		spread(regularised(o), mean, one)
		for r, v := range one {
			cov[r] += times / fitDraws * v
		}
	}
	off := make([]float64, n)
	for r, v := range f.Expected {
		f.SD[r] = math.Sqrt(max(cov[r*n+r], 0))
		off[r] = o.Mean[r] - v
	}
	if _, ok := gmm.Cholesky(cov, n); !ok {
		return nil, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	var fitted []float64 // whitened draws around their mean, by the root of their weights
	draws := 0.0
	for i, share := range p.Weights {
		d := make([]float64, n)
		for r := range d {
			d[r] = math.Sqrt(share) * (f.Expected[r] - means[i*n+r])
		}
		gmm.Forward(cov, n, d)
		draws += gmm.Squares(d)
		fitted = append(fitted, d...)
	}
	// Of simulated distances χ² loses what a fit to them would take.
	statistics := func(off, fitted []float64) []float64 {
		largest := 0.0
		for r, v := range off {
			if f.SD[r] > 0 {
				largest = max(largest, math.Abs(v)/f.SD[r])
			}
		}
		gmm.Forward(cov, n, off)
		chiSq := gmm.Squares(off)
		for d := range slices.Chunk(fitted, n) {
			s := 0.0
			for r, v := range d {
				s += v * off[r]
			}
			chiSq -= s * s
		}
		return []float64{chiSq, largest}
	}
	observed := statistics(off, nil)
	f.ChiSq, f.Largest, f.Freedom = observed[0], observed[1], max(float64(n)-draws, 1)
	null, err := Null{Observed: o, Posterior: p, Features: l.Features, Rows: landmarkNullRows,
		Expected: func(i int) []float64 { return means[i*n:][:n] }}.Statistics(func(_ int, off []float64) []float64 { return statistics(off, fitted) })
	if err != nil {
		return nil, err
	}
	f.Tail = tailOf(observed, null)
	return f, nil
}

// LikelyLargest is what the largest of n independent normal deviations exceeds
// with a probability of 1 % at most.
func LikelyLargest(n int) float64 { return math.Sqrt(2) * math.Erfcinv(0.01/float64(n)) }
