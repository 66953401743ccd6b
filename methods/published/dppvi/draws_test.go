package dppvi

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/regression/glm"
)

// clippedSum is a session's sum for tests: rows drawn with a probability, clipped to
// the bound, with normal noise of standard deviation sd on every entry.
func clippedSum(r *rand.Rand, d *glm.Design, length int, rate, bound, sd float64) func(contribution func(x glm.Row, y float64, v []float64)) ([]float64, error) {
	return func(contribution func(x glm.Row, y float64, v []float64)) ([]float64, error) {
		sum, v := make([]float64, length), make([]float64, length)
		for i := range d.Rows() {
			if rate < 1 && r.Float64() >= rate {
				continue
			}
			clear(v)
			contribution(d.Row(i), d.Outcome(i), v)
			norm := glm.Row{Value: v}.Norm()
			f := clipFactor(norm, bound)
			for j, x := range v {
				sum[j] += f * x
			}
		}
		for j := range sum {
			if sd > 0 {
				sum[j] += sd * r.NormFloat64()
			}
		}
		return sum, nil
	}
}

func near(t rapid.TB, what string, want, got []float64, tol float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestPaperDeltaIsBelowOneOverN(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.1, 10: 0.1, 11: 0.01, 390: 1e-3, 1000: 1e-3, 1001: 1e-4, 7424: 1e-4} {
		if got := paperDelta(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

func TestPaperBatches(t *testing.T) {
	for n, want := range map[int]int{5: 5, 20: 20, 390: 20, 1172: 24, 3907: 79, 7424: 149} {
		if got := (&updateSettings{BatchShare: 0.02}).of(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}
