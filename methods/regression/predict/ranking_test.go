package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/judge/evaluate"
)

// Of probabilities that hold, area and base rate are those that the rows themselves
// give, up to the width of the bins.
func TestRankingIsThatOfTheRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := newRanking()
	var scores []float64
	var labels []bool
	rows := 200_000
	for range rows {
		odds := 2*r.NormFloat64() - 1
		p := 1 / (1 + math.Exp(-odds))
		happened := r.Float64() < p
		a.count(p, happened, 1)
		scores, labels = append(scores, p), append(labels, happened)
	}
	testkit.Do(t, a.check(rows))
	if area := a.Area(); math.Abs(area-evaluate.AUC(scores, labels)) > 0.001 {
		t.Errorf("area %.4f, of the rows %.4f", area, evaluate.AUC(scores, labels))
	}
	cases := 0.0
	for _, l := range labels {
		if l {
			cases++
		}
	}
	p := cases / float64(rows)
	if want := p*math.Log(p) + (1-p)*math.Log(1-p); math.Abs(a.Base()-want) > 1e-12 {
		t.Errorf("base rate %v, want %v", a.Base(), want)
	}
}

// Classes are separated if every case is above every control, and there are both.
func TestSeparated(t *testing.T) {
	for _, c := range []struct {
		cases, controls []float64
		want            bool
	}{
		{[]float64{0.9, 0.4}, []float64{0.3, 0.1}, true}, {[]float64{0.9, 0.2}, []float64{0.3, 0.1}, false},
		{[]float64{0.9, 0.3}, []float64{0.3}, false},
		{[]float64{0.9}, nil, false}, {nil, []float64{0.9}, false}, {nil, nil, false},
		{[]float64{0.1}, []float64{0.9}, false},
	} {
		a := NewAssessment()
		a.Ranking = newRanking()
		for _, p := range c.cases {
			a.Ranking.count(p, true, 1)
		}
		for _, p := range c.controls {
			a.Ranking.count(p, false, 1)
		}
		a.Rows, a.Correct = len(c.cases)+len(c.controls), -1
		if got := a.Separated(2); got != c.want {
			t.Errorf("cases at %v, controls at %v: %v", c.cases, c.controls, got)
		}
	}
}

func TestRankingOfNothing(t *testing.T) {
	a := newRanking()
	for _, p := range []float64{0, 1, math.NaN(), 1e-300} {
		a.count(p, true, 1)
	}
	if area := a.Area(); !math.IsNaN(area) {
		t.Errorf("area %v without controls", area)
	}
}
