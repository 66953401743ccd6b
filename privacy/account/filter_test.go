package account

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func filters(t interface{ Fatal(...any) }, b Budget, a Adjacency) map[string]Filter {
	g, err := NewGaussianFilter(b, a)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRenyiFilter(b, a)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Filter{"Gaussian": g, "Rényi": r}
}

// A filter fed at random, as a site would be, never admits more than its
// budget; the mechanisms having been fixed after all, the tight ε tells. It
// stops only when what is proposed would exceed it, and what it admits of
// Gaussian noise comes close.
func TestFiltersNeverExceedTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{math.Exp(rapid.Float64Range(-1, 2.5).Draw(t, "ln ε")),
			math.Exp(rapid.Float64Range(-18, -5).Draw(t, "ln δ"))}
		a := rapid.SampledFrom([]Adjacency{AddRemove, ReplaceOne}).Draw(t, "adjacency")
		proposals := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Mechanism {
			m := Mechanism{Gaussian, rapid.Float64Range(1, 30).Draw(t, "noise"), 1,
				rapid.SampledFrom([]float64{math.Sqrt2, 2}).Draw(t, "diameter"), rapid.IntRange(1, 5).Draw(t, "count")}
			if rapid.Bool().Draw(t, "Laplace") {
				m.Kind = Laplace
			}
			return m
		}), 1, 8).Draw(t, "proposals")
		for name, f := range filters(t, b, a) {
			var spent []Mechanism
			for _, m := range proposals {
				before, err := f.Left(spent)
				if err != nil {
					t.Fatal(err)
				}
				ok, err := f.Admit(spent, []Mechanism{m})
				if err != nil {
					t.Fatal(err)
				}
				after, err := f.Left(append(spent[:len(spent):len(spent)], m))
				if err != nil || after > before || ok && after < 0 || !ok && after > 1e-9 {
					t.Errorf("%s filter: admitted %v, %v of the budget left before and %v after (%v)", name, ok,
						before, after, err)
				}
				if ok {
					spent = append(spent, m)
				}
			}
			if len(spent) == 0 {
				continue
			}
			if epsilon, err := Epsilon(spent, a, b.Delta); err != nil || epsilon > b.Epsilon*(1+1e-4) {
				t.Errorf("%s filter of %+v admitted ε %v (%v): %+v", name, b, epsilon, err, spent)
			}
		}
	})
}

// A plan that was calibrated to the budget fits, to the last release and in any
// order, and nothing beside it.
func TestGaussianFilterLosesNothing(t *testing.T) {
	for _, b := range []Budget{{3, 1e-5}, {0.1, 1e-9}, {5000, 1e-3}} {
		for _, n := range []int{1, 3, 7, 1000} {
			factor, err := AnalyticGaussian(b.Epsilon, b.Delta)
			if err != nil {
				t.Fatal(err)
			}
			m := Mechanism{Gaussian, factor * math.Sqrt(float64(n)), 1, 2, 1}
			var spent []Mechanism
			f := filters(t, b, AddRemove)["Gaussian"]
			for i := range n {
				if ok, err := f.Admit(spent, []Mechanism{m}); !ok || err != nil {
					t.Fatalf("release %d of %d is not admitted (%v)", i+1, n, err)
				}
				spent = append(spent, m)
			}
			if left, err := f.Left(spent); err != nil || left > 1e-9 {
				t.Errorf("%v of the budget is left (%v)", left, err)
			}
			tiny := Mechanism{Gaussian, factor * 1e4, 1, 2, 1}
			if ok, err := f.Admit(spent, []Mechanism{tiny}); ok || err != nil {
				t.Errorf("more is admitted after %d releases (%v)", n, err)
			}
			double := Mechanism{Gaussian, factor, 1, 2, 1}
			if ok, err := filters(t, b, ReplaceOne)["Gaussian"].Admit(nil, []Mechanism{double}); ok || err != nil {
				t.Errorf("an exchange is charged like a removal (%v)", err)
			}
		}
	}
}

// Whatever pure ε is, its trade-off curve lies above that of its μ: its δ at
// every ε′ is no larger, and at the corner the two touch.
func TestLaplaceIsBoundByItsMu(t *testing.T) {
	for _, e := range []float64{1e-6, 1e-3, 0.1, 1, 3, 7.9, 8.1, 20, 100, 599, 601, 1e5} {
		mu := laplaceMu(e)
		for i := range 50 {
			at := e * float64(i) / 50
			// of the worst pure mechanism, randomised response
			worst := math.Log(-math.Expm1(at-e)) - math.Log1p(math.Exp(-e))
			if got := gaussianLogDelta(mu, at); got < worst-1e-12*max(1, math.Abs(worst)) {
				t.Errorf("ε %v: ln δ(%v) is %v, of its μ %v %v", e, at, worst, mu, got)
			}
		}
		if e < 600 {
			// The corner is at the quantile that both errors share.
			if got, want := math.Log(math.Erfc(mu/2/math.Sqrt2)/2),
				-e-math.Log1p(math.Exp(-e)); math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("ε %v: the corner is at %v, want %v", e, got, want)
			}
		}
	}
}

