package noised

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/pvi/gvi"
)

// overlapping are two levels of categories that nearly all rows have together or not at all, and an
// intercept: like being married, and being a husband. Outcomes are uncertain where they part alone.
func overlapping(n int, w []float64, r *rand.Rand) (c *columns, d data) {
	c = &columns{Feature: []int{0, 1, -1}, Category: []bool{true, true, false}, features: 2}
	return c, dataOf(n, w, r, func() (x gvi.Row) {
		first := r.Float64() < 0.47
		second := first && r.Float64() < 0.93 || !first && r.Float64() < 0.001
		for j, is := range []bool{first, second, true} {
			if is {
				x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, 1)
			}
		}
		return x
	})
}

// Fits settle where curvature is three times what the Gram matrix makes of it, and intervals of four
// standard deviations hold all weights: of 60, one misses by chance in 250 tests.
func TestFitsOfOverlappingLevelsSettle(t *testing.T) {
	w := []float64{4, -1, -4.5}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 51))
		c, d := overlapping(20_000, w, r)
		f, g, mean, covariance := rehearse(c, d, 100, 5, fault{told: 1, clips: 1, sign: 1}, r)
		if step, spread, un := f.unsettled(g, covariance); un {
			t.Errorf("seed %d: the last step is %.3f, and the spread %.3f", seed, step, spread)
		}
		for j := range w {
			if sd := math.Sqrt(covariance.At(j, j)); !(math.Abs(mean[j]-w[j]) < 4*sd) || sd > 0.2 {
				t.Errorf("seed %d, weight %d: %.2f, sd %.2f, want %.1f", seed, j, mean[j], sd, w[j])
			}
		}
	}
}

// What goes on moving is found, and noise alone does not count as that.
func TestFitsThatDoNotSettleAreFound(t *testing.T) {
	w := []float64{1, -1, 0.5, 2, -1}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 52))
		f, g, _, covariance := rehearse(numbersOnly(4), normalRows(2000, w, r), 0.1*math.Pow(100, r.Float64()), 5, fault{told: 1, clips: 1, sign: 1}, r)
		if step, spread, un := f.unsettled(g, covariance); un {
			t.Errorf("seed %d: the last step is %.3f, and the spread %.3f", seed, step, spread)
		}
		f.Trace[len(f.Trace)-1] = pace
		if _, _, un := f.unsettled(g, covariance); !un {
			t.Errorf("seed %d: a step of %v is not found", seed, pace)
		}
	}
}
