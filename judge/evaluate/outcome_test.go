package evaluate_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
)

// told predicts of each row what its only feature counts to.
type told []evaluate.Prediction

func (m told) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	dst.Unknown(0, row)
	dst.Outcome = m[int(row.Views[0][0])]
	return nil
}

// asked is a row for each outcome.
func asked(t *rapid.T, outcomes []string) dataset.Source {
	return testkit.Get(outcomeRows(outcomes))(t)
}

func outcomeRows(outcomes []string) (*dataset.Table, error) {
	var rows []dataset.Row
	for i, y := range outcomes {
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{{float64(i)}},
			Subject: []string{y}})
	}
	return dataset.NewTable(dataset.Schema{
		Views:   []dataset.View{{Name: "v", Columns: []dataset.Column{{Name: "x"}}}},
		Subject: []dataset.Column{{Name: "y", Kind: dataset.Label}},
	}, rows)
}

func judge(t *testing.T, o evaluate.Outcome, outcomes []string, m evaluate.Model) *evaluate.Judgement {
	t.Helper()
	src := testkit.Get(outcomeRows(outcomes))(t)
	return testkit.Get(o.Judge(t.Context(), m, src, 0.9))(t)
}

func wants(t *testing.T, got, want evaluate.Marks) {
	t.Helper()
	for name, x := range want {
		if y, ok := got[name]; !ok || math.Abs(x-y) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, y, x)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

var sick = evaluate.Outcome{Column: "y", Levels: []string{"no", "yes"}}

func probabilities(p ...float64) evaluate.Prediction {
	var logP []float64
	for _, x := range p {
		logP = append(logP, math.Log(x))
	}
	return evaluate.Prediction{LogP: logP}
}

// The numbers are worked out by hand from the definitions.
func TestTwoClassesByHand(t *testing.T) {
	m := told{probabilities(0.9, 0.1), probabilities(0.4, 0.6), probabilities(0.75, 0.25), probabilities(0.5, 0.5)}
	j := judge(t, sick, []string{"no", "no", "yes", "yes"}, m)
	wants(t, j.Marks, evaluate.Marks{
		"log_likelihood": (math.Log(0.9) + math.Log(0.4) + math.Log(0.25) + math.Log(0.5)) / 4,
		"accuracy":       0.25,    // a tie counts for the first
		"auc":            2.0 / 4, // .25 and .5 are above .1, neither above .6
		"brier_score":    (0.01 + 0.36 + 0.5625 + 0.25) / 4,
		// One in each bin: .1, .6, .75, .5 from what happened.
		"calibration_error": (0.1 + 0.6 + 0.75 + 0.5) / 4,
	})
	if j.Calibration[2].Rows != 1 || j.Calibration[2].Observed != 1 || j.Calibration[9].Rows != 0 {
		t.Errorf("calibration %+v", j.Calibration)
	}
	// Of one class alone nobody can be told from nobody.
	if j := judge(t, sick, []string{"no", "no"}, m); len(j.Marks) != 4 {
		t.Errorf("one class: %v", j.Marks)
	}
	// What was held impossible has no log-likelihood, and all else.
	if j := judge(t, sick, []string{"yes", "no"}, told{probabilities(1, 0), probabilities(1, 0)}); len(j.Marks) != 4 ||
		j.Marks["brier_score"] != 0.5 {
		t.Errorf("the impossible: %v", j.Marks)
	}
}

func TestThreeClassesByHand(t *testing.T) {
	o := evaluate.Outcome{Column: "y", Levels: []string{"a", "b", "c"}}
	j := judge(t, o, []string{"c", "a"}, told{probabilities(0.2, 0.3, 0.5), probabilities(0.2, 0.7, 0.1)})
	wants(t, j.Marks, evaluate.Marks{
		"log_likelihood":    (math.Log(0.5) + math.Log(0.2)) / 2,
		"accuracy":          0.5,
		"brier_score":       (0.04 + 0.09 + 0.25 + 0.64 + 0.49 + 0.01) / 2,
		"calibration_error": (0.5 + 0.7) / 2, // of the most probable class
	})
}

func TestNumbersByHand(t *testing.T) {
	o := evaluate.Outcome{Column: "y"}
	j := judge(t, o, []string{"1", "-2.5"}, told{{Mean: 0, SD: 1}, {Mean: 1, SD: 2}})
	normal := func(e, sd float64) float64 { return -math.Log(2*math.Pi)/2 - math.Log(sd) - e*e/(2*sd*sd) }
	wants(t, j.Marks, evaluate.Marks{
		"log_likelihood":          (normal(1, 1) + normal(3.5, 2)) / 2,
		"root_mean_squared_error": math.Sqrt((1 + 3.5*3.5) / 2),
		"coverage":                0.5, // 1 < 1.645, 3.5 > 3.29
	})
	if j.Calibration != nil {
		t.Error("numbers have no calibration")
	}
}

// Intervals of 90 % are 2.353 standard deviations to both sides with 3 degrees of freedom, 1.812 with
// ten, and 1.645 without.
func TestCoverageByStudent(t *testing.T) {
	for free, want := range map[float64]float64{0: 0.25, 10: 0.5, 3: 0.75} {
		o, p := evaluate.Outcome{Column: "y"}, evaluate.Prediction{Mean: 1, SD: 2, Free: free}
		j := judge(t, o, []string{fmt.Sprint(1 + 2*1.6), fmt.Sprint(1 - 2*1.8), fmt.Sprint(1 + 2*2.3),
			fmt.Sprint(1 - 2*2.4)}, told{p, p, p, p})
		if got := j.Marks["coverage"]; got != want {
			t.Errorf("%v degrees of freedom: %v are covered, want %v", free, got, want)
		}
	}
}

// With a fixed seed this is what that seed gives; over seeds, the share of 4000
// normal outcomes inside exact intervals of 90 % has a standard deviation of 0.0047,
// and that inside intervals half as wide is 0.589.
func TestCoverageTellsRightFromNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var outcomes []string
	var right, narrow told
	for range 4000 {
		p := evaluate.Prediction{Mean: 10 * r.NormFloat64(), SD: 0.1 + r.Float64()}
		outcomes = append(outcomes, strconv.FormatFloat(p.Mean+p.SD*r.NormFloat64(), 'g', -1, 64))
		right = append(right, p)
		p.SD /= 2
		narrow = append(narrow, p)
	}
	o := evaluate.Outcome{Column: "y"}
	a, b := judge(t, o, outcomes, right).Marks, judge(t, o, outcomes, narrow).Marks
	if math.Abs(a["coverage"]-0.9) > 0.02 || math.Abs(b["coverage"]-0.589) > 0.04 ||
		!(a["log_likelihood"] > b["log_likelihood"]) {
		t.Errorf("right %v, too narrow %v", a, b)
	}
}

