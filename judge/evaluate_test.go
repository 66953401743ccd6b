package judge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/judge"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/study"
)

var methods = method.Registry{factors.Method{}, regression.Method{}, dppvi.Method{}}

// parse reads a plan on data in dir.
func parse(t *testing.T, dir, text string) *study.Plan {
	t.Helper()
	path := filepath.Join(dir, "plan.yaml")
	testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
	return testkit.Get(study.Load(path, methods))(t)
}

// threeViews are the views of the drawn subjects.
const threeViews = `[{name: u, features: [a, b, c]}, {name: v, features: [d, e, f]}, {name: w, features: [g, h]}]`

// draw writes n subjects of two factors to dir, those of the group m higher on
// the first factor. constant keeps feature h at 7.
func draw(t *testing.T, dir string, seed uint64, n int, constant bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	files := map[string]*strings.Builder{"subjects": {}, "view_u": {}, "view_v": {}, "view_w": {}}
	files["subjects"].WriteString("id,group\n")
	files["view_u"].WriteString("id,a,b,c\n")
	files["view_v"].WriteString("id,d,e,f\n")
	files["view_w"].WriteString("id,g,h\n")
	for i := range n {
		id, group, shift := fmt.Sprintf("s%03d", i), "f", 0.0
		if i%2 == 1 {
			group, shift = "m", 2
		}
		x, y := r.NormFloat64()+shift, r.NormFloat64()
		v := func(a, b float64) float64 { return 10 + a*x + b*y + 0.3*r.NormFloat64() }
		h := v(0, 2)
		if constant {
			h = 7
		}
		fmt.Fprintf(files["subjects"], "%s,%s\n", id, group)
		fmt.Fprintf(files["view_u"], "%s,%.6f,%.6f,%.6f\n", id, v(1, 0), v(0, 1), v(1, 1))
		fmt.Fprintf(files["view_v"], "%s,%.6f,%.6f,%.6f\n", id, v(1, -1), v(2, 0), v(1, 0.5))
		fmt.Fprintf(files["view_w"], "%s,%.6f,%.6f\n", id, v(1, 1), h)
	}
	testkit.Do(t, os.MkdirAll(dir, 0o777))
	for name, b := range files {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name+".csv"), []byte(b.String()), 0o666))
	}
}

func plan(t *testing.T, local string) *study.Plan {
	t.Helper()
	return planOf(t, 60, local)
}

func planOf(t *testing.T, subjects int, local string) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	draw(t, filepath.Join(dir, "data"), 1, subjects, false)
	return parse(t, dir, `{parley: 1, name: small, sites: [one, two, three], views: `+threeViews+`, subjects: [group],
		method: {name: factors, latent: 2, rounds: 1}, privacy: {protection: none}, local: `+local+`}`)
}

const simulated = `{data: data, split: {scenario: IID, by: group}}`

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	return testkit.Get(os.ReadFile(filepath.Join(dir, name)))(t)
}

var outputs = []string{"evaluation.json", "evaluation.csv", "folds.csv", "report.html", "settings.json"}

func TestOutcomeDoesNotDependOnWorkersOrInterruptions(t *testing.T) {
	p := plan(t, simulated)
	config := func(workers int) judge.EvaluationConfig {
		return judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 2, Repeats: 2, Workers: workers,
			Scenarios: []evaluate.Scenario{evaluate.G, evaluate.K}, Dir: filepath.Join(t.TempDir(), "out")}
	}
	// Two scenarios, two repeats, two folds and three sites; what was under way
	// when it was interrupted may have been stored.
	first := goesOn(t, config(1), config(4), 5)
	if first.Of != 20 || first.Stored < 5 || first.Stored > 9 || first.Done != first.Stored {
		t.Errorf("it went on from %+v", first)
	}
}

