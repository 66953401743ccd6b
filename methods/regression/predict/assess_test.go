package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
)

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
		if err := a.Check(Form(0, 1, 0, false)); err != nil || a.Rows != rows {
			t.Errorf("%T: an assessment of %d rows: %v", l, a.Rows, err)
		}
	}
}

// Log-odds are of two classes: a site that sends them of a number or of three classes is refused.
func TestLogOddsAreOfTwoClasses(t *testing.T) {
	a := NewAssessment()
	a.Ranking = newRanking()
	for levels, fits := range map[int]bool{0: false, 2: true, 3: false} {
		if err := a.CheckLevels(levels); (err == nil) != fits {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	if err := NewAssessment().CheckLevels(0); err != nil {
		t.Error(err)
	}
}
