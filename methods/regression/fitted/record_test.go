package fitted

import (
	"math"
	"testing"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// A prediction is written whatever its probabilities are.
func TestPredictionsOfNoNumberAreWritten(t *testing.T) {
	levels := []string{"p", "q", "r", "s", "t"}
	for _, l := range []glm.Likelihood{glm.Logistic{}, glm.Softmax{Classes: 2}, glm.Softmax{Classes: 5},
		glm.Linear{Variance: 1}} {
		p := predict.New(l, glm.Isotropic(l.Activations(), 0, 1).Normal(), 1)
		for i := range p.P {
			p.P[i] = math.NaN()
		}
		m := &Model{Options: &options.Options{Outcome: glm.Outcome{Levels: levels}}}
		if got := m.record(nil, p, 1); len(got) == 0 {
			t.Errorf("%T: nothing is written", l)
		}
	}
}
