//go:build long

package sketch

import (
	"testing"

	"parley/methods/mixture/gmm"
)

// Sixteen data sets of the toy at ε 5: 90 % intervals hold 96 component means as often as
// chance allows. Honest intervals fail for one seed in five hundred, intervals two
// thirds as wide in most.
func TestIntervalsOfTheToyHoldTheTruth(t *testing.T) {
	held, of := 0, 0
	for seed := range uint64(16) {
		o := toyObserved(t, 100+seed, toyThirds, 5)
		post, err := toyMarks.Posterior(o, toyPrior, Sampling{Particles: 128, Sweeps: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		_, covered, _ := judged(post, toyTruth)
		held, of = held+covered, of+len(toyTruth.Means)
	}
	low, high := gmm.ChanceBand(of, 0.9, 0.998)
	if share := float64(held) / float64(of); share < low || share > high {
		t.Errorf("%d of %d intervals hold the truth, want a share from %.2f to %.2f", held, of, low, high)
	}
}

// Two components in a public box, under noise, most of them outside it: ranks of the truth
// are uniform. A calibrated sampler fails for one seed in a thousand; one that
// gets stuck, for most.
func TestMixturesAreCalibrated(t *testing.T) {
	prior, err := gmm.BoxPrior([]float64{-8}, []float64{8}, 2)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := Grid([]float64{-8}, []float64{8}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	c := Replicate{Prior: prior, Landmarks: marks, Rows: 300, Noise: 3, RowsNoise: 5, Sampling: Sampling{Particles: 256, Sweeps: 3, Seed: 7}}
	all := calibrated(t, c)
	if !gmm.Pass(all, 0.001) {
		t.Errorf("%+v", all)
	}
	if _, err := c.Calibrate([][]float64{{1}}); err == nil {
		t.Error("a replicate without its ranks was taken")
	}
}
