package glm

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy/account"
)

// clippedSum is a session's sum for tests: rows drawn with a probability, clipped to
// the bound, with normal noise of standard deviation sd on every entry.
func clippedSum(r *rand.Rand, d *Design, length int, rate, bound, sd float64) func(contribution func(x Row, y float64, v []float64)) ([]float64, error) {
	return func(contribution func(x Row, y float64, v []float64)) ([]float64, error) {
		sum, v := make([]float64, length), make([]float64, length)
		for i := range d.Rows() {
			if rate < 1 && r.Float64() >= rate {
				continue
			}
			clear(v)
			contribution(d.Row(i), d.Outcome(i), v)
			f := ClipFactor(math.Sqrt(dot(v, v)), bound)
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

// naturalRun is the synchronous schedule of natural updates. Noise holds each site's
// multiplier; nil is none.
func naturalRun(t testing.TB, n Natural, sites []*Design, prior Gaussian, rounds int, bound, damping float64, noise []float64, r *rand.Rand) (Gaussian, []Gaussian) {
	t.Helper()
	factors := make([]Gaussian, len(sites))
	for m := range factors {
		factors[m] = Flat(len(prior.Eta))
	}
	variance := NoiseVariance(bound, noise, rounds)
	q := prior
	for k := range rounds {
		for m, d := range sites {
			sd := 0.0
			if noise != nil {
				sd = noise[m] * bound
			}
			sum, err := clippedSum(r, d, n.Len(), 1, bound, sd)(n.Contribution(q))
			if err != nil {
				t.Fatal(err)
			}
			change, err := n.Change(q, factors[m], damping, k, sum)
			if err != nil {
				t.Fatal(err)
			}
			factors[m] = factors[m].Times(change)
		}
		q = NoiseAware(prior, factors, variance)
	}
	return q, factors
}

// Without noise and clipping the fixed point is central inference.
func TestNaturalStepsConvergeToCentralInference(t *testing.T) {
	for name, c := range map[string]struct {
		l Likelihood
		d *Design
	}{
		"logistic": {Logistic{}, simulated(1, 60, 3, binary)},
		"linear":   {Linear{2}, simulated(2, 60, 3, func(r *rand.Rand, f float64) float64 { return f + r.NormFloat64() })},
		"softmax": {Softmax{3}, simulated(3, 90, 2, func(r *rand.Rand, f float64) float64 {
			return math.Abs(math.Round(math.Max(-2, math.Min(f, 2))))
		})},
	} {
		t.Run(name, func(t *testing.T) {
			prior := Isotropic(c.l.Activations()*c.d.Columns(), 0, 0.25)
			want, _ := optimise(t, &Local{c.l, c.d, prior})
			n := Natural{c.l, c.d.Columns()}
			q, _ := naturalRun(t, n, sitesOf(c.d, 3), prior, 1500, math.Inf(1), 0.5, nil, nil)
			near(t, "eta", want.Eta, q.Eta, 1e-4)
			near(t, "lambda", want.Lambda, q.Lambda, 1e-4)
		})
	}
}

// A contribution is the derivative of the expected log-likelihood, and nothing of
// the divergence.
func TestNaturalContributionsAddUpToTheGradient(t *testing.T) {
	d := simulated(4, 40, 5, binary)
	q := Isotropic(5, 0.3, 0.7)
	n := Natural{Logistic{}, 5}
	got, err := clippedSum(nil, d, n.Len(), 1, math.Inf(1), 0)(n.Contribution(q))
	if err != nil {
		t.Fatal(err)
	}
	local := Local{Logistic{}, d, q} // with q as its own cavity the divergence is at its minimum
	mean, variance := q.Moments()
	gradMean, gradLogVar := make([]float64, 5), make([]float64, 5)
	local.Value(mean, []float64{math.Log(0.7), math.Log(0.7), math.Log(0.7), math.Log(0.7), math.Log(0.7)}, gradMean, gradLogVar)
	near(t, "by means", gradMean, got[:5], 1e-10)
	for j := range variance {
		gradLogVar[j] *= -2 / variance[j]
	}
	near(t, "curvatures", gradLogVar, got[5:], 1e-10)
}

func TestNaturalContributionsAllocateNothing(t *testing.T) {
	for _, l := range []Likelihood{Logistic{}, Linear{1}, Softmax{3}} {
		n := Natural{l, 4}
		v := make([]float64, n.Len())
		contribution := n.Contribution(Isotropic(n.Len()/2, 0, 1))
		row := Row{Index: []int32{0, 3}, Value: []float64{1, 2}}
		if a := testing.AllocsPerRun(20, func() { contribution(row, 1, v) }); a > 0 {
			t.Errorf("%T: %v allocations", l, a)
		}
	}
}

// The worst case for steps scaled by a diagonal: all entries of a row say the same.
// There the default damping takes a pair of steps neither forth and back nor apart.
func TestNaturalStepsAreStableWithCopiesOfAFeature(t *testing.T) {
	const copies = 12
	r := rand.New(rand.NewPCG(5, 5))
	d := NewDesign(copies)
	for range 300 {
		x, row := r.NormFloat64(), make([]float64, copies)
		for j := range row {
			row[j] = x
		}
		if err := d.AppendDense(row, binary(r, x)); err != nil {
			t.Fatal(err)
		}
	}
	prior := Isotropic(copies, 0, 1)
	want, _ := optimise(t, &Local{Logistic{}, d, prior})
	start, end := 0.0, 0.0
	for _, rounds := range []int{1, 60} {
		q, _ := naturalRun(t, Natural{Logistic{}, copies}, []*Design{d}, prior, rounds, math.Inf(1), NaturalDamping(copies), nil, nil)
		kl, err := q.KL(want)
		if err != nil {
			t.Fatal(err)
		}
		if rounds == 1 {
			start = kl
		}
		end = kl
	}
	if !(end < start/100) {
		t.Errorf("from %v nats away after a round to %v after sixty", start, end)
	}
}

// A curvature that comes alone does not move the mean, and the memory of curvatures
// begins as their average.
func TestNaturalChangeKeepsTheMean(t *testing.T) {
	q := Gaussian{[]float64{3}, []float64{2}} // mean 1.5
	factor := Gaussian{[]float64{2}, []float64{1}}
	// ĝ = η − λ m leaves nothing to step along.
	change, err := Natural{Logistic{}, 1}.Change(q, factor, 0.5, 1, []float64{2 - 1.5, 5})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "precision", []float64{(5.0 - 1) / 2}, change.Lambda, 1e-15)
	after := q.Times(change)
	near(t, "mean", []float64{1.5}, []float64{after.Eta[0] / after.Lambda[0]}, 1e-15)
	if _, err := (Natural{Logistic{}, 1}).Change(q, factor, 0.5, 1, []float64{1}); err == nil {
		t.Error("a sum of one number was accepted")
	}
	if _, err := (Natural{Logistic{}, 1}).Change(q, factor, 0.5, 1, []float64{math.Inf(1), 0}); err == nil {
		t.Error("an infinite sum was accepted")
	}
}

func TestNoiseAwareIsBetweenPriorAndProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := func(name string, lo, hi float64) Gaussian {
			f := rapid.SliceOfN(rapid.Float64Range(lo, hi), 4, 4)
			return Gaussian{rapid.SliceOfN(rapid.Float64Range(-9, 9), 4, 4).Draw(t, name), f.Draw(t, name)}
		}
		prior := g("prior", 0.1, 9)
		factors := []Gaussian{g("first", -5, 9), g("second", -5, 9)}
		v := rapid.Float64Range(0, 50).Draw(t, "variance")
		q := NoiseAware(prior, factors, v)
		if err := q.CheckProper(4); err != nil {
			t.Fatal(err)
		}
		product := prior.Times(factors[0]).Times(factors[1])
		for j, l := range q.Lambda {
			said := factors[0].Lambda[j] + factors[1].Lambda[j]
			if l < prior.Lambda[j] || l > prior.Lambda[j]+max(0, said)+1e-12 {
				t.Fatalf("precision %v of prior %v and product %v", l, prior.Lambda[j], product.Lambda[j])
			}
			if said <= 0 && (q.Eta[j] != prior.Eta[j] || l != prior.Lambda[j]) {
				t.Fatalf("factors without precision moved weight %d", j)
			}
			if said > 0 && v == 0 && math.Abs(q.Eta[j]-product.Eta[j]) > 1e-12 {
				t.Fatalf("without noise weight %d is not that of the product", j)
			}
		}
	})
}

// naturalNoise is the multiplier of each of so many releases at a total.
func naturalNoise(t testing.TB, releases int, total account.Budget) float64 {
	t.Helper()
	f, err := account.Scale([]account.Mechanism{{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: releases}}, account.AddRemove, total)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func BenchmarkNaturalContribution(b *testing.B) {
	d := simulated(8, 1000, 100, binary)
	n := Natural{Logistic{}, 100}
	v := make([]float64, n.Len())
	contribution := n.Contribution(Isotropic(100, 0, 0.01))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		contribution(d.Row(i%1000), d.Outcome(i%1000), v)
	}
}
