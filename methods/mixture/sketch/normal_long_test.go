//go:build long

package sketch

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/mixture/gmm"
)

// Codes of five numbers, of which a uniform box of landmarks learns little: a
// Gaussian from 150 rows, as 64 landmarks see it. The posterior mean of μ must come
// as close to the truth as the rows' own mean does, whose error is 0.5/√150 = 0.041 in
// each coordinate; three times that has a chance below 1 in 100 for one seed. The seed is fixed.
func TestNormalLandmarksSeeCodes(t *testing.T) {
	d, n := 5, 150
	truth := gmm.NewMixture(1, d)
	truth.Weights[0] = 1
	sd, h := make([]float64, d), make([]float64, d)
	for i := range d {
		truth.Means[i] = 0.3 * float64(i%3-1)
		truth.Covs[i*d+i] = 0.25
		sd[i], h[i] = 1, 1
	}
	marks, err := ScatterNormal(sd, h, 64)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]float64, n*d)
	if err := truth.Simulate(rand.New(rand.NewPCG(4, 1)), rows); err != nil {
		t.Fatal(err)
	}
	sum, phi := make([]float64, marks.Len()), make([]float64, marks.Len())
	for i := range n {
		marks.Features(phi, rows[i*d:])
		for r, v := range phi {
			sum[r] += v
		}
	}
	o, err := Pool([][]float64{sum}, []int{n}, []float64{0})
	if err != nil {
		t.Fatal(err)
	}
	prior, err := gmm.BoxPrior([]float64{-4, -4, -4, -4, -4}, []float64{4, 4, 4, 4, 4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	post, err := marks.Posterior(o, prior, Sampling{Particles: 384, Sweeps: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := post.Mean()
	for i, m := range got.Mean(0) {
		if math.Abs(m-truth.Means[i]) > 3*0.5/math.Sqrt(float64(n)) {
			t.Errorf("coordinate %d: posterior mean %v, truth %v", i, m, truth.Means[i])
		}
	}
}
