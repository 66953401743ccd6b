package sketch

import (
	"math/rand/v2"
	"testing"

	"parley/methods/mixture/gmmtest"
	"parley/privacy/account"
)

// The toy of section 4.2: one mode for each site.
var (
	toyLo, toyHi                  = gmmtest.Lo, gmmtest.Hi
	toyThirds, toyTruth, toyPrior = gmmtest.Thirds, gmmtest.Truth, gmmtest.Prior
	toySites, judged              = gmmtest.Sites, gmmtest.Judged
	toyWidths                     = []float64{1.5, 1.5}
	toyMarks                      = func() Landmarks { l, _ := Grid(toyLo, toyHi, toyWidths); return l }()
)

// sums returns a site's sum of φ, with noise of a standard deviation.
func sums(l Landmarks, rows []float64, sd float64, r *rand.Rand) []float64 {
	sum, phi := make([]float64, l.Len()), make([]float64, l.Len())
	for k := 0; k < len(rows); k += l.Dim {
		l.Features(phi, rows[k:])
		for i, v := range phi {
			sum[i] += v
		}
	}
	if sd > 0 {
		for i := range sum {
			sum[i] += sd * r.NormFloat64()
		}
	}
	return sum
}

// toyObserved releases the toy's landmark means with the noise that (ε, 10⁻⁵)
// asks for where records are exchanged and clipped to a ball; 0 is no noise.
func toyObserved(t testing.TB, seed uint64, rows []int, epsilon float64) Observation {
	t.Helper()
	sd := 0.0
	if epsilon > 0 {
		factor, err := account.AnalyticGaussian(epsilon, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		sd = factor * 2 * toyMarks.NormBound()
	}
	r := rand.New(rand.NewPCG(seed, 2))
	var all [][]float64
	var noise []float64
	for _, s := range toySites(seed, rows) {
		all = append(all, sums(toyMarks, s, sd, r))
		noise = append(noise, sd)
	}
	o, err := Pool(all, rows, noise)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