// Log-likelihood and Brier score are proper: where outcomes come with exactly the
// frequencies that somebody states, nobody who states others has better ones. And
// such a statement is calibrated.
func TestScoresAreProper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := []string{"a", "b", "c"}[:rapid.IntRange(2, 3).Draw(t, "levels")]
		o := evaluate.Outcome{Column: "y", Levels: levels}
		var outcomes []string
		var truth, other []float64
		for _, l := range levels {
			n := rapid.IntRange(1, 9).Draw(t, "rows")
			for range n {
				outcomes = append(outcomes, l)
			}
			truth, other = append(truth, float64(n)), append(other, rapid.Float64Range(0.1, 9).Draw(t, "other"))
		}
		norm := func(w []float64) evaluate.Prediction {
			sum := 0.0
			for _, x := range w {
				sum += x
			}
			p := make([]float64, len(w))
			for i := range w {
				p[i] = w[i] / sum
			}
			return probabilities(p...)
		}
		ask := func(p evaluate.Prediction) *evaluate.Judgement {
			m := make(told, len(outcomes))
			for i := range m {
				m[i] = p
			}
			return testkit.Get(o.Judge(context.Background(), m, asked(t, outcomes), 0.9))(t)
		}
		a, b := ask(norm(truth)).Marks, ask(norm(other)).Marks
		if a["log_likelihood"] < b["log_likelihood"]-1e-12 || a["brier_score"] > b["brier_score"]+1e-12 ||
			a["calibration_error"] > 1e-12 {
			t.Fatalf("%v of the truth, %v of something else", a, b)
		}
	})
}

