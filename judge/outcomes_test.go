package judge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/judge"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/study"
)

var predictors = method.Registry{regression.Method{}, dppvi.Method{}}

// ward writes n subjects to dir: two numbers and a category in three views, at three
// hospitals in turn, with an outcome of two levels that follows from them, and a number
// with noise of variance 0.25.
func ward(t *testing.T, dir string, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	files := map[string]*strings.Builder{}
	for name, head := range map[string]string{"subjects": "id,hospital,relapse,score", "view_u": "id,age",
		"view_v": "id,dose", "view_w": "id,stage,mark"} {
		files[name] = &strings.Builder{}
		fmt.Fprintln(files[name], head)
	}
	stages := []string{"I", "II", "III"}
	for i := range n {
		id, age, dose, stage := fmt.Sprintf("s%04d", i), 60+10*r.NormFloat64(), r.NormFloat64(), r.IntN(3)
		f := (age-60)/5 + 1.5*dose + float64(stage-1)
		relapse := "no"
		if r.Float64() < 1/(1+math.Exp(-f)) {
			relapse = "yes"
		}
		mark := r.NormFloat64()
		if i%3 == 0 {
			mark = 3 // nobody at the first hospital differs
		}
		fmt.Fprintf(files["subjects"], "%s,%s,%s,%.4f\n", id, []string{"east", "north", "south"}[i%3], relapse,
			f+0.5*r.NormFloat64())
		fmt.Fprintf(files["view_u"], "%s,%.4f\n", id, age)
		fmt.Fprintf(files["view_v"], "%s,%.4f\n", id, dose)
		fmt.Fprintf(files["view_w"], "%s,%s,%.4f\n", id, stages[stage], mark)
	}
	testkit.Do(t, os.MkdirAll(dir, 0o777))
	for name, b := range files {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name+".csv"), []byte(b.String()), 0o666))
	}
}

const (
	relapses  = "outcome: {column: relapse, levels: [no, yes]}"
	open      = "{protection: none}"
	guarded   = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 8, delta: 1e-5}}"
	asTheyAre = "{data: data, split: {scenario: column, by: hospital}}"
)

// wardPlan is of n subjects who are where they are, or in other scenarios.
func wardPlan(t *testing.T, n int, options, privacy, where string) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	ward(t, filepath.Join(dir, "data"), n)
	if !strings.HasPrefix(options, "dp-pvi, ") {
		options = "regression, " + options
	}
	path := filepath.Join(dir, "plan.yaml")
	text := `{parley: 1, name: ward, sites: [east, north, south], subjects: [hospital, relapse, score],
		views: [{name: u, features: [{name: age, range: [20, 100]}]}, {name: v, features: [{name: dose, range: [-4, 4]}]},
			{name: w, features: [{name: stage, kind: category, levels: [I, II, III]}, {name: mark, range: [-4, 4]}]}],
		method: {name: ` + options + `}, privacy: ` + privacy + `, local: ` + where + `}`
	testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
	return testkit.Get(study.Load(path, predictors))(t)
}

func evaluation(t *testing.T, c judge.EvaluationConfig) *judge.Evaluation {
	t.Helper()
	c.Methods = predictors
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "out")
	}
	if c.Folds == 0 {
		c.Folds = 2
	}
	if c.Repeats == 0 {
		c.Repeats = 1
	}
	return testkit.Get(judge.Evaluate(t.Context(), c))(t)
}

func found(t *testing.T, ev *judge.Evaluation, part, scenario, fit, measure string) float64 {
	t.Helper()
	s := ev.Find(part, scenario, fit, measure, "")
	if s == nil {
		t.Fatalf("no %s of %s in %s, %s", measure, fit, part, scenario)
	}
	return s.Mean
}

