package account

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// profile is δ(ε) of k releases of (ε₀, δ₀) in the worst case, summed over all
// outcomes of Kairouz, Oh, Viswanath 2015 in plain numbers.
func profile(each Releases, epsilon float64) float64 {
	k, e0 := each.Count, each.Each.Epsilon
	p := math.Exp(e0) / (1 + math.Exp(e0))
	sum, choose := 0.0, 1.0
	for l := 0; l <= k; l++ {
		yes := choose * math.Pow(p, float64(l)) * math.Pow(1-p, float64(k-l))
		no := choose * math.Pow(p, float64(k-l)) * math.Pow(1-p, float64(l))
		sum += max(0, yes-math.Exp(epsilon)*no)
		choose *= float64(k-l) / float64(l+1)
	}
	kept := math.Pow(1-each.Each.Delta, float64(k))
	return 1 - kept + kept*sum
}

func TestOptimalCompositionAttainsDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each := Releases{Budget{rapid.Float64Range(0.01, 3).Draw(t, "ε₀"),
			rapid.SampledFrom([]float64{0, 1e-6, 1e-3}).Draw(t, "δ₀")}, rapid.IntRange(1, 40).Draw(t, "k")}
		delta := math.Exp(rapid.Float64Range(-9, -0.2).Draw(t, "ln δ"))
		got := testkit.Get(optimal(each, delta))(t)
		least := 1 - math.Pow(1-each.Each.Delta, float64(each.Count))
		switch {
		case math.IsInf(got, 1):
			if delta > least*(1+1e-9) {
				t.Errorf("δ %v is said to be out of reach, and %v would do", delta, least)
			}
		case got == 0:
			if profile(each, 0) > delta*(1+1e-9) {
				t.Errorf("ε 0 has δ %v, not %v", profile(each, 0), delta)
			}
		case math.Abs(profile(each, got)-delta) > 1e-9:
			t.Errorf("ε %v has δ %v, not %v", got, profile(each, got), delta)
		}
		if basic, err := Basic([]Releases{each}); err != nil || !math.IsInf(got, 1) && got > basic.Epsilon*(1+1e-9) {
			t.Errorf("optimal %v is above basic %v (%v)", got, basic.Epsilon, err)
		}
	})
}

func TestTheoremsOfDifferentReleases(t *testing.T) {
	a, b := Releases{Budget{0.1, 1e-6}, 50}, Releases{Budget{0.3, 0}, 4}
	basic, err := Basic([]Releases{a, b})
	if err != nil || relative(basic.Epsilon, 6.2) > 1e-14 || relative(basic.Delta, 5e-5) > 1e-14 {
		t.Errorf("basic composition is %+v (%v)", basic, err)
	}
	advanced, err := advancedComposition([]Releases{a, b}, 1e-5)
	want := math.Sqrt(2*math.Log(1e5)*(0.5+0.36)) + 5*math.Expm1(0.1) + 1.2*math.Expm1(0.3)
	if err != nil || relative(advanced.Epsilon, want) > 1e-14 || relative(advanced.Delta, 6e-5) > 1e-14 {
		t.Errorf("advanced composition is %+v, want ε %v (%v)", advanced, want, err)
	}
	if huge, err := advancedComposition([]Releases{{Budget{1000, 0.01}, 9}}, 1e-5); err != nil ||
		!math.IsInf(huge.Epsilon, 1) {
		t.Errorf("where the exponential overflows: %+v (%v)", huge, err)
	}
}

func TestOptimalCompositionAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		each  Releases
		delta float64
		want  float64
	}{
		{Releases{Budget{10, 0.01}, 600}, 0.01, math.Inf(1)}, // 600 chances of 0.01 to give all away
		{Releases{Budget{0, 1e-6}, 10}, 1e-4, 0},
		{Releases{Budget{1, 0}, 1}, 1e-9, math.Log(math.E - 1e-9*(1+math.E))},
		{Releases{Budget{800, 0}, 3}, 1e-9, 2400},
		{Releases{Budget{math.Inf(1), 0}, 3}, 0.5, math.Inf(1)},
		{Releases{Budget{1e-6, 0}, 100000}, 0.1, 0},
	} {
		got, err := optimal(c.each, c.delta)
		if err != nil || !(got == c.want || relative(got, c.want) < 1e-9) {
			t.Errorf("%+v at δ %v: %v (%v), want %v", c.each, c.delta, got, err, c.want)
		}
	}
}

func TestWhatTheoremsRefuse(t *testing.T) {
	for _, r := range []Releases{{Budget{-1, 0}, 1}, {Budget{math.NaN(), 0}, 1}, {Budget{1, 1}, 1},
		{Budget{1, -0.1}, 1}, {Budget{1, 0}, 0}} {
		if b, err := Basic([]Releases{r}); err == nil {
			t.Errorf("basic composition of %+v is %+v", r, b)
		}
		if b, err := advancedComposition([]Releases{r}, 0.1); err == nil {
			t.Errorf("advanced composition of %+v is %+v", r, b)
		}
		if e, err := optimal(r, 0.1); err == nil {
			t.Errorf("optimal composition of %+v is %v", r, e)
		}
	}
	good := Releases{Budget{1, 0}, 1}
	if _, err := advancedComposition([]Releases{good}, 0); err == nil {
		t.Error("no slack is accepted")
	}
	if _, err := optimal(Releases{Budget{1, 0}, mostOptimal + 1}, 0.1); err == nil {
		t.Error("more is summed than could be waited for")
	}
	if _, err := optimal(good, 1); err == nil {
		t.Error("a delta of 1 is accepted")
	}
}
