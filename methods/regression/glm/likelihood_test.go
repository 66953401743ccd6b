package glm

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawLikelihood draws one of each kind, and an outcome that it knows.
func drawLikelihood(t *rapid.T) (Likelihood, float64) {
	switch rapid.IntRange(0, 4).Draw(t, "likelihood") {
	case 0:
		return Logistic{}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
	case 1:
		return LogisticBy{Rule: Sampled([]float64{-1.2, 0.4, 0.9, 2})}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
	case 2:
		return Linear{rapid.Float64Range(0.1, 4).Draw(t, "noise")}, rapid.Float64Range(-5, 5).Draw(t, "y")
	case 3:
		return Poisson{}, float64(rapid.IntRange(0, 20).Draw(t, "y"))
	}
	k := rapid.IntRange(2, 5).Draw(t, "classes")
	return Softmax{k}, float64(rapid.IntRange(0, k-1).Draw(t, "y"))
}

func TestDerivativesAreThoseOfTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, y := drawLikelihood(t)
		k := l.Activations()
		z := append(rapid.SliceOfN(rapid.Float64Range(-4, 4), k, k).Draw(t, "a"),
			rapid.SliceOfN(rapid.Float64Range(0.05, 12), k, k).Draw(t, "c")...)
		first, second := make([]float64, 2*k), make([]float64, k*(2*k+1))
		value := l.Expect(y, z[:k], z[k:], first, second)
		if err := l.Check(y); err != nil {
			t.Fatal(err)
		}
		slopes := make([]float64, 2*k)
		l.Slopes(y, z[:k], z[k:], slopes)
		near(t, "slopes", first, slopes, 1e-14)
		const h = 1e-5
		at := 0
		up, down := make([]float64, 2*k), make([]float64, 2*k)
		for i := range z {
			old := z[i]
			z[i] = old + h
			vu := l.Expect(y, z[:k], z[k:], up, nil)
			z[i] = old - h
			vd := l.Expect(y, z[:k], z[k:], down, nil)
			z[i] = old
			near(t, "first", []float64{(vu - vd) / (2 * h)}, first[i:i+1], 1e-6)
			for j := range i + 1 {
				near(t, "second", []float64{(up[j] - down[j]) / (2 * h)}, second[at:at+1], 1e-6)
				at++
			}
		}
		if again := l.Expect(y, z[:k], z[k:], first, nil); again != value {
			t.Fatalf("%v without second derivatives, %v with them", again, value)
		}
	})
}

// With two classes the softmax is a logistic function of f₁ − f₀, so that its
// expectation is known: the bound is below it, by little, and exact without variance.
func TestSoftmaxBoundIsBelowTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Float64Range(-4, 4), 2, 2).Draw(t, "a")
		c := rapid.SliceOfN(rapid.Float64Range(0, 3), 2, 2).Draw(t, "c")
		first := make([]float64, 4)
		bound := Softmax{2}.Expect(1, a, c, first, nil)
		exact := expectLogSigmoid(a[1]-a[0], c[0]+c[1]).value
		if bound > exact+1e-12 {
			t.Fatalf("bound %v above the expectation %v", bound, exact)
		}
		if exact-bound > 0.06*(c[0]+c[1])+1e-12 {
			t.Fatalf("bound %v far below %v", bound, exact)
		}
		sharp := Softmax{2}.Expect(1, a, []float64{0, 0}, first, nil)
		near(t, "without variance", []float64{logSigma(a[1] - a[0])}, []float64{sharp}, 1e-14)
	})
}

// The bound needs its minimum over α also where variances are huge or zero.
func TestSoftmaxBoundConverges(t *testing.T) {
	for _, c := range [][]float64{{1e6, 1e6, 1e6}, {1e4, 0, 1e-8}, {0, 50, 3000}} {
		a := []float64{-30, 2, 10}
		alpha, p := make([]float64, 3), make([]float64, 3)
		tilt(a, c, alpha)
		tiltedBound(a, c, alpha, p)
		near(t, "stationary", alpha, p, 1e-6)
	}
}

func TestFixedRulesHaveNoSlopeByAVarianceOfZero(t *testing.T) {
	first, second := make([]float64, 2), make([]float64, 3)
	l := LogisticBy{Rule: Sampled([]float64{-1, 3})}
	if v := l.Expect(1, []float64{0.7}, []float64{0}, first, second); v != logSigma(0.7) || first[1] != 0 || second[1] != 0 || second[2] != 0 {
		t.Errorf("%v, %v, %v", v, first, second)
	}
}

func TestOutcomesAreChecked(t *testing.T) {
	for _, c := range []struct {
		l    Likelihood
		y    float64
		want string
	}{
		{Logistic{}, 2, "want -1 or +1"},
		{Logistic{}, math.NaN(), "want -1 or +1"},
		{Linear{1}, math.Inf(1), "not finite"},
		{Linear{0}, 1, "not positive"},
		{Poisson{}, -1, "whole number"},
		{Poisson{}, 1.5, "whole number"},
		{Poisson{}, 2e9, "whole number"},
		{Poisson{}, math.NaN(), "whole number"},
		{Softmax{3}, 3, "one of 0 to 2"},
		{Softmax{3}, 0.5, "one of 0 to 2"},
		{Softmax{1}, 0, "want 2 to 32"},
		{Softmax{99}, 0, "want 2 to 32"},
	} {
		if err := c.l.Check(c.y); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of %#v: %v, want %q", c.y, c.l, err, c.want)
		}
	}
}

func TestPredictionsOfClassesAreProbabilities(t *testing.T) {
	p := make([]float64, 3)
	Softmax{3}.Predict([]float64{1, 2, -1}, []float64{0.5, 3, 8}, p)
	if s := p[0] + p[1] + p[2]; math.Abs(s-1) > 1e-15 || p[2] > p[0] || p[2] > p[1] {
		t.Errorf("probabilities %v", p)
	}
	Linear{1}.Predict([]float64{4}, []float64{1}, p[:1])
	if p[0] != 4 {
		t.Errorf("mean %v", p[0])
	}
	Logistic{}.Predict([]float64{0}, []float64{9}, p[:1])
	if math.Abs(p[0]-0.5) > 1e-13 {
		t.Errorf("probability %v of an activation about zero", p[0])
	}
}
