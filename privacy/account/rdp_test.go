package account

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func relative(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

func divergences(t interface{ Fatal(...any) }, a Adjacency, orders []float64, ms ...Mechanism) []float64 {
	rdp, err := RDP(ms, a, orders)
	if err != nil {
		t.Fatal(err)
	}
	return rdp
}

// The binomial sum and the quadrature share nothing but the definition.
func TestSampledDivergenceBySumAndByQuadrature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(0.15, 50).Draw(t, "noise")
		q := math.Exp(rapid.Float64Range(-14, -1e-6).Draw(t, "log rate"))
		order := rapid.IntRange(2, 60).Draw(t, "order")
		sum, integral := sampledSum(s, q, order), sampledIntegral(s, q, AddRemove, float64(order))
		if math.Abs(sum-integral) > 1e-10*max(1, math.Abs(sum)) {
			t.Errorf("ln E[…] is %v by the sum, %v by quadrature", sum, integral)
		}
	})
}

// Replace-one and fractional orders have no sum. Here is their definition in
// plain numbers, with finer steps on a wider window.
func TestSampledDivergenceByBruteForce(t *testing.T) {
	for _, c := range []struct{ s, q, order float64 }{
		{1, 0.1, 1.3}, {0.7, 0.5, 2.5}, {2, 0.9, 4}, {3, 0.01, 7.5}, {0.5, 0.3, 3}, {0.125, 0.99, 1.0025},
		{0.2, 0.01, 1.1}, {5, 0.2, 1.01},
	} {
		normal := func(z, mean float64) float64 {
			return math.Exp(-(z-mean)*(z-mean)/(2*c.s*c.s)) / (c.s * math.Sqrt(2*math.Pi))
		}
		for a, other := range map[Adjacency]float64{AddRemove: 0, ReplaceOne: -1} {
			sum, step := 0.0, min(c.s, c.s*c.s)/9
			for z := -1 - 30*c.s; z < 2*c.order+30*c.s; z += step {
				p := (1-c.q)*normal(z, 0) + c.q*normal(z, 1)
				if r := (1-c.q)*normal(z, 0) + c.q*normal(z, other); r > 0 {
					sum += step * math.Pow(p/r, c.order) * r
				}
			}
			want := math.Log(sum) / (c.order - 1)
			got := divergences(t, a, []float64{c.order}, Mechanism{Gaussian, c.s, c.q, 2, 1})[0]
			if relative(got, want) > 1e-9 && math.Abs(got-want) > 1e-12/(c.order-1) {
				t.Errorf("%s %+v: %v, by brute force %v", a, c, got, want)
			}
		}
	}
}

func TestDivergencesAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Mechanism{Gaussian, rapid.Float64Range(0.06, 20).Draw(t, "noise"),
			rapid.Float64Range(1e-4, 0.99).Draw(t, "rate"), 2, rapid.IntRange(1, 1000).Draw(t, "count")}
		a := rapid.SampledFrom([]Adjacency{AddRemove, ReplaceOne}).Draw(t, "adjacency")
		order := 1 + math.Exp(rapid.Float64Range(-6, 3).Draw(t, "log order − 1"))
		r := divergences(t, a, []float64{order, order * 1.1}, m)
		more := func(what string, greater, less float64) {
			if greater < less*(1-1e-9) {
				t.Errorf("%s: %v is below %v", what, greater, less)
			}
		}
		more("a higher order", r[1], r[0])
		rarer, louder, twice, whole := m, m, m, m
		rarer.Rate *= 0.9
		louder.Noise *= 1.1
		twice.Count *= 2
		whole.Rate = 1
		more("a higher rate", r[0], divergences(t, a, []float64{order}, rarer)[0])
		more("less noise", r[0], divergences(t, a, []float64{order}, louder)[0])
		more("every record", divergences(t, a, []float64{order}, whole)[0], r[0])
		more("an exchange", divergences(t, ReplaceOne, []float64{order}, m)[0],
			divergences(t, AddRemove, []float64{order}, m)[0])
		if d := divergences(t, a, []float64{order}, twice)[0]; relative(d, 2*r[0]) > 1e-12 {
			t.Errorf("twice as often costs %v, not 2·%v", d, r[0])
		}
	})
}

// A rate of nearly 1 costs nearly what every record does; tiny noise and counts
// of millions overflow into +Inf and nothing else.
func TestDivergenceAtTheEnds(t *testing.T) {
	orders := []float64{1.001, 1.5, 2, 7.3, 64, 1e300}
	for _, a := range []Adjacency{AddRemove, ReplaceOne} {
		whole := divergences(t, a, orders, Mechanism{Gaussian, 1.5, 1, 2, 1})
		nearly := divergences(t, a, orders, Mechanism{Gaussian, 1.5, 1 - 1e-12, 2, 1})
		for i := range orders[:4] { // at order 64 the tail tells even these apart
			if relative(nearly[i], whole[i]) > 1e-8 {
				t.Errorf("%s, order %v: %v at a rate of nearly 1, %v at 1", a, orders[i], nearly[i], whole[i])
			}
		}
		for _, noise := range []float64{1e-300, 1e-9, 1e-3, 0.04999, 0.05, 0.3, 1e3, 1e9, 1e200} {
			for _, m := range []Mechanism{{Gaussian, noise, 0.3, 2, 1e6}, {Gaussian, noise, 1e-9, 2, 1},
				{Laplace, noise, 1, 2, 1e6}, {Gaussian, noise, 1, 2, 1e6}} {
				for i, r := range divergences(t, a, orders, m) {
					if math.IsNaN(r) || r < 0 || math.IsInf(r, 1) && noise > 1e-100 && orders[i] < 1e9 {
						t.Errorf("%s, order %v of %+v: %v", a, orders[i], m, r)
					}
				}
			}
		}
	}
}