// Rows may be judged together or apart.
func TestCalibrationsMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, first, second evaluate.Calibration
		for range rapid.IntRange(0, 50).Draw(t, "rows") {
			p, happened := rapid.Float64Range(0, 1).Draw(t, "p"), rapid.Bool().Draw(t, "happened")
			all.Add(p, happened)
			if rapid.Bool().Draw(t, "first") {
				first.Add(p, happened)
			} else {
				second.Add(p, happened)
			}
		}
		first.Merge(&second)
		x, y := all.Points()
		u, v := first.Points()
		for i := range all {
			if all[i].Rows != first[i].Rows || math.Abs(x[i]-u[i]) > 1e-12 || math.Abs(y[i]-v[i]) > 1e-12 ||
				math.IsNaN(x[i]) != (all[i].Rows == 0) {
				t.Fatalf("bin %d: %+v together, %+v apart", i, all[i], first[i])
			}
		}
		if e := all.Error(); math.Abs(e-first.Error()) > 1e-12 || e < 0 || e > 1 {
			t.Fatalf("errors %v and %v", e, first.Error())
		}
	})
}

// The base rate knows frequencies, with one subject more of every class, and numbers'
// mean and variance.
func TestBaseRate(t *testing.T) {
	known := testkit.Get(outcomeRows([]string{"no", "no", "yes", "no"}))(t)
	m := testkit.Get(sick.FitBaseRate(t.Context(), known, known))(t)
	j := judge(t, sick, []string{"yes", "no"}, m)
	wants(t, j.Marks, evaluate.Marks{"log_likelihood": (math.Log(0.3) + math.Log(0.7)) / 2, "accuracy": 0.5, "auc": 0.5,
		"brier_score": (0.49 + 0.09) / 2, "calibration_error": 0.2})
	numbers := testkit.Get(outcomeRows([]string{"1", "2", "6"}))(t)
	number := evaluate.Outcome{Column: "y"}
	m = testkit.Get(number.FitBaseRate(t.Context(), numbers))(t)
	var p evaluate.Posterior
	if err := m.Infer(&dataset.Row{Views: [][]float64{nil}}, &p); err != nil || p.Outcome.Mean != 3 ||
		math.Abs(p.Outcome.SD-math.Sqrt(14.0/3)) > 1e-12 {
		t.Errorf("%+v, %v", p.Outcome, err)
	}
}

