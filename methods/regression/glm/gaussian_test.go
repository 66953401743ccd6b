package glm

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// densities draws two densities over the same weights.
func densities(t *rapid.T) (q, p Gaussian) {
	d := rapid.IntRange(1, 6).Draw(t, "weights")
	draw := func(name string) Gaussian {
		g, err := FromMoments(
			rapid.SliceOfN(rapid.Float64Range(-5, 5), d, d).Draw(t, name+" mean"),
			rapid.SliceOfN(rapid.Float64Range(0.01, 10), d, d).Draw(t, name+" variance"))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return draw("q"), draw("p")
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

func TestQuotientUndoesProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, p := densities(t)
		back := q.Times(p).Over(p)
		near(t, "eta", q.Eta, back.Eta, 1e-10)
		near(t, "lambda", q.Lambda, back.Lambda, 1e-10)
		twice := q.Power(2)
		near(t, "square", q.Times(q).Eta, twice.Eta, 0)
	})
}

func TestDivergenceIsThatOfItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, p := densities(t)
		kl, err := q.KL(p)
		if err != nil || kl < 0 {
			t.Fatal(kl, err)
		}
		m, v := q.Moments()
		n, w := p.Moments()
		want := 0.0
		for j := range m {
			want += (math.Log(w[j]/v[j]) + (v[j]+(m[j]-n[j])*(m[j]-n[j]))/w[j] - 1) / 2
		}
		near(t, "KL", []float64{want}, []float64{kl}, 1e-9)
		if self, err := q.KL(q); err != nil || self != 0 {
			t.Fatalf("KL(q, q) = %v, %v", self, err)
		}
	})
}

// Whatever is refined, in whatever order: q stays the prior times the factors,
// no factor has a negative precision, and every cavity is a density.
func TestRefinementKeepsEveryCavityADensity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prior, _ := densities(t)
		d := len(prior.Eta)
		q, factors := prior, []Gaussian{Flat(d), Flat(d), Flat(d)}
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			m := rapid.IntRange(0, 2).Draw(t, "site")
			target, err := FromMoments(
				rapid.SliceOfN(rapid.Float64Range(-5, 5), d, d).Draw(t, "mean"),
				rapid.SliceOfN(rapid.Float64Range(0.01, 10), d, d).Draw(t, "variance"))
			if err != nil {
				t.Fatal(err)
			}
			factor, change, _ := Refine(factors[m], q, target, rapid.Float64Range(0.05, 1).Draw(t, "damping"))
			factors[m], q = factor, q.Times(change)
			product := prior
			for k, f := range factors {
				product = product.Times(f)
				if l := slices.Min(f.Lambda); l < 0 {
					t.Fatalf("factor %d has precision %v", k, l)
				}
			}
			near(t, "q.lambda", product.Lambda, q.Lambda, 1e-9)
			near(t, "q.eta", product.Eta, q.Eta, 1e-9)
			for k := range factors {
				if err := q.Over(factors[k]).CheckProper(d); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
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
	if _, err := Isotropic(2, 0, 1).KL(Flat(2)); err == nil {
		t.Error("a divergence from what is no density")
	}
}

// Whatever a site is sent as its factor or state: checks refuse it, or one more
// refinement works.
func FuzzNaturalParameters(f *testing.F) {
	f.Add([]byte(`{"eta": [1, 2], "lambda": [1, 0.5]}`))
	f.Add([]byte(`{"eta": [1e308], "lambda": [1e-308]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var g Gaussian
		if json.Unmarshal(data, &g) != nil || g.CheckProper(len(g.Eta)) != nil || len(g.Eta) == 0 {
			return
		}
		prior := Isotropic(len(g.Eta), 0, 1)
		factor, change, _ := Refine(g, prior, prior, 0.5)
		if err := factor.Check(len(g.Eta)); err != nil {
			t.Error(err)
		}
		if err := change.Check(len(g.Eta)); err != nil {
			t.Error(err)
		}
	})
}
