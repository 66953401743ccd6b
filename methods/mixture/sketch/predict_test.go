package sketch

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
)

// Means of simulated data sets are as far off as their law says: of cos x over n rows of the
// standard normal law, whose variance is ½(1 − e⁻¹)²/n, with noise and the count's part. 299 data
// sets tell a variance within 5 √(2/299) of it.
func TestNullHasTheLawOfTheObserved(t *testing.T) {
	m := gmm.Mixture{Dim: 1, Weights: []float64{1}, Means: []float64{0}, Covs: []float64{1}}
	f := Frequencies{Dim: 1, Centre: []float64{0}, Scale: []float64{1}, Omega: []float64{1}}
	e := math.Exp(-0.5)
	for _, rows := range []float64{40, 4000} { // all of them, and a part that stands for them
		o := Observation{Mean: []float64{e, 0}, Rows: rows, NoiseVar: 0.3 / rows, RowsVar: 0.5 * rows}
		got := 0.0
		for b := range uint64(nullSets) {
			off := testkit.Get(f.simulated(o, m, o.Mean, rand.New(rand.NewPCG(b, 5))))(t)
			got += off[0] * off[0] / nullSets
		}
		want := (0.5*math.Pow(1-math.Exp(-1), 2) + 0.3 + 0.5*e*e) / rows
		if math.Abs(got/want-1) > 5*math.Sqrt(2./nullSets) {
			t.Errorf("%v rows: variance %v, want %v", rows, got, want)
		}
	}
}

// Of three statistics one that no data set reaches has a probability of three in a hundred, of 99
// data sets, and one that most reach none to speak of.
func TestTailOf(t *testing.T) {
	null := make([][]float64, 99)
	for i := range null {
		null[i] = []float64{float64(i), float64(i), float64(i)}
	}
	for _, c := range []struct{ at, want float64 }{{99, 0.03}, {98, 0.06}, {10, 1}} {
		if got := tailOf([]float64{20, c.at, 30}, null); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", c.at, got, c.want)
		}
	}
}