func TestFiltersOfSampledMechanisms(t *testing.T) {
	b := Budget{3, 1e-5}
	sampled := Mechanism{Gaussian, 2, 0.02, 2, 100}
	whole := sampled
	whole.Rate = 1
	f := filters(t, b, AddRemove)
	gaussian := f["Gaussian"].(*GaussianFilter)
	used, err1 := gaussian.used([]Mechanism{sampled})
	same, err2 := gaussian.used([]Mechanism{whole})
	if used != same || err1 != nil || err2 != nil {
		t.Errorf("the Gaussian filter takes %v for sampled records and %v for all (%v, %v)", used, same, err1, err2)
	}
	if ok, err := f["Rényi"].Admit(nil, []Mechanism{sampled}); !ok || err != nil {
		t.Errorf("the Rényi filter does not take sampled records at their price (%v)", err)
	}
	if ok, err := f["Rényi"].Admit(nil, []Mechanism{whole}); ok || err != nil {
		t.Errorf("the Rényi filter takes all records for a sample (%v)", err)
	}
}

func TestRenyiOrderFollowsTheBudget(t *testing.T) {
	for _, b := range []Budget{{1, 1e-5}, {10, 1e-5}, {0.01, 1e-6}, {2000, 1e-5}} {
		f, err := NewRenyiFilter(b, AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		// One Gaussian that just fits: its own best order is that of the filter.
		m := Mechanism{Gaussian, math.Sqrt(f.order / 2 / f.limit), 1, 2, 1}
		epsilon, order, err := epsilonRDP([]Mechanism{m}, AddRemove, b.Delta)
		if err != nil || order != f.Order() || relative(epsilon, b.Epsilon) > 1e-9 {
			t.Errorf("%+v: order %v; a release that just fits has ε %v at order %v (%v)", b, f.Order(),
				epsilon, order, err)
		}
	}
}

func TestWhatFiltersRefuse(t *testing.T) {
	for _, b := range []Budget{{0, 1e-5}, {math.Inf(1), 1e-5}, {1, 0}, {1, 1}, {math.NaN(), 0.1}} {
		if _, err := NewGaussianFilter(b, AddRemove); err == nil {
			t.Errorf("Gaussian filter of %+v", b)
		}
		if _, err := NewRenyiFilter(b, AddRemove); err == nil {
			t.Errorf("Rényi filter of %+v", b)
		}
	}
	if _, err := NewGaussianFilter(Budget{1, 0.1}, ""); err == nil {
		t.Error("a filter without an adjacency")
	}
	if _, err := NewRenyiFilter(Budget{1, 0.1}, ""); err == nil {
		t.Error("a filter without an adjacency")
	}
	if _, err := NewRenyiFilter(Budget{1e-7, 1e-5}, AddRemove); err == nil ||
		!strings.Contains(err.Error(), "too little") {
		t.Errorf("a budget that no order allows: %v", err)
	}
	good, bad := Mechanism{Gaussian, 1, 1, 2, 1}, Mechanism{Gaussian, math.NaN(), 1, 2, 1}
	for name, f := range filters(t, Budget{1, 1e-5}, AddRemove) {
		if ok, err := f.Admit([]Mechanism{bad}, nil); ok || err == nil ||
			!strings.Contains(err.Error(), "spent so far") {
			t.Errorf("%s filter: %v, %v", name, ok, err)
		}
		if ok, err := f.Admit(nil, []Mechanism{good, bad}); ok || err == nil ||
			!strings.Contains(err.Error(), "proposed: mechanism 2") {
			t.Errorf("%s filter: %v, %v", name, ok, err)
		}
		if _, err := f.Left([]Mechanism{bad}); err == nil {
			t.Errorf("%s filter counts what makes no sense", name)
		}
	}
}

func BenchmarkFilters(b *testing.B) {
	var ms []Mechanism
	for i := range 200 {
		ms = append(ms, Mechanism{Gaussian, 20 + float64(i), 1, 2, 3}, Mechanism{Gaussian, 5 + float64(i), 0.01, 2,
			100}, Mechanism{Laplace, 100 + float64(i), 1, 2, 1})
	}
	for name, f := range filters(b, Budget{3, 1e-5}, ReplaceOne) {
		b.Run(name+"/600 charges", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Admit(ms, ms[:1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
