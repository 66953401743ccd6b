package scarce

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestScoreOfAClassifier(t *testing.T) {
	s, err := ScoreClassifier([]float64{0.9, 0.6, 0.2, 0.5, 0.1}, []bool{true, false, true, false, false})
	// By hand: one hit, one false alarm, one miss, two right rejections (½ is not above ½);
	// of six pairs 0.9 wins three and 0.2 one.
	if err != nil || s.Accuracy != 0.6 || s.F1 != 0.5 || math.Abs(s.AUC-4.0/6) > 1e-15 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := ScoreClassifier([]float64{0.1, 0.2}, []bool{false, true}); err != nil || s.F1 != 0 || s.AUC != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ScoreClassifier([]float64{1}, nil); err == nil {
		t.Error("a probability without label was scored")
	}
	if _, err := ScoreClassifier(nil, nil); err == nil {
		t.Error("nothing was scored")
	}
}

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
		"NaN":            func() (*LinearClassifier, error) { return FitLinear([][]float64{{1}, {math.NaN()}, {3}}, labels, 1) },
		"+Inf":           func() (*LinearClassifier, error) { return FitLinear([][]float64{{1}, {math.Inf(1)}, {3}}, labels, 1) },
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

func TestSMOTEStaysBetweenNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "k")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rows := make([][]float64, n)
		for i := range rows {
			rows[i] = []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		}
		out, err := SMOTE(rows, 30, k, rng)
		if err != nil || len(out) != 30 {
			t.Fatalf("%d rows, %v", len(out), err)
		}
		for _, x := range out {
			if n == 1 {
				if !slices.Equal(x, rows[0]) {
					t.Fatalf("%v from a single row", x)
				}
				continue
			}
			if !slices.ContainsFunc(rows, func(a []float64) bool { return betweenNeighbours(rows, a, x, k) }) {
				t.Fatalf("%v is not between a row and one of its %d neighbours", x, k)
			}
		}
	})
	if _, err := SMOTE([][]float64{{1}, {2}}, 1, 0, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("no neighbours were accepted")
	}
	if _, err := SMOTE(nil, 1, 5, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("rows came from nothing")
	}
}

// betweenNeighbours says whether x is on the line from row a to a row that fewer
// than k others are nearer to.
func betweenNeighbours(rows [][]float64, a, x []float64, k int) bool {
	apart := func(p, q []float64) float64 {
		return math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
	}
	for _, b := range rows {
		nearer := 0
		for _, c := range rows {
			if !slices.Equal(c, a) && apart(a, c) < apart(a, b) {
				nearer++
			}
		}
		if !slices.Equal(a, b) && nearer < k && math.Abs(apart(a, x)+apart(x, b)-apart(a, b)) < 1e-12*(1+apart(a, b)) {
			return true
		}
	}
	return false
}

func BenchmarkFitLinear(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	var rows [][]float64
	var labels []bool
	for i := range 1000 {
		row := make([]float64, 24)
		for j := range row {
			row[j] = rng.NormFloat64() + float64(i%4)/4
		}
		rows, labels = append(rows, row), append(labels, i%4 == 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FitLinear(rows, labels, 1); err != nil {
			b.Fatal(err)
		}
	}
}
