package dppvi

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// densities draws two densities over the same weights.
func densities(t *rapid.T) (q, p glm.Gaussian) {
	d := rapid.IntRange(1, 6).Draw(t, "weights")
	draw := func(name string) glm.Gaussian {
		g, err := glm.FromMoments(
			rapid.SliceOfN(rapid.Float64Range(-5, 5), d, d).Draw(t, name+" mean"),
			rapid.SliceOfN(rapid.Float64Range(0.01, 10), d, d).Draw(t, name+" variance"))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return draw("q"), draw("p")
}

func TestDivergenceIsThatOfItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, p := densities(t)
		kl, err := divergence(q, p)
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
		if self, err := divergence(q, q); err != nil || self != 0 {
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
		q, factors := prior, []glm.Gaussian{flat(d), flat(d), flat(d)}
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			m := rapid.IntRange(0, 2).Draw(t, "site")
			target, err := glm.FromMoments(
				rapid.SliceOfN(rapid.Float64Range(-5, 5), d, d).Draw(t, "mean"),
				rapid.SliceOfN(rapid.Float64Range(0.01, 10), d, d).Draw(t, "variance"))
			if err != nil {
				t.Fatal(err)
			}
			factor, change, _ := refine(factors[m], q, target, rapid.Float64Range(0.05, 1).Draw(t, "damping"))
			factors[m], q = factor, times(q, change)
			product := prior
			for k, f := range factors {
				product = times(product, f)
				if l := slices.Min(f.Lambda); l < 0 {
					t.Fatalf("factor %d has precision %v", k, l)
				}
			}
			near(t, "q.lambda", product.Lambda, q.Lambda, 1e-9)
			near(t, "q.eta", product.Eta, q.Eta, 1e-9)
			for k := range factors {
				testkit.Do(t, over(q, factors[k]).CheckProper(d))
			}
		}
	})
}

// Whatever a site is sent as its factor or state: checks refuse it, or one more
// refinement works.
func FuzzNaturalParameters(f *testing.F) {
	f.Add([]byte(`{"eta": [1, 2], "lambda": [1, 0.5]}`))
	f.Add([]byte(`{"eta": [1e308], "lambda": [1e-308]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var g glm.Gaussian
		if json.Unmarshal(data, &g) != nil || g.CheckProper(len(g.Eta)) != nil || len(g.Eta) == 0 {
			return
		}
		prior := glm.Isotropic(len(g.Eta), 0, 1)
		factor, change, _ := refine(g, prior, prior, 0.5)
		if err := factor.Check(len(g.Eta)); err != nil {
			t.Error(err)
		}
		if err := change.Check(len(g.Eta)); err != nil {
			t.Error(err)
		}
	})
}
