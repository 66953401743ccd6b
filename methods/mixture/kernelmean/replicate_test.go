package kernelmean

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
)

// Sixteen data sets of the toy at ε 5: 90 % intervals hold 96 component means as often as
// chance allows. Honest intervals fail for one seed in five hundred, intervals two
// thirds as wide in most.
func TestIntervalsOfTheToyHoldTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("sixteen posteriors, and nothing that the others do not race")
	}
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
	if testing.Short() {
		t.Skip("40 posteriors")
	}
	prior, err := gmm.BoxPrior([]float64{-8}, []float64{8}, 2)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := Grid([]float64{-8}, []float64{8}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	c := Replicate{Prior: prior, Landmarks: marks, Rows: 300, Noise: 3, RowsNoise: 5, Sampling: Sampling{Particles: 256, Sweeps: 3, Seed: 7}}
	var ranks [][]float64
	for i := range 40 {
		r, err := c.Ranks(i)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, r)
	}
	all, err := c.Calibrate(ranks)
	if err != nil {
		t.Fatal(err)
	}
	if !gmm.Pass(all, 0.001) {
		t.Errorf("%+v", all)
	}
	if _, err := c.Calibrate([][]float64{{1}}); err == nil {
		t.Error("a replicate without its ranks was taken")
	}
}

// Rows that are drawn a few at a time are those that are drawn at once.
func TestSimulatedSumsAreThoseOfAllRows(t *testing.T) {
	m, n := toyTruth, 600
	rows := make([]float64, n*m.Dim)
	if err := m.Simulate(rand.New(rand.NewPCG(1, 2)), rows); err != nil {
		t.Fatal(err)
	}
	want, phi := make([]float64, toyMarks.Len()), make([]float64, toyMarks.Len())
	for at := 0; at < len(rows); at += m.Dim {
		toyMarks.Features(phi, rows[at:])
		for j, v := range phi {
			want[j] += v
		}
	}
	got, err := toyMarks.simulated(rand.New(rand.NewPCG(1, 2)), m, n)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("other sums: %v", err)
	}
}

// What a grid shares between landmarks changes nothing: neither a line's recurrence nor
// midpoints.
func TestMomentsOnAGridAreThoseOfItsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi, h := drawnBox(t, 1)
		d := len(lo)
		grid, err := Grid(lo, hi, h)
		if err != nil {
			t.Fatal(err)
		}
		points := grid
		points.Spacing = nil
		prior, err := gmm.BoxPrior(lo, hi, 2)
		if err != nil {
			t.Fatal(err)
		}
		m := gmm.NewMixture(2, d)
		prior.Sampler().Draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), m)
		mean, cov, err := grid.Moments(m)
		if err != nil {
			t.Fatal(err)
		}
		wantMean, wantCov, err := points.Moments(m)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range wantMean {
			if math.Abs(mean[i]-v) > 1e-13 {
				t.Fatalf("mean %d is %v, want %v", i, mean[i], v)
			}
		}
		for i, v := range wantCov {
			if math.Abs(cov[i]-v) > 1e-13 {
				t.Fatalf("covariance %d is %v, want %v", i, cov[i], v)
			}
		}
	})
}
