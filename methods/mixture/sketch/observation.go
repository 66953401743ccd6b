package sketch

import (
	"fmt"
	"math"

	"parley/methods/mixture/gmm"
)

// Observation is what the sites' releases say together: the mean of φ over all
// rows, Σ_j sums_j / Σ_j n_j.
type Observation struct {
	Mean []float64 `json:"mean" cbor:"mean"`
	Rows float64   `json:"rows" cbor:"rows"` // n, all sites together
	// NoiseVar is the variance of the noise on each entry of Mean:
	// Σ_j sd_j²/n², sd_j on the sum of site j in units of φ; 0 without protection.
	NoiseVar float64 `json:"noise_variance" cbor:"noise_variance"`
	// RowsVar is the variance of the noise in n, where the number of rows was itself
	// released with noise; 0 where it is public.
	RowsVar float64 `json:"rows_variance" cbor:"rows_variance"`
}

// Check reports what is wrong with an observation of n means.
func (o Observation) Check(n int) error {
	switch {
	case len(o.Mean) != n:
		return fmt.Errorf("%d means were observed, where the frequencies make %d", len(o.Mean), n)
	case gmm.NotFinite(o.Mean) >= 0:
		return fmt.Errorf("the mean number %d is not finite", gmm.NotFinite(o.Mean)+1)
	case !(o.Rows >= 1) || math.IsInf(o.Rows, 1):
		return fmt.Errorf("the observed means are of %v rows: want at least 1", o.Rows)
	case !(o.NoiseVar >= 0) || math.IsInf(o.NoiseVar, 1) || !(o.RowsVar >= 0) || math.IsInf(o.RowsVar, 1):
		return fmt.Errorf("noise variances %v and %v: want numbers that are not negative", o.NoiseVar, o.RowsVar)
	}
	return nil
}

// Sampling says how a posterior is sampled.
type Sampling struct {
	Particles int // 64 to 65536
	Seed      uint64
	// Widths says that Ψ of the prior follows from the fit: where sums can tell how wide components are.
	Widths bool
}

// DefaultSampling is what coverage was measured with.
func DefaultSampling(seed uint64) Sampling { return Sampling{Particles: 384, Seed: seed} }

// Check reports what is wrong with the choices.
func (s Sampling) Check() error {
	if s.Particles < 64 || s.Particles > 1<<16 {
		return fmt.Errorf("sampling with %d particles: want 64 to 65536", s.Particles)
	}
	return nil
}

// Fit compares what was observed with what the posterior expects.
type Fit struct {
	Expected []float64
	SD       []float64 // of the observed means around the expected ones, noise included
	Largest  float64   // distance, in sd
	ChiSq    float64   // of all distances together
	Freedom  float64   // degrees of freedom of ChiSq
	// Tail is the probability of being as far off if the model is right, by a posterior
	// predictive check: see [null] and [tailOf].
	Tail float64
}

// LikelyLargest is what the largest of n independent normal deviations exceeds
// with a probability of 1 % at most.
func LikelyLargest(n int) float64 { return math.Sqrt(2) * math.Erfcinv(0.01/float64(n)) }
