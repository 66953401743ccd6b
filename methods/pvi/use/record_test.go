package use

import (
	"math"
	"testing"

	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/predict"
)

// A prediction is written whatever its probabilities are.
func TestPredictionsOfNoNumberAreWritten(t *testing.T) {
	levels := []string{"p", "q", "r", "s", "t"}
	for _, l := range []gvi.Likelihood{gvi.Logistic{}, gvi.Softmax{Classes: 2}, gvi.Softmax{Classes: 5}, gvi.Linear{Variance: 1}} {
		p := predict.New(l, gvi.Isotropic(l.Activations(), 0, 1).Normal(), 1)
		for i := range p.P {
			p.P[i] = math.NaN()
		}
		m := &Model{Options: &options.Options{Outcome: gvi.Outcome{Levels: levels}}}
		if got := m.record(nil, p, 1); len(got) == 0 {
			t.Errorf("%T: nothing is written", l)
		}
	}
}