// goesOn runs one configuration to its end, and the other until so many experiments are
// done and then to its end: both have to come to the same. It returns where the latter
// went on from.
func goesOn(t *testing.T, one, many judge.EvaluationConfig, after int) (first judge.Progress) {
	t.Helper()
	testkit.Get(judge.Evaluate(t.Context(), one))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	many.Progress = func(s judge.Progress) {
		if s.Done == after {
			cancel()
		}
	}
	if _, err := judge.Evaluate(ctx, many); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	many.Progress = func(s judge.Progress) {
		if first.Of == 0 {
			first = s
		}
	}
	testkit.Get(judge.Evaluate(t.Context(), many))(t)
	for _, name := range outputs {
		if !bytes.Equal(read(t, one.Dir, name), read(t, many.Dir, name)) {
			t.Errorf("%s depends on the workers or on the interruption", name)
		}
	}
	return first
}

func TestMoreRepeatsGoOnAndOtherSettingsAreRefused(t *testing.T) {
	p := plan(t, simulated)
	c := judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 2, Repeats: 1,
		Scenarios: []evaluate.Scenario{evaluate.IID}, Dir: filepath.Join(t.TempDir(), "out")}
	run := func(edit func(*judge.EvaluationConfig)) (judge.Progress, error) {
		own := c
		var first *judge.Progress
		own.Progress = func(s judge.Progress) {
			if first == nil {
				s.Abreast = 0 // as many as there are processors
				first = &s
			}
		}
		edit(&own)
		_, err := judge.Evaluate(context.Background(), own)
		if first == nil {
			first = &judge.Progress{}
		}
		return *first, err
	}
	if s, err := run(func(*judge.EvaluationConfig) {}); err != nil || s != (judge.Progress{Of: 5}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err := run(func(c *judge.EvaluationConfig) { c.Repeats = 2 }); err != nil ||
		s != (judge.Progress{Done: 5, Stored: 5, Of: 10}) {
		t.Errorf("more repeats: %+v, %v", s, err)
	}
	_, data, _ := strings.Cut(string(read(t, c.Dir, "settings.json")), `"data_sha256": "`)
	for _, other := range []struct {
		what string
		edit func(*judge.EvaluationConfig)
	}{
		{"folds 2, not 3", func(c *judge.EvaluationConfig) { c.Folds = 3 }},
		{"sites one two three, not site1", func(c *judge.EvaluationConfig) { c.Sites = 2 }},
		{"this directory is not empty", func(c *judge.EvaluationConfig) { c.Dir = filepath.Dir(c.Plan.Local.Data) }},
		{"data " + data[:12], func(c *judge.EvaluationConfig) { draw(t, c.Plan.Local.Data, 2, 60, false) }},
	} {
		if _, err := run(other.edit); err == nil || !strings.Contains(err.Error(), other.what) ||
			!strings.Contains(err.Error(), "hint: choose another") {
			t.Errorf("%s: %v", other.what, err)
		}
	}
}

