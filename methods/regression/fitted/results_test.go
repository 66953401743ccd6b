package fitted

import (
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// What a site sends of another likelihood than the plan's is no verdict, and no panic.
func TestVerdictsOfTheOwnLikelihood(t *testing.T) {
	two, counts := predict.NewAssessment(), predict.NewAssessment()
	m := predict.New(glm.Logistic{}, glm.Normal{Mean: []float64{0}, Variance: []float64{1}}, 1)
	m.Row(glm.Row{})
	m.Score(1, 1, two)
	m = predict.New(glm.Poisson{}, glm.Normal{Mean: []float64{0}, Variance: []float64{1}}, 1)
	m.Row(glm.Row{})
	m.Score(0, 1, counts)
	both := predict.NewAssessment()
	both.Add(two)
	both.Add(counts)
	data := testkit.Get(wire.Marshal(both))(t)
	sent := new(predict.Assessment)
	testkit.Do(t, wire.Unmarshal(data, sent))
	for name, c := range map[string]struct {
		o    options.Options
		want int
	}{
		"linear": {options.Options{Likelihood: glm.LikelihoodLinear, Outcome: glm.Outcome{Column: "y"}}, 0},
		"counts": {options.Options{Likelihood: glm.LikelihoodPoisson, Outcome: glm.Outcome{Column: "y"}}, 0},
		"logistic": {options.Options{Likelihood: glm.LikelihoodLogistic,
			Outcome: glm.Outcome{Column: "y", Levels: []string{"a", "b"}}}, 1},
		"softmax": {options.Options{Likelihood: glm.LikelihoodSoftmax,
			Outcome: glm.Outcome{Column: "y", Levels: []string{"a", "b", "c"}}}, 0},
	} {
		if says := append(OutcomeVerdicts(&c.o, sent), Dispersion(&c.o, sent, 1)...); len(says) != c.want {
			t.Errorf("%s: %q", name, says)
		}
	}
	if says := append(OutcomeVerdicts(&options.Options{}, nil),
		Dispersion(&options.Options{}, nil, 1)...); says != nil {
		t.Errorf("of nothing: %q", says)
	}
}

// A name with a full stop or a colon does not end the title of what is said of it.
func TestTitlesKeepNamesWhole(t *testing.T) {
	e := &glm.Encoding{Columns: []glm.Column{{Name: "No. of visits"},
		{Name: "grade: last", Levels: []string{"a", "b. x"}}}}
	notes := verdicts([]string{"The effect of No. of visits is not straight. See.",
		"One site has grade: last=b. x alone: why."}, glm.Outcome{Column: "y"}, e)[0].Items
	for i, want := range []string{"The effect of No. of visits is not straight",
		"One site has grade: last=b. x alone"} {
		if got := notes[i].Note.Title; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
