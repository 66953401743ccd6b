package results

import (
	"testing"

	"parley/internal/wire"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/predict"
)

// What a site sends of another likelihood than the plan's is no verdict, and no panic.
func TestVerdictsOfTheOwnLikelihood(t *testing.T) {
	two, counts := predict.NewAssessment(), predict.NewAssessment()
	m := predict.New(gvi.Logistic{}, gvi.Normal{Mean: []float64{0}, Variance: []float64{1}}, 1)
	m.Row(gvi.Row{})
	m.Score(1, two)
	m = predict.New(gvi.Poisson{}, gvi.Normal{Mean: []float64{0}, Variance: []float64{1}}, 1)
	m.Row(gvi.Row{})
	m.Score(0, counts)
	both := predict.NewAssessment()
	both.Add(two)
	both.Add(counts)
	data, err := wire.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	sent := new(predict.Assessment)
	if err := wire.Unmarshal(data, sent); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    options.Options
		want int
	}{
		"linear":   {options.Options{Likelihood: options.LikelihoodLinear, Outcome: gvi.Outcome{Column: "y"}}, 0},
		"counts":   {options.Options{Likelihood: options.LikelihoodPoisson, Outcome: gvi.Outcome{Column: "y"}}, 1},
		"logistic": {options.Options{Likelihood: options.LikelihoodLogistic, Outcome: gvi.Outcome{Column: "y", Levels: []string{"a", "b"}}}, 1},
		"softmax":  {options.Options{Likelihood: options.LikelihoodSoftmax, Outcome: gvi.Outcome{Column: "y", Levels: []string{"a", "b", "c"}}}, 0},
	} {
		if says := append(Verdicts(&c.o, sent), Dispersion(&c.o, sent, 1)...); len(says) != c.want {
			t.Errorf("%s: %q", name, says)
		}
	}
	if says := append(Verdicts(&options.Options{}, nil), Dispersion(&options.Options{}, nil, 1)...); says != nil {
		t.Errorf("of nothing: %q", says)
	}
}