// Drawn outcomes are predicted about as well as by the central fit, better than by
// sites alone, and much better than by the base rate.
func TestPredictionsTellWhatIsTrueOfDrawnData(t *testing.T) {
	p := wardPlan(t, 600, "dp-pvi, algorithm: exact, "+relapses, open, "{data: data, split: {scenario: IID}}")
	ev := evaluation(t, judge.EvaluationConfig{Plan: p, Scenarios: []evaluate.Scenario{evaluate.IID, evaluate.GK}})
	for _, part := range []string{"folds", "sites"} {
		for _, sc := range []string{"iid", "gk"} {
			of := func(fit, measure string) float64 { return found(t, ev, part, sc, fit, measure) }
			federated, central, base := of(judge.Federated, "log_likelihood"), of(judge.Central, "log_likelihood"),
				of("the base rate", "log_likelihood")
			if math.Abs(federated-central) > 0.02 || federated < base+0.15 {
				t.Errorf("%s, %s: log-likelihood %.4f, central %.4f, of the base rate %.4f", part, sc, federated,
					central, base)
			}
			if alone := of(judge.Alone, "log_likelihood"); alone > federated {
				t.Errorf("%s, %s: log-likelihood %.4f, of sites alone %.4f", part, sc, federated, alone)
			}
			if part == "sites" && sc == "gk" {
				continue // sites of one class: there is no AUC
			}
			if auc, none := of(judge.Federated, "auc"), of("the base rate", "auc"); auc < 0.8 || none != 0.5 {
				t.Errorf("%s, %s: AUC %.3f, of the base rate %.3f", part, sc, auc, none)
			}
			if c := of(judge.Federated, "calibration_error"); sc == "iid" && part == "folds" && c > 0.1 {
				t.Errorf("%s, %s: calibration error %.3f", part, sc, c)
			}
		}
	}
	if len(ev.Notes) > 0 || ev.Label != "relapse" {
		t.Errorf("label %q, notes %q", ev.Label, ev.Notes)
	}
	// Two folds and three sites, each subject in one of them.
	for _, c := range ev.Calibrations {
		rows := 0
		for _, b := range c.Bins {
			rows += b.Rows
		}
		if want := map[bool]int{false: 600, true: 1800}[c.Fit == judge.Alone && c.Part == "folds"]; c.Part == "folds" &&
			rows != want {
			t.Errorf("%s, %s, %s: %d rows in the calibration, want %d", c.Part, c.Scenario, c.Fit, rows, want)
		}
	}
	var text bytes.Buffer
	if err := ev.Print(&text); err != nil ||
		!strings.Contains(text.String(), "Scenario G/K: log-likelihood at each site held out") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// A number has errors near its noise, whose standard deviation is 0.5, and intervals
// that hold: of 300 outcomes the share inside has a standard deviation of 0.017.
func TestNumbersArePredicted(t *testing.T) {
	p := wardPlan(t, 300, "outcome: {column: score}, noise_variance: 0.25", open, asTheyAre)
	dir := filepath.Join(t.TempDir(), "out")
	ev := evaluation(t, judge.EvaluationConfig{Plan: p, Dir: dir})
	if e := found(t, ev, "folds", "column", judge.Federated, "root_mean_squared_error"); e < 0.45 || e > 0.58 {
		t.Errorf("error %.3f", e)
	}
	if c := found(t, ev, "folds", "column", judge.Federated, "coverage"); math.Abs(c-0.9) > 0.06 {
		t.Errorf("coverage %.3f", c)
	}
	if e := found(t, ev, "folds", "column", "the mean", "root_mean_squared_error"); e < 2 {
		t.Errorf("error of the mean %.3f", e)
	}
	if ev.Label != "" || ev.Find("folds", "column", judge.Federated, "accuracy", "") != nil {
		t.Error("a number was taken for classes")
	}
	page := string(read(t, dir, "report.html"))
	for _, want := range []string{`id="figure-coverage"`, `id="figure-root-mean-squared-error"`,
		`id="figure-site-log-likelihood"`, "“The mean” predicts the training subjects"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %s", want)
		}
	}
}

// An experiment is the plan's own study: leaving a site out gives what the study of
// the others says of its subjects.
func TestAnExperimentIsTheStudyOfTheOthers(t *testing.T) {
	p := wardPlan(t, 150, relapses, open, asTheyAre)
	ev := evaluation(t, judge.EvaluationConfig{Plan: p})
	others := *p
	others.Sites, others.Quorum = []string{"north", "south"}, 2
	b := testkit.Get(local.Bind(t.Context(), p, nil))(t)
	out := testkit.Get(local.Run(t.Context(), local.Config{Plan: &others, Methods: predictors,
		Data: map[string]dataset.Source{"north": b.Data["north"], "south": b.Data["south"]}}))(t)
	m := testkit.Get(regression.Method{}.Evaluator(&others, out.Result.Files, true))(t)
	outcome := evaluate.Outcome{Column: "relapse", Levels: []string{"no", "yes"}}
	j := testkit.Get(outcome.Judge(t.Context(), m, b.Data["east"], judge.Level))(t)
	got := map[string]float64{}
	for _, s := range ev.Results {
		if s.Part == "sites" && s.Site == "east" && s.Fit == judge.Federated {
			got[s.Measure] = s.Mean
		}
	}
	if len(got) != len(j.Marks) || len(got) != 5 {
		t.Errorf("%v, want %v", got, j.Marks)
	}
	for name, x := range j.Marks {
		if math.Abs(got[name]-x) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got[name], x)
		}
	}
	// By itself the first hospital cannot scale a number that does not vary there, and
	// does without it.
	if s := ev.Find("folds", "column", judge.Alone, "log_likelihood", ""); s == nil || s.N != 2 || len(ev.Notes) > 0 {
		t.Errorf("one site alone: %+v, notes %q", s, ev.Notes)
	}
}

