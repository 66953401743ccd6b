package judge_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"parley/judge"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/study"
)

const promise = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"

func curvePlan(t *testing.T, privacy string) *study.Plan {
	t.Helper()
	text := "parley: 1\nname: small\nsites: [north, centre, south]\nviews:\n"
	for _, v := range []string{"a", "b"} {
		text += "  - {name: " + v + ", features: ["
		for _, f := range []string{"1", "2", "3", "4", "5"} {
			text += "{name: " + v + f + ", range: [0, 9]}, "
		}
		text += "]}\n"
	}
	return testkit.Get(study.Parse("plan.yaml", []byte(text+"method: {name: factors, latent: 2}\nprivacy: "+privacy+
		"\n"), methods))(t)
}

func config(t *testing.T) judge.SimulationConfig {
	return judge.SimulationConfig{Plan: curvePlan(t, promise), Methods: methods, Epsilons: []float64{0.01, 10},
		Subjects: []int{20, 400}, Repeats: 2,
		Noise: 0.2, Dir: filepath.Join(t.TempDir(), "out")}
}

// A total that leaves nothing to learn is said to, with what would help: at ε 0.01 the
// noise is hundreds of times the signal of 20 subjects, and at ε 10 it is nothing beside
// that of 400.
func TestHopelessTotalsAreNoted(t *testing.T) {
	c := config(t)
	c.Plan = curvePlan(t, strings.Replace(promise, "epsilon: 3", "epsilon: 0.01", 1))
	got := testkit.Get(judge.Simulate(context.Background(), c))(t)
	notes := strings.Join(got.Notes, "\n")
	if strings.Count(notes, "would learn next to nothing") != 2 ||
		!strings.Contains(notes, "ε 0.01, 20 subjects at each site: ") ||
		!strings.Contains(notes, "hint: ε 10, by this simulation") {
		t.Errorf("the notes are:\n%s", notes)
	}
}

