package glm

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// drawLikelihood draws one of each kind, and an outcome that it knows.
func drawLikelihood(t *rapid.T) (Likelihood, float64) {
	switch rapid.IntRange(0, 4).Draw(t, "likelihood") {
	case 0:
		return Logistic{}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
	case 1:
		return Cloglog{}, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "y")
	case 2:
		return Linear{Variance: rapid.Float64Range(0.1, 4).Draw(t, "noise")}, rapid.Float64Range(-5, 5).Draw(t, "y")
	case 3:
		return Poisson{}, float64(rapid.IntRange(0, 20).Draw(t, "y"))
	}
	k := rapid.IntRange(2, 5).Draw(t, "classes")
	return Softmax{k}, float64(rapid.IntRange(0, k-1).Draw(t, "y"))
}

func TestDerivativesAreThoseOfTheLikelihood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, y := drawLikelihood(t)
		k := l.Activations()
		f := rapid.SliceOfN(rapid.Float64Range(-4, 3), k, k).Draw(t, "f")
		first, other := make([]float64, k), make([]float64, k)
		_, curve := l.LogLik(y, f, first)
		testkit.Do(t, l.Check(y))
		const h = 1e-5
		for i, old := range f {
			f[i] = old + h
			up, _ := l.LogLik(y, f, other)
			slope := other[i]
			f[i] = old - h
			down, _ := l.LogLik(y, f, other)
			f[i] = old
			near(t, "first", []float64{(up - down) / (2 * h)}, first[i:i+1], 1e-6)
			if k == 1 {
				near(t, "curve", []float64{(other[0] - slope) / (2 * h)}, []float64{curve}, 1e-6)
			}
		}
	})
}

// Both links against integration, in the tails too; and the logistic one as it is.
func TestBinaryExpectationsAgainstIntegration(t *testing.T) {
	first := make([]float64, 1)
	for _, l := range []Binary{Logistic{}, Cloglog{}} {
		for _, y := range []float64{-1, 1} {
			for _, a := range []float64{-9, -2, 0, 1.5, 3} {
				for _, s := range []float64{1e-3, 0.2, 0.64, 0.66, 1, 3} {
					of := func(f float64) float64 { v, _ := l.LogLik(y, []float64{f}, first); return v }
					want := brute(func(f float64) float64 { return math.Exp(of(f)) }, a, s*s)
					if want < 1e-25 { // from beyond what is integrated
						continue
					}
					near(t, "ln E p", []float64{math.Log(want)}, []float64{l.LogExpect(y, a, s*s)}, 1e-8)
					if y > 0 {
						p := make([]float64, 1)
						l.Predict([]float64{a}, []float64{s * s}, p)
						near(t, "E p", []float64{want}, p, 1e-9)
						continue
					}
					value, slope := l.ExpectNone(a, s*s)
					near(t, "E ln p", []float64{brute(of, a, s*s)}, []float64{value}, 1e-8)
					d := brute(func(f float64) float64 { l.LogLik(y, []float64{f}, first); return first[0] }, a, s*s)
					near(t, "slope", []float64{d}, []float64{slope}, 1e-8)
				}
			}
		}
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
		{Linear{Variance: 1}, math.Inf(1), "not finite"},
		{Linear{Variance: 0}, 1, "not positive"},
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
	Linear{Variance: 1}.Predict([]float64{4}, []float64{1}, p[:1])
	if p[0] != 4 {
		t.Errorf("mean %v", p[0])
	}
	Logistic{}.Predict([]float64{0}, []float64{9}, p[:1])
	if math.Abs(p[0]-0.5) > 1e-13 {
		t.Errorf("probability %v of an activation about zero", p[0])
	}
}
