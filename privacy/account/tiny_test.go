package account

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// holdTiny holds an ε against a reference δ(ε) in [lo, hi], of the worst
// direction: not below the tight value, and not above it by 1 % unless δ is
// within 1e-3 of what it is there. It says whether the reference was sharp
// enough to tell.
func holdTiny(t reporter, q query, e float64, delta func(float64) (lo, hi float64)) bool {
	t.Helper()
	lo, hi := delta(e)
	if lo > q.delta*(1+1e-6) {
		t.Errorf("%+v: ε %v is below the tight value: δ there is at least %v", q, e, lo)
	}
	sharp := hi < q.delta*1.002
	if e > 0 {
		lo, hi = delta(0.99 * e)
		if hi < q.delta*(1-1e-3) {
			t.Errorf("%+v: ε %v is more than 1 %% above the tight value: at 0.99 of it δ is at most %v", q, e, hi)
		}
		sharp = sharp && hi-lo < 0.02*q.delta
	}
	return sharp
}

// worst returns the larger of the δ of several references.
func worst(rs []reference) func(float64) (lo, hi float64) {
	return func(epsilon float64) (lo, hi float64) {
		for _, r := range rs {
			a, b := r.delta(epsilon)
			lo, hi = math.Max(lo, a), math.Max(hi, b)
		}
		return lo, hi
	}
}

// TestTinyRates: where records are sampled at rates near 0, ε is as near to the
// tight value as elsewhere. The losses of single steps are about the rate there,
// with a tail that a tilt finds long before it matters.
func TestTinyRates(t *testing.T) {
	for _, q := range []query{
		{[]Mechanism{gaussian(1, 1e-6, 1000000)}, AddRemove, 1e-9},
		{[]Mechanism{gaussian(1.28, 1.65e-5, 37)}, ReplaceOne, 1e-12},
		{[]Mechanism{gaussian(1, 1e-6, 1000000)}, ReplaceOne, 1e-9},
		{[]Mechanism{gaussian(1.28, 1.65e-5, 37)}, AddRemove, 1e-12},
		{[]Mechanism{gaussian(0.7, 1e-9, 20000), gaussian(1.1, 3e-7, 400)}, AddRemove, 1e-12},
		{[]Mechanism{gaussian(1, 1e-5, 500), gaussian(2, 3e-6, 10000)}, ReplaceOne, 1e-10},
		{[]Mechanism{gaussian(1, 1e-4, 2000), gaussian(3e3, 1, 20)}, AddRemove, 1e-8},
	} {
		e, err := Epsilon(q.ms, q.a, q.delta)
		if err != nil || !holdTiny(t, q, e, worst(newReferences(q))) {
			t.Errorf("%+v: ε %v, error %v: not compared", q, e, err)
		}
	}
}

// TestTinyRatesOfSingleSteps: one application, against an integral over the
// outputs.
func TestTinyRatesOfSingleSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := query{
			ms:    []Mechanism{drawTiny(t)},
			a:     rapid.SampledFrom([]Adjacency{AddRemove, ReplaceOne}).Draw(t, "adjacency"),
			delta: math.Pow(10, rapid.Float64Range(-14, -4).Draw(t, "log10 delta")),
		}
		q.ms[0].Count = 1
		dirs := []direction{remove, add}
		if q.a == ReplaceOne {
			dirs = []direction{replace}
		}
		holdTiny(t, q, q.epsilon(t), func(epsilon float64) (lo, hi float64) {
			for _, dir := range dirs {
				hi = math.Max(hi, single(q.ms[0], dir, epsilon))
			}
			return hi * (1 - 1e-6), hi * (1 + 1e-6)
		})
	})
}

func drawTiny(t *rapid.T) Mechanism {
	return gaussian(
		math.Exp(rapid.Float64Range(0, 2.5).Draw(t, "log noise")),
		math.Pow(10, rapid.Float64Range(-9, -2).Draw(t, "log10 rate")),
		int(math.Exp(rapid.Float64Range(0, 14).Draw(t, "log count"))))
}

// TestTinyRatesOfRandomPlans holds ε of one to three mechanisms, all or all but
// one of them sampled at rates from 1e-9 to 1e-2, against the reference. A failure
// is no matter of chance, as both sides are deterministic bounds. Noise below 1 is
// left out: Epsilon says why.
func TestTinyRatesOfRandomPlans(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 24).Draw(t, "few") > 0 { // the reference takes its time
			return
		}
		q := query{
			a:     rapid.SampledFrom([]Adjacency{AddRemove, ReplaceOne}).Draw(t, "adjacency"),
			delta: math.Pow(10, rapid.Float64Range(-13, -3).Draw(t, "log10 delta")),
		}
		for range rapid.IntRange(1, 3).Draw(t, "mechanisms") {
			q.ms = append(q.ms, drawTiny(t))
		}
		if len(q.ms) > 1 {
			switch m := &q.ms[0]; rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // noise that hides as much as sampling does
				*m = noised(Laplace, m.Noise/m.Rate, m.Count)
			case 1:
				*m = gaussian(m.Noise/m.Rate, 1, m.Count)
			}
		}
		e := q.epsilon(t)
		if holdTiny(t, q, e, worst(newReferences(q))) {
			compared++
		}
	})
	t.Log(compared, "compared")
}
