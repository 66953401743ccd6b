package fitted

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

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

// Poisson counts are called over- or underdispersed in two data sets of a thousand, rare counts
// among them (400 data sets: six alarms or more come in less than one run of a thousand);
// counts of twice or half their variance nearly always, where there are counts to see it by.
func TestDispersionIsSaid(t *testing.T) {
	o := &options.Options{Likelihood: glm.LikelihoodPoisson}
	alarms := 0
	for _, mean := range []float64{0.05, 0.5, 5, 50} {
		q := glm.Normal{Mean: []float64{math.Log(mean)}, Variance: []float64{0}}
		said := func(y func() float64) string {
			d := glm.NewDesign(1)
			for range 400 {
				testkit.Do(t, d.AppendDense([]float64{1}, y()))
			}
			a := predict.NewAssessment()
			a.Rows, a.Residuals = 400, predict.ResidualsOf(glm.Poisson{}, q, nil, d, false)
			return strings.Join(Dispersion(o, a, 0), "")
		}
		found, under := 0, 0
		for seed := range uint64(100) {
			r := rand.NewPCG(seed, 8)
			if said(func() float64 { return distuv.Poisson{Lambda: mean, Src: r}.Rand() }) != "" {
				alarms++
			}
			wide := func() float64 { // a variance of 2μ
				return distuv.Poisson{Lambda: max(distuv.Gamma{Alpha: mean, Beta: 1, Src: r}.Rand(), 1e-300),
					Src: r}.Rand()
			}
			if strings.Contains(said(wide), "vary more") {
				found++
			}
			if strings.Contains(said(func() float64 {
				return math.Floor(distuv.Gamma{Alpha: 2 * mean, Beta: 2, Src: r}.Rand() + rand.New(r).Float64())
			}), "vary less") {
				under++
			}
		}
		if mean >= 5 && under < 95 || mean >= 0.5 && found < 95 {
			t.Errorf("mean %v: twice the variance found in %d of 100, half in %d", mean, found, under)
		}
	}
	if alarms > 5 {
		t.Errorf("%d false alarms in 400", alarms)
	}
}
