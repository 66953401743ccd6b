package regression_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
)

const arrivals = `{parley: 1, name: arrivals, sites: [a, b, c], subjects: [%s], views: [{name: v, features: [x, u, {name: g, kind: category, levels: [p, q, r, never]}]}],
	method: {name: regression, %s}, privacy: {protection: none}}`

// arriving draws subjects with an activation of a + 1.5x + ½u, and 2 more at level q, which a quarter have, as
// many as r.
func arriving(seed uint64, n int, a float64, outcome func(r *rand.Rand, f float64) []string) (rows []dataset.Row) {
	r := rand.New(rand.NewPCG(seed, 31))
	for i := range n {
		x, u, g := r.NormFloat64(), r.NormFloat64(), float64(max(r.IntN(4)-1, 0))
		f := a + 1.5*x + 0.5*u
		if g == 1 {
			f += 2
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{{x, u, g}},
			Subject: outcome(r, f)})
	}
	return rows
}

var drawnOutcomes = map[string]struct {
	subjects, options string
	draw              func(r *rand.Rand, f float64) []string
}{
	"number": {"y", "outcome: {column: y}", func(r *rand.Rand, f float64) []string {
		return []string{fmt.Sprint(f + r.NormFloat64())}
	}},
	"two classes": {"y", `outcome: {column: y, levels: ["no", "yes"]}`, func(r *rand.Rand, f float64) []string {
		return []string{[]string{"no", "yes"}[int(r.Float64()+1/(1+math.Exp(2-2*f)))]}
	}},
	"softmax": {"y", `outcome: {column: y, levels: ["no", "yes"]}, likelihood: softmax`,
		func(r *rand.Rand, f float64) []string {
			return []string{[]string{"no", "yes"}[int(r.Float64()+1/(1+math.Exp(2-2*f)))]}
		}},
	"count": {"y", "outcome: {column: y}, likelihood: poisson", func(r *rand.Rand, f float64) []string {
		return []string{fmt.Sprint(distuv.Poisson{Lambda: math.Exp(f/2 + 0.5), Src: r}.Rand())}
	}},
	"time": {"y, died", `outcome: {column: y, event: died, levels: ["no", "yes"], cuts: [1, 2]}`,
		func(r *rand.Rand, f float64) []string {
			for k := range 2 {
				if r.Float64() < 1/(1+math.Exp(1-f)) {
					return []string{fmt.Sprint(float64(k) + 0.5), "yes"}
				}
			}
			return []string{"2", "no"}
		}},
}

// table reads predictions.
func predictions(t *testing.T, m *fitted.Model, data dataset.Source) (rows [][]string, notes method.Notes) {
	t.Helper()
	var b strings.Builder
	_, notes, err := m.Predict(t.Context(), data, &b, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	rows = testkit.Get(csv.NewReader(strings.NewReader(b.String())).ReadAll())(t)
	return rows[1:], notes
}

// Whatever feature new subjects lack, predictions are right on average, and intervals hold as many
// outcomes as they say. What lacks nothing is predicted as before.
func TestPredictionsOfSubjectsWhoLackFeatures(t *testing.T) {
	for name, o := range drawnOutcomes {
		p := parse(t, fmt.Sprintf(arrivals, o.subjects, o.options))
		m, _ := run(t, among(t, p, arriving(1, 1500, -1, o.draw)))
		for lacking, what := range [][]int{nil, {0}, {2}, {0, 2}, {0, 1, 2}} {
			rows := arriving(2, 3000, -1, o.draw)
			for i := range rows {
				for _, j := range what {
					rows[i].Views[0][j] = math.NaN()
				}
			}
			got, notes := predictions(t, m, tableOf(t, p, rows))
			predicted, seen, held := 0.0, 0.0, 0.0
			for i, r := range got {
				y := rows[i].Subject
				switch name {
				case "two classes", "softmax":
					predicted += float(t, r[3])
					if y[0] == "yes" {
						seen++
					}
				case "time":
					predicted += float(t, r[4])
					if y[1] == "no" {
						seen++
					}
				default:
					value := float(t, y[0])
					predicted, seen = predicted+float(t, r[1]), seen+value
					if float(t, r[3]) <= value && value <= float(t, r[4]) {
						held++
					}
				}
			}
			n := float64(len(rows))
			t.Logf("%s without %v: predicted %.3f, seen %.3f, held %.3f", name, what, predicted/n, seen/n, held/n)
			if math.Abs(predicted-seen)/n > 0.1*max(1, seen/n) {
				t.Errorf("%s without %v: predicted %.3f of %.3f", name, what, predicted/n, seen/n)
			}
			if least := map[string]float64{"number": 0.88, "count": 0.88}[name]; held/n < least || held/n > 0.975 {
				t.Errorf("%s without %v: intervals of 90 %% held %.3f", name, what, held/n)
			}
			if (notes != nil) != (lacking > 0) || lacking > 0 &&
				!strings.Contains(notes.Error(), "of 3000 subjects some lack features: "+
					[]string{"x", "u", "g"}[what[0]]+" (3000)") {
				t.Errorf("%s without %v: %v", name, what, notes)
			}
		}
	}
}

// A level that most subjects have is not what everybody has who lacks the feature; a private model
// does not know the shares of levels, and is less sure without them.
func TestPrivateModelsAreLessSureOfSubjectsWhoLackFeatures(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(arrivals, "y", drawnOutcomes["two classes"].options+
		", constants: [{feature: x, centre: 0, scale: 1}, {feature: u, centre: 0, scale: 1}]"),
		"{protection: none}", "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 8, "+
			"delta: 1e-6}}", 1)
	p := parse(t, text)
	m, _ := run(t, among(t, p, arriving(1, 6000, -1, drawnOutcomes["two classes"].draw)))
	full := arriving(2, 1, -1, drawnOutcomes["two classes"].draw)[0]
	sure := func(change func(v []float64)) float64 {
		row := full
		row.Views = [][]float64{{3, 0, 1}}
		change(row.Views[0])
		got, _ := predictions(t, m, tableOf(t, p, []dataset.Row{row}))
		return float(t, got[0][3])
	}
	all := sure(func([]float64) {})
	if number, category := sure(func(v []float64) { v[1] = math.NaN() }),
		sure(func(v []float64) { v[2] = math.NaN() }); !(all > number && number > category && category > 0.5) {
		t.Errorf("a probability of %v, without a number %v, without a category %v", all, number, category)
	}
}

