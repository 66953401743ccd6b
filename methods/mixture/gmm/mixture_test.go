package gmm

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// drawn draws a mixture of any shape.
func drawn(t *rapid.T) (Prior, Mixture) {
	k, d := rapid.IntRange(1, 5).Draw(t, "k"), rapid.IntRange(1, 4).Draw(t, "d")
	p := testkit.Get(BoxPrior(make([]float64, d), slices.Repeat([]float64{4}, d), k))(t)
	m, r := NewMixture(k, d), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	sum := 0.0
	for i := range k {
		m.Weights[i] = r.ExpFloat64()
		sum += m.Weights[i]
		a := make([]float64, d*d)
		for j := range a {
			a[j] = r.NormFloat64()
		}
		for j := range d {
			m.Mean(i)[j] = 4 * r.NormFloat64()
			m.Cov(i)[j*d+j] = 0.1
		}
		for at := range a { // 0.1 I + AAᵀ
			for c := range d {
				m.Cov(i)[at] += a[at/d*d+c] * a[at%d*d+c]
			}
		}
	}
	for i := range m.Weights {
		m.Weights[i] /= sum
	}
	return p, m
}

func near(a, b []float64) bool {
	for i, v := range a {
		if math.Abs(v-b[i]) > 1e-7*(1+math.Abs(v)) {
			return false
		}
	}
	return len(a) == len(b)
}

// Coordinates lead there and back, and order does not matter to the prior.
func TestCoordinatesAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, m := drawn(t)
		testkit.Do(t, m.Check())
		c := Coordinates{m.Components(), m.Dim}
		u, back := make([]float64, c.Len()), NewMixture(c.K, c.Dim)
		if err := c.To(u, m); err != nil {
			t.Skip(err)
		}
		c.From(back, u)
		if !near(m.Weights, back.Weights) || !near(m.Means, back.Means) || !near(m.Covs, back.Covs) {
			t.Fatalf("%v became %v", m, back)
		}
		order := rapid.Permutation([]int{0, 1, 2, 3, 4}[:c.K]).Draw(t, "order")
		other := m.Reorder(order)
		if got := Match(m, other, nil); !near(other.Reorder(got).Means, m.Means) {
			t.Fatalf("order %v was matched by %v", order, got)
		}
		v := make([]float64, c.Len())
		if err := c.To(v, other); err != nil {
			t.Skip(err)
		}
		a, b := NewUnconstrained(p).LogDensity(u), NewUnconstrained(p).LogDensity(v)
		if !near([]float64{a}, []float64{b}) {
			t.Fatalf("densities %v and %v", a, b)
		}
	})
}

// The assignment is the best of all.
func TestMatchIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 4
		cost := rapid.SliceOfN(rapid.Float64Range(-5, 5), n*n, n*n).Draw(t, "cost")
		sum := func(order []int) (s float64) {
			for i, j := range order {
				s += cost[i*n+j]
			}
			return s
		}
		got := sum(assign(cost, n))
		var all func(order []int, at int)
		all = func(order []int, at int) {
			if at == n && sum(order) < got-1e-9 {
				t.Fatalf("%v costs %v, less than %v", order, sum(order), got)
			}
			for i := at; i < n; i++ {
				order[at], order[i] = order[i], order[at]
				all(order, at+1)
				order[at], order[i] = order[i], order[at]
			}
		}
		all([]int{0, 1, 2, 3}, 0)
	})
}

// Simulated rows are of the mixture: means within five standard errors.
func TestSimulate(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	m := Mixture{2, []float64{0.7, 0.3}, []float64{0, 0, 4, 4}, []float64{1, 0.5, 0.5, 1, 2, 0, 0, 1}}
	const n = 20001
	rows := make([]float64, 2*n)
	testkit.Do(t, m.Simulate(r, rows))
	var mean, cross float64
	for k := range n {
		mean += rows[2*k] / n
		cross += rows[2*k] * rows[2*k+1] / n
	}
	// E x = 1.2, E x₁x₂ = 0.7·0.5 + 0.3·16
	if math.Abs(mean-1.2) > 5*2.2/math.Sqrt(n) || math.Abs(cross-5.15) > 5*9/math.Sqrt(n) {
		t.Errorf("mean %v, product %v", mean, cross)
	}
}

