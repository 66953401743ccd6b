package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
)

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
