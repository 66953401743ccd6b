package scarce

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestLinearClassifierIsAtItsOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.IntRange(2, 60).Draw(t, "n"), rapid.IntRange(1, 8).Draw(t, "d")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		penalty := rapid.SampledFrom([]float64{1e-3, 0.1, 1, 100}).Draw(t, "penalty")
		spread := rapid.SampledFrom([]float64{0.01, 1, 30}).Draw(t, "spread")
		rows, labels := make([][]float64, n), make([]bool, n)
		for i := range rows {
			rows[i] = make([]float64, d)
			for j := range rows[i] {
				rows[i][j] = spread * rng.NormFloat64()
			}
			labels[i] = rng.IntN(2) == 0
		}
		labels[0], labels[1] = true, false
		c, err := FitLinear(rows, labels, penalty)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Probability(rows)
		if err != nil {
			t.Fatal(err)
		}
		slope, scale := make([]float64, d+1), float64(n)*max(1, spread)
		for j, w := range c.Weights {
			slope[j] = -penalty * w
		}
		for i, row := range rows {
			e := -p[i]
			if labels[i] {
				e++
			}
			slope[d] += e
			for j, v := range row {
				slope[j] += e * v
			}
		}
		for j, s := range slope {
			if !(math.Abs(s) <= 1e-5*scale) {
				t.Fatalf("the slope by weight %d is %v", j, s)
			}
		}
	})
}

func TestLinearClassifierRefuses(t *testing.T) {
	rows, labels := [][]float64{{1}, {2}, {3}}, []bool{false, true, false}
	if _, err := FitLinear(rows, labels, 1); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() (*LinearClassifier, error){
		"one class":      func() (*LinearClassifier, error) { return FitLinear(rows, make([]bool, 3), 1) },
		"fewer labels":   func() (*LinearClassifier, error) { return FitLinear(rows, labels[1:], 1) },
		"nothing":        func() (*LinearClassifier, error) { return FitLinear(nil, nil, 1) },
		"penalty of 0":   func() (*LinearClassifier, error) { return FitLinear(rows, labels, 0) },
		"penalty of NaN": func() (*LinearClassifier, error) { return FitLinear(rows, labels, math.NaN()) },
		"a short row":    func() (*LinearClassifier, error) { return FitLinear([][]float64{{1}, {}, {3}}, labels, 1) },
		"NaN": func() (*LinearClassifier, error) {
			return FitLinear([][]float64{{1}, {math.NaN()}, {3}}, labels, 1)
		},
		"+Inf": func() (*LinearClassifier, error) {
			return FitLinear([][]float64{{1}, {math.Inf(1)}, {3}}, labels, 1)
		},
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c := &LinearClassifier{Weights: []float64{1, 2}}
	if _, err := c.Probability([][]float64{{1}}); err == nil {
		t.Error("a short row was classified")
	}
}

func TestOversamplingCopiesRows(t *testing.T) {
	rows := [][]float64{{1}, {2}, {3}}
	out, err := Oversample(rows, 200, rand.New(rand.NewPCG(1, 0)))
	if err != nil || len(out) != 200 {
		t.Fatalf("%d rows, %v", len(out), err)
	}
	count := map[float64]int{}
	for _, r := range out {
		count[r[0]]++
	}
	// Each is Binomial(200, 1/3), sd 6.7: outside 67 ± 27 for one seed in 10⁴. The seed is fixed.
	for v := 1.0; v <= 3; v++ {
		if count[v] < 40 || count[v] > 94 {
			t.Errorf("row %v was drawn %d times", v, count[v])
		}
	}
	if _, err := Oversample(nil, 1, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("rows came from nothing")
	}
	if out, err := Oversample(nil, 0, rand.New(rand.NewPCG(1, 0))); err != nil || len(out) != 0 {
		t.Errorf("no extra rows: %v, %v", out, err)
	}
}
