package dppvi

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
)

// simulated draws a design of standard normal entries, a third of them zero, with
// outcomes from its own weights.
func simulated(seed uint64, rows, columns int, outcome func(r *rand.Rand, f float64) float64) *glm.Design {
	r := rand.New(rand.NewPCG(seed, 5))
	w := make([]float64, columns)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	d := glm.NewDesign(columns)
	x := make([]float64, columns)
	for range rows {
		f := 0.0
		for j := range x {
			x[j] = 0
			if r.Float64() > 1.0/3 {
				x[j] = r.NormFloat64()
			}
			f += x[j] * w[j]
		}
		if err := d.AppendDense(x, outcome(r, f)); err != nil {
			panic(err)
		}
	}
	return d
}

func binary(r *rand.Rand, f float64) float64 {
	if r.Float64() < 1/(1+math.Exp(-f)) {
		return 1
	}
	return -1
}

// optimise returns the optimum from the prior, which has to be found.
func optimise(t testing.TB, l *glm.Local) (glm.Gaussian, glm.Info) {
	t.Helper()
	q, info, err := l.Optimum(l.Cavity, glm.Solve{})
	if err != nil {
		t.Fatal(err)
	}
	if !info.Converged || info.Gradient > 1e-6 {
		t.Fatalf("%+v", info)
	}
	return q, info
}

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
			f := glm.ClipFactor(norm, bound)
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

func near(t testing.TB, what string, want, got []float64, tol float64) {
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
