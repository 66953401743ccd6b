package gmm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
)

// twoDraws are two mixtures of two components in three features, with weights ¼ and ¾.
func twoDraws() *Posterior {
	p := &Posterior{Weights: []float64{0.25, 0.75}}
	for i := range 2 {
		m := NewMixture(2, 3)
		copy(m.Weights, []float64{0.3 + 0.1*float64(i), 0.7 - 0.1*float64(i)})
		copy(m.Means, []float64{-1, 0, 1 + float64(i), 1, 0.5, -1})
		copy(m.Covs, []float64{2, 0.5, 0, 0.5, 1, 0.3, 0, 0.3, 1.5, 1, -0.4, 0.2, -0.4, 1, 0, 0.2, 0, 0.5})
		p.Draws = append(p.Draws, m)
	}
	return p
}

// What is said of a row is what integrals over its features say, and what is said of one with
// missing features is what integrals over these say: densities by NormalLogDensity on a grid.
func TestPredictiveIsAnIntegral(t *testing.T) {
	sample := twoDraws()
	of := testkit.Get(NewPredictive(sample))(t)
	const step = 0.02
	for _, x := range [][]float64{{0.3, -0.2, 0.5}, {0.3, math.NaN(), 0.5}} {
		got := testkit.Get(of.Of(x))(t)
		mean, variance := make([]float64, 3), make([]float64, 3)
		of.Expect(x, mean, variance)
		density, first, second := 0.0, 0.0, 0.0
		var own []float64 // of component 1, by draw
		for s, m := range sample.Draws {
			part := make([]float64, 2)
			for c := range part {
				if got.Values == 3 {
					part[c] = m.Weights[c] * math.Exp(NormalLogDensity(x, m.Mean(c), m.Cov(c)))
					continue
				}
				for y := -9.0; y < 9; y += step {
					part[c] += step * m.Weights[c] * math.Exp(NormalLogDensity([]float64{x[0], y, x[2]}, m.Mean(c), m.Cov(c)))
				}
			}
			own = append(own, part[0]/(part[0]+part[1]))
			density += sample.Weights[s] * (part[0] + part[1])
			if got.Values == 2 {
				for y := -9.0; y < 9; y += step {
					at := 0.0
					for c := range part {
						at += step * sample.Weights[s] * m.Weights[c] * math.Exp(NormalLogDensity([]float64{x[0], y, x[2]}, m.Mean(c), m.Cov(c))) / (part[0] + part[1])
					}
					first, second = first+at*y, second+at*y*y
				}
			}
		}
		want := 0.25*own[0] + 0.75*own[1]
		sd := math.Sqrt(0.25*0.75) * math.Abs(own[0]-own[1])
		for what, pair := range map[string][2]float64{"density": {got.LogDensity, math.Log(density)}, "probability": {got.Probability[0], want},
			"the other": {got.Probability[1], 1 - want}, "sd": {got.SD[0], sd}, "mean": {mean[1], first}, "variance": {variance[1], second - first*first}} {
			if (what == "mean" || what == "variance") && got.Values == 3 {
				continue
			}
			if math.Abs(pair[0]-pair[1]) > 1e-6 {
				t.Errorf("of %v %s is %v, want %v", x, what, pair[0], pair[1])
			}
		}
		if variance[0] != 0 {
			t.Errorf("of %v what was observed has variance %v", x, variance[0])
		}
	}
}

// Tails of a mixture's own rows are even on [0, 1]: Kolmogorov's distance of 2000 is above 0.0437
// in 1 of 1000 seeds.
func TestTailsAreEven(t *testing.T) {
	sample := twoDraws()
	one := &Posterior{Draws: sample.Draws[:1], Weights: []float64{1}}
	of := testkit.Get(NewPredictive(one))(t)
	rows := make([]float64, 3*2000)
	testkit.Do(t, one.Draws[0].Simulate(rand.New(rand.NewPCG(1, 2)), rows))
	var tails []float64
	for x := range slices.Chunk(rows, 3) {
		if len(tails)%3 == 0 {
			x[len(tails)%9/3] = math.NaN() // a third lack a feature, by turns
		}
		got := testkit.Get(of.Of(x))(t)
		tails = append(tails, got.Tail)
	}
	slices.Sort(tails)
	off := 0.0
	for i, v := range tails {
		off = max(off, math.Abs(v-(float64(i)+0.5)/2000))
	}
	if off > 0.0437 {
		t.Errorf("tails are %v from even", off)
	}
}

// Of a row without values nothing is known, and one that is too far for numbers has a tail of 0.
func TestPredictiveOfStrangeRows(t *testing.T) {
	of := testkit.Get(NewPredictive(twoDraws()))(t)
	nan := math.NaN()
	for _, c := range []struct {
		x      []float64
		values int
		tail   float64
	}{{[]float64{nan, nan, math.Inf(1)}, 0, 1}, {[]float64{1e6, 0, 0}, 3, 0}, {[]float64{1e200, 0, 0}, 3, 0}} {
		got, err := of.Of(c.x)
		sum := got.Probability[0] + got.Probability[1]
		if err != nil || got.Values != c.values || math.Abs(got.Tail-c.tail) > 1e-12 || math.Abs(sum-1) > 1e-12 {
			t.Errorf("of %v: %+v, %v", c.x, got, err)
		}
		if c.values == 0 && math.Abs(got.Probability[0]-0.375) > 1e-12 {
			t.Errorf("of nothing, component 1 has probability %v, want its weight .375", got.Probability[0])
		}
	}
}
