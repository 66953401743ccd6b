package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// MaxFrequencies bounds the time that a posterior takes, which grows with their cube.
const MaxFrequencies = 768

// Frequencies are public vectors ω_j: a row x contributes cos ω_j·z and sin ω_j·z, where
// z_i = (x_i − Centre_i)/Scale_i, for each of them. They come from the plan: one that
// whoever asks may choose would scan the rows out.
type Frequencies struct {
	Dim    int
	Centre []float64 // of each feature's public range, in its unit
	Scale  []float64 // about the standard deviation of a component, in the feature's unit
	Omega  []float64 // by rows, count × Dim, in radians per Scale
	half   float64   // half of the widest range, in units of Scale
}

// New draws count frequencies for a public box. Directions are random, in orthogonal blocks; an eighth of the lengths
// are even in their logarithm from the width of the box to that of a component, which tells where components are at
// all, the others even from 0.3 to 3: a component's mean shows best at the inverse of its standard deviation.
func New(lo, hi, scale []float64, count int, seed uint64) (Frequencies, error) {
	d := len(lo)
	f := Frequencies{Dim: d}
	if d < 1 || d > gmm.MaxDim || len(hi) != d || len(scale) != d || count < 1 || count > MaxFrequencies {
		return f, fmt.Errorf("%d frequencies over a box of %d lower and %d upper ends with %d scales", count, d,
			len(hi), len(scale))
	}
	for i, s := range scale {
		if !(hi[i] > lo[i] && s > 0) || math.IsInf(hi[i]-lo[i]+s, 0) {
			return f, fmt.Errorf("feature %d has the range [%v, %v] and scale %v", i, lo[i], hi[i], s)
		}
		f.Centre = append(f.Centre, lo[i]+(hi[i]-lo[i])/2)
		f.Scale = append(f.Scale, s)
		f.half = max(f.half, (hi[i]-lo[i])/2/s)
	}
	r := rand.New(rand.NewPCG(seed, gmm.SplitMix(seed)))
	lengths := make([]float64, 0, count)
	far := count / 8
	for j := range far {
		u := (float64(j) + 0.5) / float64(far)
		lengths = append(lengths, min(0.9, 0.7/f.half)*math.Pow(max(0.9*f.half/0.7, 1), u))
	}
	for j := range count - far {
		u := (float64(j) + 0.5) / float64(count-far)
		lengths = append(lengths, shortest+(longest-shortest)*u)
	}
	r.Shuffle(count, func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	f.Omega = make([]float64, count*d)
	for j := range count {
		w, first := f.Omega[j*d:][:d], j-j%d // of the block of orthogonal directions
		for {
			for i := range w {
				w[i] = r.NormFloat64()
			}
			before := math.Sqrt(gmm.Squares(w))
			for b := first; b < j; b++ {
				other := f.Omega[b*d:][:d]
				t := dot(w, other) / gmm.Squares(other)
				for i, v := range other {
					w[i] -= t * v
				}
			}
			if n := math.Sqrt(gmm.Squares(w)); n > 1e-6*before {
				for i := range w {
					w[i] *= lengths[j] / n
				}
				break
			}
		}
	}
	return f, nil
}

// DefaultParticles are what coverage was measured with; most frequencies lie between the others, in radians per Scale.
const (
	DefaultParticles  = 384
	shortest, longest = 0.3, 3.0
)

// Count is how many frequencies there are.
func (f Frequencies) Count() int { return len(f.Omega) / max(f.Dim, 1) }

// Len is how many numbers a row contributes: a cosine and a sine for each frequency.
func (f Frequencies) Len() int { return 2 * f.Count() }

// farthest is how many scales from the centre a row counts as at most.
const farthest = 1e6

// Features writes φ(x): all cosines, then all sines.
func (f Frequencies) Features(dst, x []float64) {
	m := f.Count()
	for j := range m {
		t := 0.0
		for i, w := range f.Omega[j*f.Dim:][:f.Dim] {
			// A gross error is as far as everything far outside: its cosine must be a number.
			t += w * min(max((x[i]-f.Centre[i])/f.Scale[i], -farthest), farthest)
		}
		dst[m+j], dst[j] = math.Sincos(t)
	}
}

// NormBound returns B ≥ |φ(x)| for every x: cos² + sin² = 1 for every frequency, so that the
// norm of every row is the root of their number.
func (f Frequencies) NormBound() float64 { return math.Sqrt(float64(f.Count())) * (1 + 1e-12) }

func dot(a, b []float64) (s float64) {
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// Observation is what the sites' releases say together: the mean of φ over all rows, Σ_j sums_j / Σ_j n_j.
type Observation struct {
	Mean []float64
	Rows float64 // n, all sites together
	// NoiseVar is the variance of the noise on each entry of Mean:
	// Σ_j sd_j²/n², sd_j on the sum of site j in units of φ; 0 without protection.
	NoiseVar float64
	// RowsVar is the variance of the noise in n, where the number of rows was itself
	// released with noise; 0 where it is public.
	RowsVar float64
}

// Check reports what is wrong with an observation of n means.
func (o Observation) Check(n int) error {
	if len(o.Mean) != n || gmm.NotFinite(o.Mean) >= 0 || !(o.Rows >= 1 && o.NoiseVar >= 0 && o.RowsVar >= 0) ||
		math.IsInf(o.Rows+o.NoiseVar+o.RowsVar, 1) {
		return fmt.Errorf("%d means of %v rows, with noise of the variances %v and %v, where the frequencies make %d",
			len(o.Mean), o.Rows, o.NoiseVar, o.RowsVar, n)
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
	// predictive check: see [tailOf].
	Tail float64
}

// LikelyLargest is what the largest of n independent normal deviations exceeds with a probability of 1 % at most.
func LikelyLargest(n int) float64 { return math.Sqrt(2) * math.Erfcinv(0.01/float64(n)) }
