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
	"parley/method"
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
func predictions(t *testing.T, m *fitted.Model, data dataset.Source,
	opts method.PredictOptions) (rows [][]string, a *method.Account) {
	t.Helper()
	var b strings.Builder
	opts.Level = 0.9
	_, a, err := m.Predict(t.Context(), data, &b, opts)
	if err != nil {
		t.Fatal(err)
	}
	rows = testkit.Get(csv.NewReader(strings.NewReader(b.String())).ReadAll())(t)
	return rows[1:], a
}

// A cell that a new subject lacks has no effect, as in the fit: a number is at its centre, and a category at its
// reference. How many lack it is said.
func TestPredictionsOfSubjectsWhoLackFeatures(t *testing.T) {
	for name, o := range drawnOutcomes {
		p := parse(t, fmt.Sprintf(arrivals, o.subjects, o.options+
			", constants: [{feature: x, centre: 0.5, scale: 1}, {feature: u, centre: 0, scale: 2}]"))
		m, _ := run(t, among(t, p, arriving(1, 1500, -1, o.draw)))
		rows := arriving(2, 50, -1, o.draw)
		lack := func(missing bool) [][]string {
			for i := range rows {
				rows[i].Views = [][]float64{{0.5, rows[i].Views[0][1], 0}} // half of them are at level p
				if missing {
					rows[i].Views[0][0], rows[i].Views[0][2] = math.NaN(), math.NaN()
				}
			}
			got, account := predictions(t, m, tableOf(t, p, rows), method.PredictOptions{})
			if (account != nil) != missing || missing && !strings.Contains(account.Notes.Error(),
				"of 50 subjects some lack features: x (50), g (50)") {
				t.Errorf("%s: %v", name, account)
			}
			return got
		}
		if there, missing := lack(false), lack(true); fmt.Sprint(there) != fmt.Sprint(missing) {
			t.Errorf("%s: predicted %v, and %v without two features", name, there[0], missing[0])
		}
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
		for _, score := range []bool{false, true} {
			_, account := predictions(t, m, tableOf(t, p, rows), method.PredictOptions{Score: score})
			said := ""
			if account != nil && len(account.Notes) > 0 {
				said = account.Notes.Error()
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
}
