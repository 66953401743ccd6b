package glm

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// brute integrates a function against N(a, c) by the trapezoidal rule over ±12 deviations.
func brute(g func(f float64) float64, a, c float64) float64 {
	const steps = 6000
	s, sum := math.Sqrt(c), 0.0
	for i := range steps + 1 {
		z := -12 + 24*float64(i)/steps
		sum += 24.0 / steps * g(a+s*z) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	}
	return sum
}

func logPoisson(y, f float64) float64 {
	factorial, _ := math.Lgamma(y + 1)
	return y*f - math.Exp(f) - factorial
}

func TestPoissonAgainstIntegration(t *testing.T) {
	p := make([]float64, 1)
	for _, y := range []float64{0, 1, 7, 300} {
		for _, a := range []float64{-3, 0, 2, 5} {
			for _, c := range []float64{1e-4, 0.3, 2, 6} {
				Poisson{}.Predict([]float64{a}, []float64{c}, p)
				mean := brute(math.Exp, a, c)
				near(t, "rate", []float64{mean}, p, 1e-9)
				spread := brute(func(f float64) float64 { return math.Exp(f) + math.Exp(2*f) }, a, c) - mean*mean
				near(t, "spread", []float64{math.Sqrt(spread)}, []float64{CountSpread(a, c)}, 1e-6)
				log := math.Log(brute(func(f float64) float64 { return math.Exp(logPoisson(y, f)) }, a, c))
				// By parts of an integral that is below 1e-300 nothing can be compared.
				if log > -300 {
					near(t, "probability", []float64{log}, []float64{LogExpectPoisson(y, a, c)}, 1e-9)
				}
			}
		}
	}
}

// Probabilities of all counts add up to 1 under any activation.
func TestPoissonProbabilitiesAddUp(t *testing.T) {
	for _, a := range []float64{-2, 1, 3} {
		for _, c := range []float64{0, 0.1, 1} {
			sum := 0.0
			for y := range 3000 {
				sum += math.Exp(LogExpectPoisson(float64(y), a, c))
			}
			if math.Abs(sum-1) > 1e-4 {
				t.Errorf("a = %v, c = %v: the probabilities add up to %v", a, c, sum)
			}
		}
	}
}

// Whoever chooses means and variances, numbers stay finite, and the rate's derivatives
// are continuous where the exponential ends.
func TestPoissonIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := float64(rapid.IntRange(0, largestCount).Draw(t, "y"))
		a := rapid.Float64Range(-1e50, 1e50).Draw(t, "a")
		c := rapid.Float64Range(0, 1e50).Draw(t, "c")
		first := make([]float64, 1)
		v, curve := Poisson{}.LogLik(y, []float64{a}, first)
		for _, x := range []float64{first[0], curve, v, CountSpread(a, c)} {
			if !Finite(x) {
				t.Fatalf("%v, %v, %v", v, first, curve)
			}
		}
		if p := LogExpectPoisson(y, rapid.Float64Range(-60, 60).Draw(t, "usual a"),
			rapid.Float64Range(0, 50).Draw(t, "usual c")); math.IsNaN(p) || p > 1e-3 {
			t.Fatalf("a logarithm of a probability of %v", p)
		}
	})
	const h = 1e-6
	v0, d0, s0 := rate(logRateEnd - h)
	v1, d1, s1 := rate(logRateEnd + h)
	near(t, "at the end", []float64{v0 / v1, d0 / d1, s0 / s1}, []float64{1, 1, 1}, 1e-5)
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

func TestWhatIsNoGaussianIsRefused(t *testing.T) {
	for want, g := range map[string]Gaussian{
		"of 1 and 2 entries": {[]float64{1}, []float64{1, 2}},
		"not finite":         {[]float64{1, math.NaN()}, []float64{1, 1}},
		"not positive":       {[]float64{1, 1}, []float64{1, 0}},
	} {
		if err := g.CheckProper(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", g, err, want)
		}
	}
	if _, err := FromMoments([]float64{0}, []float64{-1}); err == nil {
		t.Error("a negative variance passes")
	}
	if _, err := FromMoments([]float64{0}, nil); err == nil {
		t.Error("a mean without variance passes")
	}
}
