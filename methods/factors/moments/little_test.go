package moments

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// With next to no noise every direction of the data stands out, those of the
// rest too. Then there is nothing to tell D from, unless some are left to it: a
// view's noise variance once came out as 10⁻⁷.
func TestLittleNoiseLeavesTheNoiseVariances(t *testing.T) {
	const psi = 0.0031
	l := ppca.Layout{Dims: []int{5, 5}, Noise: ppca.NoisePerView}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := make([]float64, 20)
		for i := range w {
			w[i] = 0.08 * r.NormFloat64()
		}
		rows := make([][]float64, 4000)
		for i := range rows {
			a, b := r.NormFloat64(), r.NormFloat64()
			for j := range 10 {
				rows[i] = append(rows[i], 0.5+w[2*j]*a+w[2*j+1]*b+math.Sqrt(psi)*r.NormFloat64())
			}
		}
		ranges := make([][2]float64, 10)
		for j := range ranges {
			ranges[j] = [2]float64{0, 1}
		}
		s, err := NewStatistics(l, ranges, whole(l))
		if err != nil {
			t.Fatal(err)
		}
		for _, mu := range []float64{2, 9, 100} { // ε of about 10, 80 and 5400 at δ = 1e-5
			repaired, err := Project(l, testRelease(t, r, s, mu, factorstest.SplitAll(l, rows)), 1)
			if err != nil {
				t.Fatal(err)
			}
			fit, err := repaired.Fit(2)
			if err != nil {
				t.Fatal(err)
			}
			// Clipping is made up for to within a fifth.
			for k, x := range fit.Noise {
				if x < 0.8*psi || x > 1.25*psi {
					t.Errorf("seed %d, μ %v: noise variance of view %d is %.3g, not %v", seed, mu, k+1, x, psi)
				}
			}
		}
	}
}
