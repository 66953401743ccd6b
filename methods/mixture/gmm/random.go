package gmm

import (
	"math"
	"math/rand/v2"
)

// SplitMix is the finaliser of SplitMix64, which makes unlike seeds of like numbers.
func SplitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Pick draws an index in proportion to weights that sum to 1.
func Pick(r *rand.Rand, weights []float64) int {
	u := r.Float64()
	for k, w := range weights {
		if u -= w; u < 0 {
			return k
		}
	}
	return len(weights) - 1
}

// gamma draws from the gamma distribution of shape a and scale 1 (Marsaglia and
// Tsang 2000; below 1 by their boost). Its stream is ours, so that proposals can be
// drawn again from their numbers whatever a library changes.
func gamma(r *rand.Rand, a float64) float64 {
	if a < 1 {
		return gamma(r, a+1) * math.Pow(r.Float64(), 1/a)
	}
	if a == 1 {
		return r.ExpFloat64()
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := r.Float64()
		if x2 := x * x; u < 1-0.0331*x2*x2 || math.Log(u) < x2/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