// A hospital where everything is the other way round is much better off by itself.
func TestSitesAreAskedAboutTheirOwnSubjects(t *testing.T) {
	p := wardPlan(t, 300, relapses, open, asTheyAre)
	path := filepath.Join(p.Local.Data, "subjects.csv")
	text := testkit.Get(os.ReadFile(path))(t)
	turned := strings.NewReplacer("east,no,", "east,yes,", "east,yes,", "east,no,").Replace(string(text))
	testkit.Do(t, os.WriteFile(path, []byte(turned), 0o666))
	dir := filepath.Join(t.TempDir(), "out")
	ev := evaluation(t, judge.EvaluationConfig{Plan: p, Dir: dir})
	own := func(site, fit, measure string) *judge.Summary {
		t.Helper()
		for _, s := range ev.Results {
			if s.Part == "folds" && s.Site == site && s.Fit == fit && s.Measure == measure {
				return &s
			}
		}
		t.Fatalf("nothing of %s at %s", fit, site)
		return nil
	}
	mean := 0.0
	for _, site := range p.Sites {
		mean += own(site, judge.Federated, "accuracy").Mean / 3
		d := own(site, judge.Alone, "log_likelihood").Difference
		if d == nil || (site == "east") != (d.Mean > 0.3) {
			t.Errorf("%s: %+v", site, d)
		}
		if base := own(site, "the base rate", "auc"); base.Mean != 0.5 || base.N != 2 {
			t.Errorf("%s: base rate %+v", site, base)
		}
	}
	// A hundred subjects of each, halved with every level in proportion.
	if all := found(t, ev, "folds", "column", judge.Federated, "accuracy"); math.Abs(all-mean) > 0.01 {
		t.Errorf("accuracy %.4f, and %.4f on average over sites", all, mean)
	}
	if page := string(read(t, dir, "report.html")); !strings.Contains(page, `id="figure-joining"`) {
		t.Error("the report does not show it")
	}
	simulated := evaluation(t, judge.EvaluationConfig{Plan: p, Scenarios: []evaluate.Scenario{evaluate.IID}})
	for _, s := range simulated.Results {
		if s.Part == "folds" && s.Site != "" {
			t.Fatalf("simulated sites have nobody who is really there: %+v", s)
		}
	}
}

// Hospitals with a folder each, whose ids are the same, one of which lacks a view.
func TestPredictionsFromFolders(t *testing.T) {
	where := "{sites: {east: east, north: north, south: south}}"
	p := wardPlan(t, 6, relapses, open, asTheyAre)
	root := filepath.Dir(p.Local.Data)
	for _, site := range p.Sites {
		ward(t, filepath.Join(root, site), 300)
	}
	testkit.Do(t, os.Remove(filepath.Join(root, "south", "view_v.csv")))
	path := filepath.Join(root, "plan.yaml")
	text := testkit.Get(os.ReadFile(path))(t)
	testkit.Do(t, os.WriteFile(path, bytes.Replace(text, []byte(asTheyAre), []byte(where), 1), 0o666))
	p = testkit.Get(study.Load(path, predictors))(t)
	ev := evaluation(t, judge.EvaluationConfig{Plan: p})
	if ev.Subjects != 900 || len(ev.Notes) > 0 {
		t.Errorf("%d subjects, notes %q", ev.Subjects, ev.Notes)
	}
	// Of the same people less is told where a view is missing.
	at := map[string]float64{}
	for _, s := range ev.Results {
		if s.Part == "folds" && s.Fit == judge.Federated && s.Measure == "log_likelihood" {
			at[s.Site] = s.Mean
		}
	}
	if len(at) != 4 || !(at["south"] < at["east"]-0.1) {
		t.Errorf("log-likelihoods %v", at)
	}
}