func TestMixturesAndPriorsThatAreNone(t *testing.T) {
	good := Mixture{1, []float64{0.5, 0.5}, []float64{0, 1}, []float64{1, 1}}
	for want, change := range map[string]func(m *Mixture){
		"components":   func(m *Mixture) { m.Weights = nil },
		"dimensions":   func(m *Mixture) { m.Dim = -1 },
		"numbers":      func(m *Mixture) { m.Means = m.Means[:1] },
		"probability":  func(m *Mixture) { m.Weights[0] = math.NaN() },
		"sum to":       func(m *Mixture) { m.Weights[0] = 0.1 },
		"an entry":     func(m *Mixture) { m.Means[1] = math.Inf(1) },
		"not positive": func(m *Mixture) { m.Covs[1] = 0 },
		"not finite":   func(m *Mixture) { m.Covs[1] = math.NaN() },
	} {
		m := good.Clone()
		change(&m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(p *Prior){
		"α of":       func(p *Prior) { p.Alpha[0] = 0 },
		"m of":       func(p *Prior) { p.Mean[0] = math.NaN() },
		"κ of":       func(p *Prior) { p.Kappa = -1 },
		"ν of":       func(p *Prior) { p.Nu = 1 },
		"Ψ has":      func(p *Prior) { p.Psi = p.Psi[:1] },
		"symmetric":  func(p *Prior) { p.Psi[1] = 1 },
		"components": func(p *Prior) { p.Alpha = nil },
	} {
		p := testkit.Get(BoxPrior([]float64{0, 0}, []float64{1, 1}, 2))(t)
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := BoxPrior([]float64{1}, []float64{1}, 1); err == nil {
		t.Error("an empty box was taken")
	}
}

// A component without rows may lie anywhere, and does not decide where those with rows
// belong: here it comes nearest to where the other one was.
func TestMatchGoesByWeight(t *testing.T) {
	reference := Mixture{Dim: 1, Weights: []float64{0.98, 0.02}, Means: []float64{0, 50}, Covs: []float64{1, 1}}
	m := Mixture{Dim: 1, Weights: []float64{0.97, 0.03}, Means: []float64{0.1, -50}, Covs: []float64{1, 1}}
	if got := Match(reference, m, nil); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("order %v, want 0 and 1: the large component is where it was", got)
	}
	// In units of its own, the second feature tells components apart.
	reference = Mixture{Dim: 2, Weights: []float64{0.5, 0.5}, Means: []float64{0, 0, 30, 1},
		Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1}}
	m = Mixture{Dim: 2, Weights: []float64{0.5, 0.5}, Means: []float64{10, 1, 20, 0}, Covs: reference.Covs}
	if got := Match(reference, m, []float64{100, 0.1}); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("order %v, want 1 and 0", got)
	}
}

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
// missing features is what integrals over these say: densities by normalLogDensity on a grid.
func TestPredictiveIsAnIntegral(t *testing.T) {
	sample := twoDraws()
	of := NewPredictive(sample)
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
					part[c] = m.Weights[c] * math.Exp(normalLogDensity(x, m.Mean(c), m.Cov(c)))
					continue
				}
				for y := -9.0; y < 9; y += step {
					part[c] += step * m.Weights[c] * math.Exp(normalLogDensity([]float64{x[0], y, x[2]},
						m.Mean(c), m.Cov(c)))
				}
			}
			own = append(own, part[0]/(part[0]+part[1]))
			density += sample.Weights[s] * (part[0] + part[1])
			if got.Values == 2 {
				for y := -9.0; y < 9; y += step {
					at := 0.0
					for c := range part {
						at += step * sample.Weights[s] * m.Weights[c] * math.Exp(
							normalLogDensity([]float64{x[0], y, x[2]}, m.Mean(c), m.Cov(c))) / (part[0] + part[1])
					}
					first, second = first+at*y, second+at*y*y
				}
			}
		}
		want := 0.25*own[0] + 0.75*own[1]
		sd := math.Sqrt(0.25*0.75) * math.Abs(own[0]-own[1])
		for what, pair := range map[string][2]float64{"density": {got.LogDensity, math.Log(density)},
			"probability": {got.Probability[0], want},
			"the other":   {got.Probability[1], 1 - want}, "sd": {got.SD[0], sd}, "mean": {mean[1], first},
			"variance": {variance[1], second - first*first}} {
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
	of := NewPredictive(one)
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
	of := NewPredictive(twoDraws())
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

func TestEffectiveSize(t *testing.T) {
	for want, w := range map[float64][]float64{4: {1, 1, 1, 1}, 1: {0, 5, 0}, 0: {0, 0}, 1.8: {2, 1}} {
		if got := EffectiveSize(w); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v has the effective size %v, want %v", w, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	values, weights := []float64{3, 1, 2}, []float64{0.5, 0.25, 0.25}
	for q, want := range map[float64]float64{0: 1, 0.25: 1, 0.3: 2, 0.5: 2, 0.51: 3, 1: 3} {
		if got := Quantile(values, weights, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