// The noise is that of real studies and cannot be seeded. At ε 0.01 with 20
// subjects at each site it is hundreds of times the signal, so that what is
// learned is chance around nothing; at ε 10 with 400 it adds about 0.1 % to the
// error, and the bar of 5 % is some fifty times as far: it fails falsely in less
// than one of 10⁵ runs.
func TestMoreBudgetAndMoreSubjectsTeachMore(t *testing.T) {
	c := config(t)
	got := testkit.Get(judge.Simulate(context.Background(), c))(t)
	find := func(fit string, n int, e float64, measure string) float64 {
		t.Helper()
		p := got.Find(fit, n, e, measure)
		if p == nil {
			t.Fatalf("no %s of %s with %d subjects at ε %g", measure, fit, n, e)
		}
		if p.Low > p.Mean || p.Mean > p.High {
			t.Errorf("%+v is out of order", *p)
		}
		return p.Mean
	}
	if few, many := find(judge.Private, 20, 0.01, judge.Gain), find(judge.Private, 400, 10, judge.Gain); few > 0.5 ||
		many < 0.95 {
		t.Errorf("learned %.3f and %.3f", few, many)
	}
	open, mean := find(judge.Open, 400, 0, judge.Error), find(judge.Mean, 400, 0, judge.Error)
	if !(open < 0.7*mean) || find(judge.Private, 400, 10, judge.Error) > 1.05*open {
		t.Errorf("errors: %.4f without privacy, %.4f of the mean", open, mean)
	}
	if cover := find(judge.Open, 400, 0, judge.Coverage); cover < 0.85 || cover > 0.95 {
		t.Errorf("coverage %.3f without privacy", cover)
	}
	if len(got.Epsilons) != 3 || got.Epsilons[1] != 3 {
		t.Errorf("the plan's own ε is not among %v", got.Epsilons)
	}

	// All that the command promises lies in the directory.
	for _, name := range []string{"report.html", "figures/error.svg", "figures/learned.svg", "figures/hidden.csv",
		"figures/coverage.svg", "tables/utility.csv"} {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	data := testkit.Get(os.ReadFile(filepath.Join(c.Dir, "metrics.json")))(t)
	var stored judge.Curve
	if err := json.Unmarshal(data, &stored); err != nil || len(stored.Points) != len(got.Points) {
		t.Errorf("%d points stored, %v", len(stored.Points), err)
	}
	f := testkit.Get(os.Open(filepath.Join(c.Dir, "utility.csv")))(t)
	defer f.Close()
	if lines, err := csv.NewReader(f).ReadAll(); err != nil || len(lines) != 1+len(got.Points) {
		t.Errorf("%d lines, %v", len(lines), err)
	}

	// The subjects are a function of the plan's seed, the noise is not.
	again := c
	again.Dir, again.Workers = filepath.Join(t.TempDir(), "again"), 1
	second := testkit.Get(judge.Simulate(context.Background(), again))(t)
	if p := second.Find(judge.Open, 20, 0, judge.LogLik); *p != *got.Find(judge.Open, 20, 0, judge.LogLik) {
		t.Error("the same plan gives other subjects")
	}
	if p := second.Find(judge.Private, 20, 3, judge.Error); *p == *got.Find(judge.Private, 20, 3, judge.Error) {
		t.Error("the noise is the same twice")
	}
}

// A method that says itself how its results are scored is drawn by its own measures.
// The noise cannot be seeded. At ε 0.02 with 20 subjects at each site it drowns the
// signal: of 250 populations what was learned had a mean of 0.03 and a standard
// deviation of 0.08, and was above 0.6 once, so that the mean of two is in less than
// one of 10⁴ runs. At ε 10 with 500 it is 0.99, and the bar twenty deviations away.
func TestPredictionsOfOutcomes(t *testing.T) {
	c := config(t)
	c.Plan = classification(t, "regression", "", promise)
	c.Epsilons, c.Subjects = []float64{0.02, 10}, []int{20, 500}
	got := testkit.Get(judge.Simulate(t.Context(), c))(t)
	find := func(fit string, n int, e float64, measure string) *judge.Point {
		t.Helper()
		p := got.Find(fit, n, e, measure)
		if p == nil {
			t.Fatalf("no %s of %s with %d subjects at ε %g", measure, fit, n, e)
		}
		return p
	}
	if few, many := find(judge.Private, 20, 0.02, judge.Gain).Mean,
		find(judge.Private, 500, 10, judge.Gain).Mean; few > 0.6 || many < 0.9 {
		t.Errorf("learned %.3f and %.3f", few, many)
	}
	for _, m := range []string{"log_likelihood", "accuracy", "calibration_error"} {
		if open := find(judge.Open, 500, 0, m).Mean; m != "calibration_error" &&
			open < find("the base rate", 500, 0, m).Mean+0.1 {
			t.Errorf("%s %.3f without privacy is not above the base rate", m, open)
		}
	}
	for _, name := range []string{"figures/log-likelihood.svg", "figures/learned.svg", "figures/accuracy.svg",
		"figures/calibration-error.csv", "tables/utility.csv"} {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	var table strings.Builder
	if err := got.Print(&table); err != nil ||
		!strings.Contains(table.String(), "from that of the base rate to that without privacy") ||
		!strings.Contains(table.String(), "accuracy") {
		t.Errorf("%v:\n%s", err, table.String())
	}
}

func classification(t *testing.T, name, options, privacy string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(`parley: 1
name: small
sites: [north, centre, south]
views: [{name: clinic, features: [{name: age, range: [0, 100]}, {name: sex, kind: category, levels: [f, m]}, {name: stage, kind: category, levels: [I, II, III]}]}]
subjects: [relapse]
method: {name: `+name+`, outcome: {column: relapse, levels: [no, yes]}`+options+`}
privacy: `+privacy+"\n"), methods)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSimulationGoesOnWhereItWas(t *testing.T) {
	c := config(t)
	c.Epsilons, c.Subjects = nil, []int{20}
	ctx, cancel := context.WithCancel(context.Background())
	c.Workers = 1
	c.Progress = func(p judge.Progress) {
		if p.Done == 3 {
			cancel()
		}
	}
	if _, err := judge.Simulate(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	var first *judge.Progress
	c.Progress = func(p judge.Progress) {
		if first == nil {
			p.Abreast = 0 // as many as there are processors
			first = &p
		}
	}
	c.Subjects = []int{20, 30}
	if _, err := judge.Simulate(context.Background(), c); err != nil ||
		*first != (judge.Progress{Done: 3, Stored: 3, Of: 8}) {
		t.Errorf("got %+v, %v", first, err)
	}
	c.Noise = 0.3
	if _, err := judge.Simulate(context.Background(), c); err == nil ||
		!strings.Contains(err.Error(), "holds another simulation: noise share 0.2, not 0.3") {
		t.Errorf("got %v", err)
	}
}

// bare is a method that offers what the contract demands, imagines data and can be
// scored, and no more. What all interfaces have comes from the first: it is the
// shallowest.
type bare struct {
	method.Method
	imagining
	scored
}

type (
	imagining struct{ method.Simulator }
	scored    struct{ method.Evaluable }
)

func TestAnyMethodOfTheContract(t *testing.T) {
	c := config(t)
	c.Methods = method.Registry{bare{factors.Method{}, imagining{factors.Method{}}, scored{factors.Method{}}}}
	c.Epsilons, c.Subjects, c.Repeats = nil, []int{50}, 1
	got := testkit.Get(judge.Simulate(context.Background(), c))(t)
	if got.Find(judge.Private, 50, 3, judge.Error) == nil || got.Find(judge.Mean, 50, 0, judge.Error) == nil {
		t.Error("no errors")
	}
	if got.Find(judge.Open, 50, 0, judge.Error) != nil || got.Find(judge.Private, 50, 3, judge.Gain) != nil {
		t.Error("a reference that the method cannot make")
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "figures/learned.svg")); err == nil {
		t.Error("a picture of nothing")
	}
}

// mute is a method that cannot imagine data.
type mute struct{ method.Method }

// shy imagines data and cannot be scored.
type shy struct {
	method.Method
	imagining
}

func TestWhatCannotBeSimulatedIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(*judge.SimulationConfig)
	}{
		{`method "factors" cannot imagine data`, func(c *judge.SimulationConfig) {
			c.Methods = method.Registry{mute{factors.Method{}}}
		}},
		{`results of method "factors" cannot be scored`, func(c *judge.SimulationConfig) {
			c.Methods = method.Registry{shy{factors.Method{}, imagining{factors.Method{}}}}
		}},
		{"privacy.total: the plan has no total budget that could be varied\n  hint: privacy: {protection: differential",
			func(c *judge.SimulationConfig) { c.Plan = curvePlan(t, "{protection: none}") }},
		{"--epsilon: 0 is not positive", func(c *judge.SimulationConfig) { c.Epsilons = []float64{0} }},
		{"--subjects: 1 subjects at each site", func(c *judge.SimulationConfig) { c.Subjects = []int{1} }},
		{"--subjects: no number", func(c *judge.SimulationConfig) { c.Subjects = nil }},
		{"--repeats: 0 repeats", func(c *judge.SimulationConfig) { c.Repeats = 0 }},
		{"--noise-share: 1 of the variance", func(c *judge.SimulationConfig) { c.Noise = 1 }},
	} {
		own := config(t)
		c.edit(&own)
		if _, err := judge.Simulate(context.Background(), own); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if _, err := os.Stat(own.Dir); err == nil {
			t.Errorf("%s: a directory was made", c.want)
		}
	}
}

// Unless somebody says otherwise, an outcome of two classes can be predicted with an AUC of 0.7: over 2 × 2 populations
// of 3 × 2 000 subjects the mean has a standard deviation of about 0.01.
func TestClinicalOutcomesAreHardToPredict(t *testing.T) {
	c := config(t)
	c.Plan, c.Noise = classification(t, "regression", "", promise), 0
	c.Epsilons, c.Subjects = []float64{10}, []int{2000}
	got := testkit.Get(judge.Simulate(t.Context(), c))(t)
	if auc := got.Find(judge.Open, 2000, 0, "auc").Mean; math.Abs(auc-0.7) > 0.05 || got.Noise != 0.84 {
		t.Errorf("AUC %.3f at a share of %g", auc, got.Noise)
	}
}