func TestPredictionsGoOnAfterInterruptions(t *testing.T) {
	p := wardPlan(t, 90, relapses, open, asTheyAre)
	config := func(workers int) judge.EvaluationConfig {
		return judge.EvaluationConfig{Plan: p, Methods: predictors, Folds: 2, Repeats: 2, Workers: workers,
			Dir: filepath.Join(t.TempDir(), "out")}
	}
	one := config(1)
	if first := goesOn(t, one, config(3), 3); first.Of != 7 || first.Stored < 3 || first.Stored > 6 {
		t.Errorf("it went on from %+v", first)
	}
	var stored judge.Evaluation
	if err := json.Unmarshal(read(t, one.Dir, "evaluation.json"), &stored); err != nil ||
		len(stored.Calibrations) != 8 {
		t.Errorf("%d calibrations stored, %v", len(stored.Calibrations), err)
	}
}

// Of a private plan every fit is a study with the whole budget and noise of its own.
// Who has an outcome that the plan does not know counts as nothing.
func TestPrivatePredictions(t *testing.T) {
	p := wardPlan(t, 300, relapses, guarded, asTheyAre)
	path := filepath.Join(p.Local.Data, "subjects.csv")
	text := testkit.Get(os.ReadFile(path))(t)
	lines := strings.Split(string(text), "\n")
	for i := 1; i <= 6; i++ {
		lines[i] = strings.NewReplacer(",yes,", ",unknown,", ",no,", ",unknown,").Replace(lines[i])
	}
	testkit.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666))
	dir := filepath.Join(t.TempDir(), "out")
	first, second := evaluation(t, judge.EvaluationConfig{Plan: p, Dir: dir}),
		evaluation(t, judge.EvaluationConfig{Plan: p})
	if first.Subjects != 294 || !slices.ContainsFunc(first.Notes, func(n string) bool {
		return strings.Contains(n, "6 subjects left out, whose outcome the plan does not know")
	}) {
		t.Errorf("%d subjects, notes %q", first.Subjects, first.Notes)
	}
	of := func(ev *judge.Evaluation, fit string) float64 {
		return found(t, ev, "folds", "column", fit, "log_likelihood")
	}
	for _, fit := range []string{judge.Central, "the base rate"} {
		if of(first, fit) != of(second, fit) {
			t.Errorf("%s has noise", fit)
		}
	}
	for _, fit := range []string{judge.Federated, judge.Alone} {
		if of(first, fit) == of(second, fit) {
			t.Errorf("%s has no noise", fit)
		}
	}
	if page := tags.ReplaceAllString(string(read(t, dir, "report.html")), ""); !strings.Contains(page,
		"nothing on this page is protected") || !strings.Contains(page, "ε 8, δ 1e-5") {
		t.Error("the report does not say what the plan promises")
	}
}

// tags are what words of a page may stand in.
var tags = regexp.MustCompile(`<[^>]*>`)

// The numbers of subjects that a plan declares are those of the experiment: with the
// 20 000 of the plan the published accountant allows updates, with 50 not one.
func TestDeclaredSubjectsAreThoseFitted(t *testing.T) {
	p := wardPlan(t, 300, "dp-pvi, "+relapses+", rounds: 1, rows: [{site: east, rows: 20000}, {site: north, rows: "+
		"20000}, {site: south, rows: 20000}]",
		strings.Replace(guarded, "epsilon: 8", "epsilon: 0.5", 1), asTheyAre)
	_, err := judge.Evaluate(t.Context(), judge.EvaluationConfig{Plan: p, Methods: predictors, Folds: 2, Repeats: 1,
		Dir: filepath.Join(t.TempDir(), "out")})
	if err == nil || !strings.Contains(err.Error(), "allows 50 rows not a single update") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBePredictedIsSaid(t *testing.T) {
	three, unknown := wardPlan(t, 60, relapses, open, asTheyAre),
		wardPlan(t, 60, "outcome: {column: relapse, levels: [no, maybe]}", open, asTheyAre)
	for want, c := range map[string]judge.EvaluationConfig{
		"--label: the plan's method predicts relapse, and is judged by that and not by \"hospital\"": {Plan: three,
			Label: "hospital"},
		`outcome relapse: "yes" is not one of ["no" "maybe"]`: {Plan: unknown},
		"--scenarios: scenario unequal: the plan does not say how far sites differ": {Plan: three,
			Scenarios: []evaluate.Scenario{evaluate.Unequal}},
		"--folds: 61 folds of 60 subjects": {Plan: three,
			Folds: 61},
	} {
		c.Methods, c.Repeats, c.Dir = predictors, 1, filepath.Join(t.TempDir(), "out")
		if c.Folds == 0 {
			c.Folds = 2
		}
		if _, err := judge.Evaluate(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(c.Dir); err == nil {
			t.Errorf("%s: a directory was made all the same", want)
		}
	}
}
