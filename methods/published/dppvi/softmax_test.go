package dppvi

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/regression/glm"
)

// drawActivations draws means and variances of every size, as a crafted posterior
// may give them.
func drawActivations(t *rapid.T, classes int) (a, c []float64) {
	e := rapid.Float64Range(-80, 160)
	for range classes {
		a = append(a, math.Pow(10, e.Draw(t, "a"))*rapid.SampledFrom([]float64{-1, 0, 1}).Draw(t, "sign"))
		c = append(c, math.Pow(10, e.Draw(t, "c"))*rapid.SampledFrom([]float64{0, 1}).Draw(t, "c or 0"))
	}
	return a, c
}

// Whoever chooses means and variances, a row costs no more than was said, and what
// comes out is a bound with probabilities.
func TestTheWorkOnARowIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, glm.MaxClasses).Draw(t, "classes")
		a, c := drawActivations(t, k)
		alpha := make([]float64, k)
		bound, passes := tilt(a, c, alpha)
		if passes > tiltMost {
			t.Fatalf("%d passes", passes)
		}
		sum := 0.0
		for _, x := range alpha {
			if !(x >= 0) {
				t.Fatalf("α = %v", alpha)
			}
			sum += x
		}
		// The bound is nowhere below any of the means, but for rounding.
		for _, x := range a {
			if bound < x-1e-12*(math.Abs(x)+slices.Max(c)) {
				t.Fatalf("a bound of %v on a mean of %v", bound, x)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("probabilities add up to %v", sum)
		}
	})
	// Those that Newton's method made little of: 2 082 evaluations each.
	worst := 0
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a, c, alpha := make([]float64, glm.MaxClasses), make([]float64, glm.MaxClasses), make([]float64, glm.MaxClasses)
		for k := range a {
			a[k], c[k] = math.Round(100*r.NormFloat64()), float64(r.IntN(2))*math.Pow(10, 8*r.Float64())
		}
		_, passes := tilt(a, c, alpha)
		worst = max(worst, passes)
	}
	if worst > tiltMost || tiltMost > 80 || worst < tiltPasses {
		t.Errorf("at most %d passes of %d: an average row needs 5, and the second search may have made none", worst, tiltMost)
	}
}

// Both searches find one minimum, at which α is the softmax of its exponents.
func TestBothSearchesFindTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, glm.MaxClasses).Draw(t, "classes")
		a := rapid.SliceOfN(rapid.Float64Range(-30, 30), k, k).Draw(t, "a")
		c := rapid.SliceOfN(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 8), rapid.Float64Range(0, 1e4)), k, k).Draw(t, "c")
		first, second, p := make([]float64, k), make([]float64, k), make([]float64, k)
		bound, _ := tilt(a, c, first)
		tiltByRoot(a, c, second)
		near(t, "α", first, second, 1e-9)
		near(t, "bound", []float64{tiltedBound(a, c, second, p)}, []float64{bound}, 1e-12)
		near(t, "stationary", second, p, 1e-9)
	})
}

func TestWrightSolvesItsEquation(t *testing.T) {
	for x := -45.0; x < 300; x += 0.01 {
		y := wright(x)
		// The residual moves y by y/(1 + y) of itself.
		if e := math.Abs(x-y-math.Log(y)) / (1 + y); e > 2e-14 {
			t.Fatalf("ω(%v) = %v is %v of itself away", x, y, e)
		}
	}
	for x, want := range map[float64]float64{-1000: 0, 1e80: 1e80, math.Inf(-1): 0} {
		if y := wright(x); y != want {
			t.Errorf("ω(%v) = %v, want %v", x, y, want)
		}
	}
}

// The rows that cost most, and average ones.
func BenchmarkSoftmaxRow(b *testing.B) {
	for name, size := range map[string]float64{"average": 1, "worst": 1e8} {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(2, 2))
			a, c, alpha := make([]float64, glm.MaxClasses), make([]float64, glm.MaxClasses), make([]float64, glm.MaxClasses)
			for k := range a {
				a[k], c[k] = r.NormFloat64(), size*r.Float64()
			}
			b.ReportAllocs()
			for b.Loop() {
				tilt(a, c, alpha)
			}
		})
	}
}