func TestOutcomesThatCannotBeJudged(t *testing.T) {
	number := evaluate.Outcome{Column: "y"}
	rows := func(outcomes ...string) dataset.Source {
		return testkit.Get(outcomeRows(outcomes))(t)
	}
	even := told{probabilities(0.5, 0.5)}
	fit := func(o evaluate.Outcome, src ...dataset.Source) error {
		_, err := o.FitBaseRate(t.Context(), src...)
		return err
	}
	ask := func(o evaluate.Outcome, m evaluate.Model, src dataset.Source, level float64) error {
		_, err := o.Judge(t.Context(), m, src, level)
		return err
	}
	for want, err := range map[string]error{
		`outcome y: "maybe" is not one of ["no" "yes"]`: ask(sick, even, rows("maybe"), 0.9),
		`outcome y: "NaN" is not a finite number`:       ask(number, told{{SD: 1}}, rows("NaN"), 0.9),
		"there are no subjects to predict":              ask(sick, even, rows(), 0.9),
		"intervals of level 90":                         ask(sick, even, rows("no"), 90),
		`no subject column "z"`:                         ask(evaluate.Outcome{Column: "z"}, even, rows("no"), 0.9),
		"2 probabilities for 0 levels of y":             ask(number, even, rows("1"), 0.9),
		"the model expects 0 ± 0 of y":                  ask(number, told{{}}, rows("1"), 0.9),
		"the logarithm of a probability of y is NaN": ask(sick, told{{LogP: []float64{0, math.NaN()}}},
			rows("no"), 0.9),
		"the logarithm of a probability of y is 0.5": ask(sick, told{{LogP: []float64{0, 0.5}}}, rows("no"), 0.9),
		"no sources":            fit(sick),
		"there are no subjects": fit(sick, rows()),
		`the data have no subject column "z", the outcome`: fit(evaluate.Outcome{Column: "z"}, rows("no")),
		`subject 000001: outcome y: "x" is not one of`:     fit(sick, rows("no", "x")),
		"3 outcomes around 2 do not vary":                  fit(number, rows("2", "2", "2")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestLDAInOneDimension(t *testing.T) {
	// Classes a = {0, 2, 0, 2} with mean 1, b = {4, 6} with mean 5.
	// Within scatter 4 + 2 = 6, n − K = 4, Σ = 1.5. The boundary is
	// (μ_a + μ_b)/2 + Σ·log(π_a/π_b)/(μ_b − μ_a) = 3 + 1.5·log 2/4 = 3.2599.
	lda, err := evaluate.FitLDA(evaluate.Scores{
		Latent: [][]float64{{0}, {2}, {0}, {2}, {4}, {6}},
		Labels: []string{"a", "a", "a", "a", "b", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	boundary := 3 + 1.5*math.Ln2/4
	if a, b := lda.Classify([]float64{boundary - 1e-9}), lda.Classify([]float64{boundary + 1e-9}); a != "a" ||
		b != "b" {
		t.Fatalf("%s below the boundary, %s above it", a, b)
	}
}

// cloud draws points of three classes around their own means.
func cloud(seed uint64, n int) evaluate.Scores {
	r := rand.New(rand.NewPCG(seed, 0))
	var s evaluate.Scores
	for i := range n {
		k := i % 3
		s.Latent = append(s.Latent, []float64{r.NormFloat64() + float64(k), r.NormFloat64() - float64(k*k)})
		s.Labels = append(s.Labels, fmt.Sprint(k))
	}
	return s
}

func TestLDADoesNotDependOnTheBasis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		train, test := cloud(seed, 60), cloud(seed+1, 60)
		a := rapid.Float64Range(0.1, 10).Draw(t, "a")
		b := rapid.Float64Range(-3, 3).Draw(t, "b")
		moved := func(s evaluate.Scores) evaluate.Scores {
			m := evaluate.Scores{Labels: s.Labels}
			for _, x := range s.Latent {
				m.Latent = append(m.Latent, []float64{a*x[0] + b*x[1] + 7, x[1] - 2})
			}
			return m
		}
		plain := testkit.Get(evaluate.FitLDA(train))(t)
		other := testkit.Get(evaluate.FitLDA(moved(train)))(t)
		if p, q := plain.Accuracy(test), other.Accuracy(moved(test)); p != q {
			t.Fatalf("accuracy %v, and %v in another basis", p, q)
		}
	})
}

func TestLDAOfSingularScores(t *testing.T) {
	for name, s := range map[string]evaluate.Scores{
		"a dimension that is always 0": {Latent: [][]float64{{0, 0}, {1, 0}, {0.5, 0}, {4, 0}, {5, 0}, {4.5, 0}}},
		"a dimension twice": {Latent: [][]float64{{0, 0}, {1, 1}, {0.5, 0.5}, {4, 4}, {5, 5},
			{4.5, 4.5}}},
		"classes that do not vary at all": {Latent: [][]float64{{1, 2}, {1, 2}, {1, 2}, {3, 4}, {3, 4}, {3, 4}}},
	} {
		s.Labels = []string{"a", "a", "a", "b", "b", "b"}
		lda, err := evaluate.FitLDA(s)
		if err != nil || lda.Accuracy(s) != 1 {
			t.Errorf("%s: accuracy %v (%v)", name, lda.Accuracy(s), err)
		}
	}
	same := evaluate.Scores{Latent: [][]float64{{1}, {1}, {1}}, Labels: []string{"a", "b", "b"}}
	if lda, err := evaluate.FitLDA(same); err != nil || lda.Classify([]float64{1}) != "b" {
		t.Errorf("points that are all alike go to the rarer class (%v)", err)
	}
}

func TestLDAWithoutDimensionsNamesTheMostFrequentClass(t *testing.T) {
	s := evaluate.Scores{Latent: [][]float64{{}, {}, {}}, Labels: []string{"a", "b", "b"}}
	lda, err := evaluate.FitLDA(s)
	if err != nil || lda.Classify(nil) != "b" {
		t.Fatal(err)
	}
}

func TestLDARefusals(t *testing.T) {
	for want, s := range map[string]evaluate.Scores{
		"0 points, 0 labels":       {},
		"1 points, 2 labels":       {Latent: [][]float64{{1}}, Labels: []string{"a", "b"}},
		"needs two classes":        {Latent: [][]float64{{1}, {2}}, Labels: []string{"a", "a"}},
		"more points than classes": {Latent: [][]float64{{1}, {2}}, Labels: []string{"a", "b"}},
		"point 2 has 2 dimensions": {Latent: [][]float64{{1}, {2, 3}, {4}}, Labels: []string{"a", "b", "b"}},
		"analysis: the scores are not f": {Latent: [][]float64{{1}, {math.NaN()}, {4}},
			Labels: []string{"a", "b", "b"}},
	} {
		if _, err := evaluate.FitLDA(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestPairedAgainstATable(t *testing.T) {
	// Differences −1, −2, −3, 0: mean −1.5, s = 1.290994, t(0.975, 3) = 3.182446 (any table).
	a, b := []float64{1, 1, 1, 1}, []float64{2, 3, 4, 1}
	d, err := evaluate.Paired(a, b, 0.95, 0)
	half := 3.182446 * 1.290994 / 2
	if err != nil || d.Mean != -1.5 || math.Abs(d.Low+1.5+half) > 1e-5 || math.Abs(d.High+1.5-half) > 1e-5 {
		t.Fatalf("got %+v (%v), want −1.5 ± %v", d, err, half)
	}
	if d.Wins != 3 || d.Losses != 0 || d.Ties != 1 {
		t.Errorf("got %+v", d)
	}
	wide, err := evaluate.Paired(a, b, 0.95, 0.5)
	if err != nil || math.Abs((wide.High-wide.Low)/(d.High-d.Low)-math.Sqrt(3)) > 1e-9 {
		t.Errorf("√((1/4 + 1/2)/(1/4)) = √3 times wider, got %+v (%v)", wide, err)
	}
}

func TestPairedRefusals(t *testing.T) {
	one, two, bad := []float64{1}, []float64{1, 2}, []float64{1, math.NaN()}
	for want, err := range map[string]error{
		"1 scores against 1":     paired(one, one, 0.95, 0),
		"1 scores against 2":     paired(one, two, 0.95, 0),
		"have no difference":     paired(two, bad, 0.95, 0),
		"needs 0 < level < 1":    paired(two, two, 95, 0),
		"level 0.95, overlap -1": paired(two, two, 0.95, -1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func paired(a, b []float64, level, overlap float64) error {
	_, err := evaluate.Paired(a, b, level, overlap)
	return err
}
