package kernelmean

import (
	"fmt"
	"math"

	"parley/methods/graffl/mixture"
)

// Fit compares what was observed at the landmarks with what the posterior expects.
type Fit struct {
	Expected []float64
	SD       []float64 // of the observed means around the expected ones, noise included
	Largest  float64   // distance, in sd
	ChiSq    float64   // of all distances together, and the probability of as much or
	Tail     float64   // more if the model is right: see Landmarks.Misfit
	Freedom  float64   // degrees of freedom of ChiSq
}

// fitDraws is how many draws the covariance of observed means is averaged over: it
// hardly changes where the posterior is.
const fitDraws = 16

// Fit takes expectations over draws, and not at the posterior means of parameters: a
// component that hardly a row belongs to may be anywhere, and the mean of its places is none of them.
func (l Landmarks) Fit(o Observation, p *mixture.Posterior) (*Fit, error) {
	if err := o.Check(l.Len()); err != nil {
		return nil, err
	}
	n := l.Len()
	f := &Fit{Expected: make([]float64, n), SD: make([]float64, n), Freedom: float64(n)}
	e, pairs := newMoments(l), newOverlaps(l)
	mean, one, cov := make([]float64, n), make([]float64, n*n), make([]float64, n*n)
	sum, next := 0.0, 0.5
	for i, m := range p.Draws {
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
	for r, v := range f.Expected {
		f.SD[r] = math.Sqrt(max(cov[r*n+r], 0))
		if f.SD[r] > 0 {
			f.Largest = max(f.Largest, math.Abs(o.Mean[r]-v)/f.SD[r])
		}
	}
	var err error
	f.ChiSq, f.Tail, err = misfit(o, f.Expected, cov)
	return f, err
}

// LikelyLargest is what the largest of n independent normal deviations exceeds
// with a probability of 1 % at most.
func LikelyLargest(n int) float64 { return math.Sqrt(2) * math.Erfcinv(0.01/float64(n)) }