// A use of the model says what is odd about subjects, by counts and means and nobody's value; of
// subjects like those of the fit it says nothing.
func TestPredictingNotesOddSubjects(t *testing.T) {
	o := drawnOutcomes["number"]
	text := fmt.Sprintf(arrivals, o.subjects, o.options+", splines: [{feature: u, knots: [-1, 0, 1]}]")
	p := parse(t, text)
	m, _ := run(t, among(t, p, arriving(1, 1500, -1, o.draw)))
	for _, c := range []struct {
		change func(i int, v []float64)
		want   []string
	}{
		{func(int, []float64) {}, nil},
		{func(i int, v []float64) { v[0] = 0.5 }, nil}, // a scenario
		{func(i int, v []float64) { v[0] = 1000 * (v[0] + 2) },
			[]string{"of 200 subjects some features are far from all subjects of the fit: x (mean 2"}},
		{func(i int, v []float64) { v[0] /= 1000 }, []string{"far from all subjects of the fit: x (mean "}},
		{func(i int, v []float64) {
			if i < 3 {
				v[0] = 99.25
			}
		}, []string{"of 200 subjects some have values more than 8 standard deviations from the mean of the fit: x " +
			"(3, in the fit "}},
		{func(i int, v []float64) {
			if i == 0 {
				v[1] = 20.25
			}
		}, []string{"mean of the fit: u (1, in the fit "}},
		{func(i int, v []float64) {
			if i < 2 {
				v[2] = 3
			}
		}, []string{"of 200 subjects some have levels that nobody had in the fit: g=never (2)", "the prior alone"}},
	} {
		rows := arriving(3, 200, -1, o.draw)
		for i := range rows {
			c.change(i, rows[i].Views[0])
		}
		said := ""
		if _, notes := predictions(t, m, tableOf(t, p, rows)); len(notes) > 0 {
			said = notes.Error()
		}
		if (said != "") != (c.want != nil) || strings.Contains(said, ".25") {
			t.Errorf("said %q; want %q", said, c.want)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("said %q; want %q", said, want)
			}
		}
	}
}

// A fit to all rows in one place predicts subjects who lack a category as that to sites does: by the shares
// that its levels have.
func TestCentralFitsKnowShares(t *testing.T) {
	p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}")
	rows := stays(41, 400, func(age, dose, sex float64) float64 { return sex })
	for i := range rows {
		if i%5 > 0 {
			rows[i].Views[0][2] = 1
		}
	}
	_, out := run(t, among(t, p, rows))
	at := rows[0]
	at.Views = [][]float64{{60, 2, math.NaN()}}
	sites := testkit.Get(regression.Method{}.Evaluator(p, out.Result.Files, false))(t)
	central := testkit.Get(regression.Method{}.Central(t.Context(), p, tableOf(t, p, rows)))(t)
	var want, got evaluate.Posterior
	testkit.Do(t, sites.Infer(&at, &want))
	if err := central.Infer(&at, &got); err != nil || math.Abs(got.Outcome.LogP[1]-want.Outcome.LogP[1]) > 1e-4 {
		t.Errorf("in one place %v, of sites %v, %v", got.Outcome.LogP, want.Outcome.LogP, err)
	}
}