// Small losses must not drown in rounding: at small ε the divergence of Laplace
// noise is αε²/2 up to third order.
func TestLaplaceDivergenceOfTinyLosses(t *testing.T) {
	for _, e := range []float64{1e-3, 1e-5, 1e-8} {
		for _, order := range []float64{1.001, 2, 30} {
			got, want := laplaceDivergence(e, order), order*e*e/2
			if relative(got, want) > order*e {
				t.Errorf("ε %v, order %v: %v, want about %v", e, order, got, want)
			}
		}
	}
	if got := laplaceDivergence(1e5, 1.5); relative(got, 1e5) > 1e-4 {
		t.Errorf("a pure loss of 1e5 has divergence %v", got)
	}
}

func TestEpsilonRDPStopsEarlyForNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := []Mechanism{
			{Gaussian, rapid.Float64Range(0.5, 20).Draw(t, "noise"), rapid.Float64Range(0.001, 1).Draw(t, "rate"), 2,
				rapid.IntRange(1, 100).Draw(t, "count")},
			{Laplace, rapid.Float64Range(0.2, 50).Draw(t, "scale"), 1, 2, rapid.IntRange(1, 10).Draw(t, "releases")},
		}
		delta := math.Exp(rapid.Float64Range(-60, -0.5).Draw(t, "log delta"))
		got, order, err := epsilonRDP(ms, AddRemove, delta)
		if err != nil {
			t.Fatal(err)
		}
		orders := defaultOrders[:slices.IndexFunc(defaultOrders, func(o float64) bool { return o > 300 })]
		want, _, err := ConvertRDP(orders, divergences(t, AddRemove, orders, ms...), delta)
		if err != nil || order <= 300 && got != want || got > want {
			t.Errorf("ε %v at order %v, over all orders up to 300 %v (%v)", got, order, want, err)
		}
	})
}

func TestConversionsAreOrdered(t *testing.T) {
	ms := []Mechanism{{Gaussian, 3, 1, 2, 10}}
	rho, ok, err := zcdp(ms, AddRemove)
	if err != nil || !ok || relative(rho, 10/18.) > 1e-15 {
		t.Fatalf("ρ is %v (%v, %v)", rho, ok, err)
	}
	for _, delta := range []float64{0.3, 1e-2, 1e-5, 1e-30} {
		rdp := divergences(t, AddRemove, defaultOrders, ms...)
		improved, _, err1 := ConvertRDP(defaultOrders, rdp, delta)
		classic, _, err2 := ConvertRDPClassic(defaultOrders, rdp, delta)
		best, order, err3 := epsilonZCDP(rho, delta)
		closed, err4 := epsilonZCDPClassic(rho, delta)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			t.Fatal(err1, err2, err3, err4)
		}
		exact := gaussianEpsilon(math.Sqrt(2*rho), delta)
		if !(exact <= best && best <= improved && improved <= best*1.01+1e-3 && improved < classic &&
			closed <= classic && best < closed) {
			t.Errorf("δ %v: tight %v ≤ real orders %v (%v) ≤ listed orders %v < classic %v, %v does not hold", delta,
				exact, best, order, improved, closed, classic)
		}
	}
	if _, ok, err := zcdp([]Mechanism{{Gaussian, 3, 0.5, 2, 10}}, AddRemove); ok || err != nil {
		t.Errorf("a sampled mechanism has a ρ (%v)", err)
	}
	if e, _, err := epsilonZCDP(0, 1e-5); e != 0 || err != nil {
		t.Errorf("no loss at all is an ε of %v (%v)", e, err)
	}
}

func TestWhatRDPRefuses(t *testing.T) {
	good := []Mechanism{{Gaussian, 1, 1, 2, 1}}
	for name, err := range map[string]error{
		"adjacency":    second(RDP(good, "", []float64{2})),
		"mechanism 2":  second(RDP([]Mechanism{good[0], {Gaussian, 0, 1, 2, 1}}, AddRemove, []float64{2})),
		"order 1":      second(RDP(good, AddRemove, []float64{1})),
		"order NaN":    second(RDP(good, AddRemove, []float64{math.NaN()})),
		"delta 0":      third(epsilonRDP(good, AddRemove, 0)),
		"delta 1":      third(ConvertRDP([]float64{2}, []float64{1}, 1)),
		"1 divergence": third(ConvertRDP([]float64{2, 3}, []float64{1}, 0.1)),
		"-1":           third(ConvertRDPClassic([]float64{2}, []float64{-1}, 0.1)),
		"rho -1":       third(epsilonZCDP(-1, 0.1)),
		"delta NaN":    second(epsilonZCDPClassic(1, math.NaN())),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

func BenchmarkRDP(b *testing.B) {
	for name, ms := range map[string][]Mechanism{
		"gaussian": {{Gaussian, 5, 1, 2, 100}},
		"laplace":  {{Laplace, 5, 1, 2, 100}},
		"sampled":  {{Gaussian, 1, 0.01, 2, 100000}},
		"mixed":    {{Gaussian, 1, 0.01, 2, 1000}, {Gaussian, 4, 0.1, 2, 50}, {Laplace, 10, 1, 2, 20}},
	} {
		for _, a := range []Adjacency{AddRemove, ReplaceOne} {
			b.Run(name+"/"+string(a), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := epsilonRDP(ms, a, 1e-5); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