// Drawn subjects are described better by the factors than by the mean, and the
// federated fit is close to the central. Intervals do not know how uncertain
// the parameters are, so they may be a little narrow.
func TestScoresTellWhatIsTrueOfDrawnData(t *testing.T) {
	p := planOf(t, 300, simulated)
	ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: p, Methods: methods, Folds: 3,
		Repeats: 1, Dir: t.TempDir()}))(t)
	mean := func(part, sc, fit, measure string) float64 {
		s := ev.Find(part, sc, fit, measure, "")
		if s == nil {
			t.Fatalf("no %s of %s in %s, %s", measure, fit, part, sc)
		}
		return s.Mean
	}
	for _, part := range []string{"folds", "sites"} {
		for _, sc := range []string{"iid", "g", "k", "gk"} {
			federated, trivial := mean(part, sc, judge.Federated, judge.ErrorTest),
				mean(part, sc, judge.Mean, judge.ErrorTest)
			central := mean(part, sc, judge.Central, judge.ErrorTest)
			if federated > trivial/2 || math.Abs(federated/central-1) > 0.1 {
				t.Errorf("%s, %s: error %.4f, central %.4f, of the mean %.4f", part, sc, federated, central, trivial)
			}
			wide := 0.95
			if part == "sites" && sc == "gk" { // two sites have each view: how others may differ is hardly known
				wide = 0.97
			}
			if c := mean(part, sc, judge.Federated, judge.Coverage); c < 0.85 || c > wide {
				t.Errorf("%s, %s: coverage %.3f", part, sc, c)
			}
			if h, m := mean(part, sc, judge.Federated, judge.ErrorHidden),
				mean(part, sc, judge.Mean, judge.ErrorHidden); h > 0.7*m {
				t.Errorf("%s, %s: error of hidden views %.4f, of the mean %.4f", part, sc, h, m)
			}
		}
	}
	// Two standard deviations apart along one factor: Φ(1) = 0.84.
	if a := mean("folds", "iid", judge.Federated, judge.Accuracy); a < 0.7 || a > 0.95 {
		t.Errorf("accuracy %.3f", a)
	}
	if a := mean("folds", "iid", judge.Mean, judge.Accuracy); a != 0.5 {
		t.Errorf("accuracy without factors %.3f", a)
	}
	// A site that lacks a view says nothing of it, so it has no density of whole rows.
	if ev.Find("folds", "k", judge.Alone, judge.LogLik, "") != nil ||
		ev.Find("sites", "iid", judge.Alone, judge.ErrorTest, "") != nil ||
		ev.Find("folds", "iid", judge.Alone, judge.LogLik, "") == nil {
		t.Error("densities of sites alone")
	}
	s := ev.Find("folds", "iid", judge.PCA, judge.ErrorTest, "v")
	if s == nil || s.N != 3 || s.SD == nil || s.Difference == nil || s.Difference.Lower+s.Difference.Higher+
		s.Difference.Equal != 3 ||
		s.Interval[0] > s.Mean || s.Interval[1] < s.Mean {
		t.Errorf("summary %+v", s)
	}
	var text bytes.Buffer
	if err := ev.Print(&text); err != nil || !strings.Contains(text.String(), "Scenario G/K: one site held out") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// Numbers of an independent implementation on the same data: see the spreads
// that it gave over ten repeats (standard deviation between folds about 0.0016
// in error, 0.03 in accuracy). One repeat's mean has to lie within two of them.
func TestAlzheimerAgreesWithAnIndependentImplementation(t *testing.T) {
	p := testkit.Get(study.Load("../examples/alzheimer/plan.yaml", methods))(t)
	ev, err := judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: p, Methods: methods,
		Folds: 3, Repeats: 1,
		Scenarios: []evaluate.Scenario{evaluate.IID, evaluate.GK}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scenario, fit, measure string
		want, within           float64
	}{
		{"iid", judge.Federated, judge.ErrorTest, 0.1002, 0.002},
		{"gk", judge.Federated, judge.ErrorTest, 0.1012, 0.002},
		{"iid", judge.Central, judge.ErrorTest, 0.1001, 0.002},
		{"iid", judge.PCA, judge.ErrorTest, 0.0997, 0.002},
		{"gk", judge.PCA, judge.ErrorTest, 0.1034, 0.002},
		{"iid", judge.Mean, judge.ErrorTest, 0.1452, 0.004},
		{"iid", judge.Federated, judge.Accuracy, 0.784, 0.06},
		{"gk", judge.PCA, judge.Accuracy, 0.820, 0.06},
		{"iid", judge.Mean, judge.Accuracy, 0.727, 0.01},
		{"iid", judge.Federated, judge.Coverage, 0.885, 0.02},
		{"gk", judge.Federated, judge.Coverage, 0.878, 0.02},
	} {
		s := ev.Find("folds", c.scenario, c.fit, c.measure, "")
		if s == nil || math.Abs(s.Mean-c.want) > c.within {
			t.Errorf("%s, %s, %s: %+v, want %v ± %v", c.scenario, c.fit, c.measure, s, c.want, c.within)
		}
	}
}
