package regression_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/exact"
	"parley/study"
)

var (
	_ method.Simulator   = regression.Method{}
	_ method.Supervised  = regression.Method{}
	_ method.Centraliser = regression.Method{}
)

// wardPlan has numbers with ranges, categories, and two subject columns.
func wardPlan(t *testing.T, options string) *study.Plan {
	t.Helper()
	privacy := protected
	if !strings.Contains(options, "no, yes") || strings.Contains(options, "intercept") { // has no private form
		privacy = unprotected
	}
	return parse(t, `parley: 1
name: ward
sites: [north, south]
views:
  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: stage, kind: category, levels: [I, II, III]}]}
  - {name: blood, features: [{name: sugar, range: [2, 4]}, {name: sex, kind: category, levels: [f, m]}]}
subjects: [group, y]
method: {name: regression, `+options+`}
privacy: `+privacy+"\n")
}

const relapse = "outcome: {column: y, levels: [no, yes]}"

func simulate(t *testing.T, p *study.Plan, c method.Simulation) *method.Simulated {
	t.Helper()
	return testkit.Get(regression.Method{}.Simulate(p, c))(t)
}

// subjects keeps a source's rows.
func subjects(t *testing.T, src dataset.Source) (rows []dataset.Row) {
	t.Helper()
	table := testkit.Get(dataset.Collect(t.Context(), src))(t)
	for i := range table.Len() {
		rows = append(rows, table.Row(i))
	}
	// What was drawn is a data set like any other.
	if _, err := dataset.NewTable(src.Schema(), rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// With a fixed seed this is what that seed gives. Of 20 000 subjects a standard
// deviation is known to 0.5 % (one standard error).
func TestImaginedSubjectsFitThePlan(t *testing.T) {
	p := wardPlan(t, relapse+", offset: group, offset_range: [-1, 2]")
	drawn := simulate(t, p, method.Simulation{Subjects: 20_000, Held: 5, Seed: 3, Noise: 0.3})
	if len(drawn.Sites) != 2 {
		t.Fatalf("%d sites", len(drawn.Sites))
	}
	rows := subjects(t, drawn.Sites["north"])
	if len(rows) != 20_000 {
		t.Fatalf("%d subjects", len(rows))
	}
	for k, r := range map[int][2]float64{0: {0, 100}, 1: {2, 4}} {
		sum, squares := 0.0, 0.0
		for _, row := range rows {
			x := (row.Views[k][0] - r[0]) / (r[1] - r[0])
			if x < 0 || x > 1 {
				t.Fatalf("%v lies outside the public range", row.Views[k][0])
			}
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / 20_000
		if sd := math.Sqrt(squares/20_000 - mean*mean); math.Abs(sd-0.125) > 0.003 || math.Abs(mean-0.5) > 0.103 {
			t.Errorf("view %d: mean %.3f and standard deviation %.4f of the range", k, mean, sd)
		}
	}
	levels, outcomes := map[float64]int{}, map[string]int{}
	for _, row := range rows {
		levels[row.Views[0][1]]++
		outcomes[row.Subject[1]]++
		if x, err := strconv.ParseFloat(row.Subject[0], 64); err != nil || x < -1 || x > 2 {
			t.Fatalf("an offset of %q", row.Subject[0])
		}
	}
	if len(levels) != 3 || len(outcomes) != 2 || outcomes["yes"] < 3000 || outcomes["no"] < 3000 {
		t.Errorf("levels %v, outcomes %v", levels, outcomes)
	}
}

// latentVariance returns the variance of the fitted activations.
func latentVariance(t *testing.T, p *study.Plan, src dataset.Source) float64 {
	t.Helper()
	fit := testkit.Get(regression.Method{}.Central(t.Context(), p, src))(t)
	n, sum, squares := 0.0, 0.0, 0.0
	var post evaluate.Posterior
	for row, err := range src.Rows(t.Context()) {
		if err == nil {
			err = fit.Infer(row, &post)
		}
		if err != nil {
			t.Fatal(err)
		}
		n, sum, squares = n+1, sum+post.Latent[0], squares+post.Latent[0]*post.Latent[0]
	}
	return squares/n - sum*sum/n/n
}

// What the exact fit to many subjects finds is the signal that was asked for: a
// share of noise of 0.4 leaves 1.5 times the noise's variance. With a fixed seed this
// is what that seed gives; the standard error is about 5 %.
func TestImaginedNoiseIsTheShareAskedFor(t *testing.T) {
	c := method.Simulation{Subjects: 6_000, Held: 1, Seed: 1, Noise: 0.4}
	p, want := wardPlan(t, relapse+", prior_variance: 100"), 1.5*math.Pi*math.Pi/3
	if got := latentVariance(t, p, simulate(t, p, c).Sites["north"]); math.Abs(got/want-1) > 0.2 {
		t.Errorf("variance of activations %.3f, want %.3f", got, want)
	}
}

func TestImaginedPopulationsAreOne(t *testing.T) {
	p := wardPlan(t, relapse)
	few, many := simulate(t, p, method.Simulation{Subjects: 3, Held: 4, Seed: 7, Noise: 0.3}),
		simulate(t, p, method.Simulation{Subjects: 300, Held: 4, Seed: 7, Noise: 0.3})
	other := simulate(t, p, method.Simulation{Subjects: 3, Held: 4, Seed: 8, Noise: 0.3})
	a := subjects(t, few.Sites["north"])
	if !reflect.DeepEqual(a, subjects(t, many.Sites["north"])[:3]) ||
		!reflect.DeepEqual(subjects(t, few.Held), subjects(t, many.Held)) {
		t.Error("more subjects are other subjects")
	}
	if !reflect.DeepEqual(a, subjects(t, few.Sites["north"])) {
		t.Error("reading again gives other subjects")
	}
	for name, src := range map[string]dataset.Source{"south": few.Sites["south"], "held out": few.Held,
		"another seed": other.Sites["north"]} {
		if reflect.DeepEqual(a, subjects(t, src)[:3]) {
			t.Errorf("%s: the same subjects as at north", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range few.Held.Rows(ctx) {
		if err == nil {
			t.Error("rows of a cancelled reading")
		}
	}
}

func TestImpossibleSimulationsAreRefused(t *testing.T) {
	if _, err := (regression.Method{}).Simulate(wardPlan(t, "outcome: {column: y}, likelihood: poisson"),
		method.Simulation{Subjects: 1, Held: 1, Noise: 0.3}); err == nil ||
		!strings.Contains(err.Error(), "an outcome of levels, or a number") {
		t.Errorf("a count: %v", err)
	}
	p := wardPlan(t, relapse)
	for _, c := range []method.Simulation{{Held: 1, Noise: 0.3}, {Subjects: 1, Noise: 0.3}, {Subjects: 1, Held: 1},
		{Subjects: 1, Held: 1, Noise: 1}, {Subjects: 1, Held: 1, Noise: math.NaN()}} {
		if _, err := (regression.Method{}).Simulate(p, c); err == nil ||
			!strings.Contains(err.Error(), "cannot be drawn") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func outcomeOf(t *testing.T, p *study.Plan) evaluate.Outcome {
	t.Helper()
	return testkit.Get(regression.Method{}.Outcome(p))(t)
}

func marks(t *testing.T, o evaluate.Outcome, m evaluate.Model, held dataset.Source) evaluate.Marks {
	t.Helper()
	j := testkit.Get(o.Judge(t.Context(), m, held, 0.9))(t)
	return j.Marks
}

// Without privacy, fits to all rows tell more than the base rate does, of all that an outcome is judged by.
func TestCentralFitsAreAheadOfTheBaseRate(t *testing.T) {
	for name, options := range map[string]string{"two classes": relapse,
		"three classes": "outcome: {column: y, levels: [a, b, c]}",
		"a number":      "outcome: {column: y}, noise_variance: 2"} {
		p := wardPlan(t, options)
		drawn := simulate(t, p, method.Simulation{Subjects: 500, Held: 100, Seed: 2, Noise: 0.2})
		outcome := outcomeOf(t, p)
		base := testkit.Get(outcome.FitBaseRate(t.Context(), drawn.Sites["south"]))(t)
		central := testkit.Get(regression.Method{}.Central(t.Context(), p, drawn.Sites["south"]))(t)
		open, baseline := marks(t, outcome, central, drawn.Held), marks(t, outcome, base, drawn.Held)
		if n := len(outcome.Scoring(0.9).Measures); n != len(open) || n != len(baseline) ||
			open["log_likelihood"] < baseline["log_likelihood"]+0.1 {
			t.Errorf("%s: %v without privacy, %v of the baseline", name, open, baseline)
		}
	}
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	return testkit.Get(strconv.ParseFloat(text, 64))(t)
}

// A result is scored as its model predicts.
func TestScoresOfAResult(t *testing.T) {
	p := wardPlan(t, relapse+", offset: group, offset_range: [-1, 2]")
	drawn := simulate(t, p, method.Simulation{Subjects: 200, Held: 50, Seed: 2, Noise: 0.2})
	fit := testkit.Get(exact.Central(t.Context(), p, drawn.Sites["north"]))(t)
	data := testkit.Get(fit.Encode())(t)
	opened := testkit.Get(regression.Method{}.Evaluator(p, []method.File{{Name: "model/model.json", Data: data}},
		true))(t)
	outcome := outcomeOf(t, p)
	own := testkit.Get(fit.Forecaster(p.Schema()))(t)
	if got, want := marks(t, outcome, opened, drawn.Held), marks(t, outcome, own, drawn.Held); len(want) < 5 ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%v from a file, %v", got, want)
	}
	if _, err := (regression.Method{}).Evaluator(p, nil, false); err == nil ||
		!strings.Contains(err.Error(), "no model/model.json") {
		t.Errorf("without a model: %v", err)
	}
}

// What is said of a row's outcome are the probabilities that predictions write, and
// does not look at the outcome.
func TestForecastsAreThePredictions(t *testing.T) {
	for name, options := range map[string]string{"two classes": relapse,
		"three classes": "outcome: {column: y, levels: [a, b, c]}",
		"a number":      "outcome: {column: y}, noise_variance: 2"} {
		p := wardPlan(t, options)
		drawn := simulate(t, p, method.Simulation{Subjects: 100, Held: 20, Seed: 4, Noise: 0.2})
		fit := testkit.Get(exact.Central(t.Context(), p, drawn.Sites["north"]))(t)
		var text bytes.Buffer
		if _, _, err := fit.Predict(t.Context(), drawn.Held, &text, 0.9); err != nil {
			t.Fatal(err)
		}
		own := testkit.Get(fit.Forecaster(p.Schema()))(t)
		lines := testkit.Get(csv.NewReader(&text).ReadAll())(t)
		var post evaluate.Posterior
		for i, row := range subjects(t, drawn.Held) {
			row.Subject = nil
			testkit.Do(t, own.Infer(&row, &post))
			got := []float64{post.Outcome.Mean, post.Outcome.SD}
			want := lines[i+1][1:3]
			if len(post.Outcome.LogP) > 0 {
				got, want = nil, lines[i+1][2:]
				for _, l := range post.Outcome.LogP {
					got = append(got, math.Exp(l))
				}
			}
			for k, x := range got {
				if math.Abs(x-float(t, want[k])) > 1e-9 {
					t.Errorf("%s, row %d: expected %v, written %v", name, i, got, want)
				}
			}
		}
	}
}
