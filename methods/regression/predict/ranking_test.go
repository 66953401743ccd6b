package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/methods/regression/glm"
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

// No number that a model or a row can hold makes a prediction panic, or anything
// but a probability.
func TestPredictionsTakeAnyNumber(t *testing.T) {
	wild := []float64{0, 1, -1, 1e-300, 1e150, -1e308, 1.7e308, math.Inf(1), math.Inf(-1), math.NaN()}
	r := rand.New(rand.NewPCG(4, 4))
	for _, l := range []glm.Likelihood{glm.Logistic{}, glm.Cloglog{}, glm.Softmax{Classes: 2}, glm.Softmax{Classes: 5},
		glm.Linear{Variance: 1}} {
		k := l.Activations()
		m := New(l, glm.Isotropic(k, 0, 1).Normal(), 1)
		a := NewAssessment()
		rows := 0
		for range 3000 {
			for i := range k {
				m.A[i], m.C[i] = wild[r.IntN(len(wild))], math.Abs(wild[r.IntN(len(wild))])
			}
			l.Predict(m.A, m.C, m.P)
			y := 1.0
			p, _, _, logLik := m.judge(y)
			if math.Abs(logLik) > rowLargest || math.IsNaN(logLik) || !(p >= 0 && p <= 1) {
				t.Fatalf("%T at %v, %v: probability %v, log-likelihood %v", l, m.A, m.C, p, logLik)
			}
			m.Score(y, 1, a)
			rows++
		}
		for i := range m.P { // whatever Predict would have made of it
			m.P[i] = math.NaN()
		}
		m.judge(1)
		if err := a.Check(Form(0, 1, 0, false), 2); err != nil || a.Rows != rows {
			t.Errorf("%T: an assessment of %d rows: %v", l, a.Rows, err)
		}
	}
}

// Log-odds are of two classes: a site that sends them of a number or of three classes is refused.
func TestLogOddsAreOfTwoClasses(t *testing.T) {
	for levels, fits := range map[int]bool{0: false, 2: true, 3: false} {
		a := Form(0, 1, 0, false)
		a.Rows, a.Ranking.Cases[0] = 1, 1
		if err := a.Check(Form(0, 1, 0, false), levels); (err == nil) != fits {
			t.Errorf("%d levels: %v", levels, err)
		}
		a.Ranking = nil
		if err := a.Check(Form(0, 1, 0, false), levels); err != nil {
			t.Error(err)
		}
	}
}

// By clusters the covariance is that of its definition: C (G/(G − 1) Σ s sᵀ + Λ) C for the sums of scores.
func TestScatterIsThatOfClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 44))
	q := testkit.Get(glm.NewNormal([]float64{0.3, -0.5}, []float64{0.2, 0.05, 0.1}))(t)
	d, scores := glm.NewDesign(2), map[string][2]float64{}
	for i := range 60 {
		x, y, w := r.NormFloat64(), float64(2*r.IntN(2)-1), 0.5+r.Float64()
		name := string(rune('a' + i%7))
		testkit.Do(t, d.Append(glm.Row{Index: []int32{0, 1}, Value: []float64{x, 1}, Weight: w, Cluster: name}, y))
		g := w * y / (1 + math.Exp(y*(0.3*x-0.5)))
		s := scores[name]
		scores[name] = [2]float64{s[0] + g*x, s[1] + g}
	}
	s := ScatterOf(glm.Logistic{}, q, d, true)
	if err := s.check(); err != nil || s.Clusters != 7 {
		t.Fatal(s.Clusters, err)
	}
	got := s.Robust(q, glm.Isotropic(2, 0, 4))
	c := [2][2]float64{{0.2, 0.05}, {0.05, 0.1}}
	var meat [2][2]float64
	for _, s := range scores {
		for i := range 2 {
			for j := range 2 {
				meat[i][j] += s[i] * s[j] * 7 / 6
			}
		}
	}
	meat[0][0], meat[1][1] = meat[0][0]+0.25, meat[1][1]+0.25
	for i := range 2 {
		for j := range i + 1 {
			want := 0.0
			for a := range 2 {
				for b := range 2 {
					want += c[i][a] * meat[a][b] * c[b][j]
				}
			}
			if x := got[glm.Packed(i, j)]; math.Abs(x-want) > 1e-12 {
				t.Errorf("%d, %d: %v, want %v", i, j, x, want)
			}
		}
	}
}
