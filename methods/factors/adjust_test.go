package factors

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
)

// agedSites is a study of three sites whose first view goes with age and sex.
func agedSites(t testing.TB, options string, change func(s *shape)) *small {
	t.Helper()
	s := shape{dims: []int{4, 3}, sites: 3, rows: 60, options: "  latent: 2\n  rounds: 0\n  outliers: keep\n" + options,
		ageing: 3, seed: 9}
	if change != nil {
		change(&s)
	}
	return s.study(t)
}

const ageAndSex = "  adjust: [age, {column: sex, levels: [f, m]}]\n"

// leastSquares is the study with every feature less what an ordinary regression of it on age,
// sex and an indicator of each site, over the rows in one place that have the feature and
// both, makes of the two. It shares nothing with package covariates. It returns the slopes too.
func leastSquares(t testing.TB, s *small) (map[string]*dataset.Table, map[string][2]float64) {
	t.Helper()
	type subject struct {
		site     int
		age, sex float64
		views    [][]float64
	}
	rows, mean := map[int][]dataset.Row{}, [2]float64{}
	var all []subject
	for i, name := range s.plan.Sites {
		for _, row := range tableRows(s, name) {
			age, err := strconv.ParseFloat(row.Subject[0], 64)
			if err != nil || math.IsNaN(age) || !slices.ContainsFunc(row.Views, func(v []float64) bool {
				return v != nil
			}) {
				continue // they count for nothing
			}
			x := subject{site: i, age: age, views: make([][]float64, len(row.Views))}
			if row.Subject[1] == "m" {
				x.sex = 1
			}
			mean[0], mean[1] = mean[0]+x.age, mean[1]+x.sex
			for k, v := range row.Views {
				x.views[k] = slices.Clone(v)
			}
			row.Views = x.views
			rows[i], all = append(rows[i], row), append(all, x)
		}
	}
	slopes, n := map[string][2]float64{}, float64(len(all))
	for k, v := range s.plan.Views {
		for j, f := range v.Features {
			known, sites := []subject{}, map[int]int{}
			for _, c := range all {
				if c.views[k] != nil && !math.IsNaN(c.views[k][j]) {
					if known = append(known, c); sites[c.site] == 0 {
						sites[c.site] = 2 + len(sites)
					}
				}
			}
			x, y := mat.NewDense(len(known), 2+len(sites), nil), mat.NewVecDense(len(known), nil)
			for i, c := range known {
				x.Set(i, 0, c.age)
				x.Set(i, 1, c.sex)
				x.Set(i, sites[c.site], 1)
				y.SetVec(i, c.views[k][j])
			}
			var b mat.VecDense
			testkit.Do(t, b.SolveVec(x, y))
			slopes[f.Name] = [2]float64{b.AtVec(0), b.AtVec(1)}
			for _, c := range known {
				c.views[k][j] -= b.AtVec(0)*(c.age-mean[0]/n) + b.AtVec(1)*(c.sex-mean[1]/n)
			}
		}
	}
	out := map[string]*dataset.Table{}
	for i, name := range s.plan.Sites {
		out[name] = testkit.Get(dataset.NewTable(s.data[name].Schema(), rows[i]))(t)
	}
	return out, slopes
}

// What is fitted is what least squares with an indicator of every site leave, whatever is
// missing: the same loadings, noise and means.
func TestAdjustedModelIsThatOfResiduals(t *testing.T) {
	for name, change := range map[string]func(*shape){
		"complete":        nil,
		"with gaps":       func(s *shape) { s.missing, s.gaps, s.lacks = 0.1, 0.2, map[[2]int]bool{{1, 1}: true} },
		"unknown ages":    func(s *shape) { s.unknown = 0.2 },
		"sites differ":    func(s *shape) { s.shift = 3 },
		"scaled by range": func(s *shape) { s.options += "  scaling: range\n" },
	} {
		s := agedSites(t, ageAndSex, change)
		adjusted, _, _ := modelOf(t, s)
		plain := agedSites(t, "", change)
		var slopes map[string][2]float64
		plain.data, slopes = leastSquares(t, s)
		want, _, _ := modelOf(t, plain)
		for k, v := range want.Views {
			for i, f := range v.Features {
				got := adjusted.Views[k].Features[i]
				// Loadings, means and scales of two fits to rows that differ by rounding.
				if w := factorstest.Worst(append([]float64{f.Mean, f.Noise, f.Shift, f.Factor}, f.Loadings...),
					append([]float64{got.Mean, got.Noise, got.Shift, got.Factor}, got.Loadings...)); w > 1e-6 {
					t.Errorf("%s, %s: %v away", name, f.Name, w)
				}
				if w := factorstest.Worst(got.Effects, []float64{slopes[f.Name][0], slopes[f.Name][1]}); w > 1e-8 {
					t.Errorf("%s, %s: effects %v, want %v", name, f.Name, got.Effects, slopes[f.Name])
				}
			}
		}
	}
}

// Where age drives a view, a factor is age; of adjusted features none is, at no site.
func TestFactorsAreNotWhatTheyAreAdjustedFor(t *testing.T) {
	for options, want := range map[string]func(r float64) bool{
		"":        func(r float64) bool { return r > 0.8 },
		ageAndSex: func(r float64) bool { return r < 0.1 },
	} {
		s := agedSites(t, options, func(s *shape) { s.rows = 150; s.options += "  site_means: separate\n" })
		m, _, _ := modelOf(t, s)
		var within [3][]float64 // by factor and of age, about the sites' means
		for _, site := range s.plan.Sites {
			var out bytes.Buffer
			if _, _, err := m.Transform(t.Context(), s.data[site], &out,
				method.TransformOptions{Site: site}); err != nil {
				t.Fatal(err)
			}
			lines := testkit.Get(csv.NewReader(&out).ReadAll())(t)[1:]
			var values [3][]float64
			for i, line := range lines {
				for a, text := range []string{line[2], line[3], s.data[site].Row(i).Subject[0]} {
					values[a] = append(values[a], testkit.Get(parse64(text))(t))
				}
			}
			for a, x := range values {
				mean := stat.Mean(x, nil)
				for _, y := range x {
					within[a] = append(within[a], y-mean)
				}
			}
		}
		most := max(math.Abs(stat.Correlation(within[0], within[2], nil)),
			math.Abs(stat.Correlation(within[1], within[2], nil)))
		if t.Logf("%q: a factor goes with age by %.3f", options, most); !want(most) {
			t.Errorf("%q: the largest correlation of a factor with age is %v", options, most)
		}
	}
}

// Uses of an adjusted model need the covariates, and give values as they were measured.
func TestUsesOfAnAdjustedModel(t *testing.T) {
	s := agedSites(t, ageAndSex, nil)
	m, _, p := modelOf(t, s)
	if m.Format != "parley/mvppca-model/2" ||
		!slices.ContainsFunc(m.Schema().Subject, func(c dataset.Column) bool { return c.Name == "sex" }) {
		t.Errorf("format %q, columns %v", m.Format, m.Schema().Subject)
	}
	person := func(columns []dataset.Column, cells ...string) *dataset.Table {
		schema := m.Schema()
		schema.Subject = columns
		return testkit.Get(dataset.NewTable(schema,
			[]dataset.Row{{ID: "a", Views: [][]float64{nil, nil}, Subject: cells}}))(t)
	}
	impute := func(data dataset.Source) ([]float64, error) {
		var out bytes.Buffer
		_, _, err := m.Impute(t.Context(), data, &out, method.ImputeOptions{Level: 0.9})
		var means []float64
		if err == nil {
			for _, line := range testkit.Get(csv.NewReader(&out).ReadAll())(t)[1:] {
				means = append(means, testkit.Get(parse64(line[3]))(t))
			}
		}
		return means, err
	}
	young := testkit.Get(impute(person(columns[:2], "50", "f")))(t)
	old := testkit.Get(impute(person([]dataset.Column{columns[2], columns[1], columns[0]}, "x", "m", "70")))(t)
	for j := range young { // 20 years and a level of sex
		if d := old[j] - young[j]; j < 4 && math.Abs(d-3) > 1 || j >= 4 && math.Abs(d) > 1 {
			t.Errorf("feature %d: %v more is expected of a man of 70 than of a woman of 50", j, d)
		}
	}
	for want, data := range map[string]dataset.Source{
		"there is no column sex, which the model is adjusted for":              person(columns[:1], "50"),
		"of 1 of 1 subjects one of age, sex is not known":                      person(columns[:2], "", "f"),
		`subject "a": "x" is not one of the levels f, m`:                       person(columns[:2], "50", "x"),
		`subject "a": "old" is not a number of at most`:                        person(columns[:2], "old", "x"),
		`subject "a": "Inf" is not a number of at most`:                        person(columns[:2], "Inf", "f"),
		"there is no column age, sex, which the model is adjusted for\n  hint": person(nil),
	} {
		if _, err := impute(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	account, err := m.Associate(t.Context(), s.data["site-0"], method.AssociateOptions{Tested: []string{"scanner"},
		Categories: []string{"scanner"}})
	if err == nil || !strings.Contains(err.Error(), "scanner") { // one level
		t.Errorf("associating: %v, %v", account, err)
	}
	scoresAt(t, s, p, m, "site-1")
}

// What is evaluated are values as they were measured, by the shared model and by the fit to all
// rows alike; nothing is lost against a model that knows nothing of age.
func TestEvaluationOfAnAdjustedModel(t *testing.T) {
	adjusted, plain := agedSites(t, ageAndSex, nil), agedSites(t, "", nil)
	score := func(m evaluate.Model, err error) evaluate.Score {
		if err != nil {
			t.Fatal(err)
		}
		return testkit.Get(evaluate.EvaluateIn(t.Context(), nil, m, plain.all(t)))(t)
	}
	of := func(s *small) evaluate.Score {
		_, r, _ := modelOf(t, s)
		return score(Method{}.Evaluator(s.plan, r.Files, false))
	}
	with, without, central := of(adjusted), of(plain), score(Method{}.Central(t.Context(), adjusted.plan,
		adjusted.all(t)))
	if t.Logf("adjusted %+v\nnot %+v\ncentral %+v", with, without, central); with.LogLik < without.LogLik+0.5 ||
		math.Abs(with.LogLik-central.LogLik) > 0.3 {
		t.Errorf("nats per row: adjusted %v, not %v, in one place %v", with.LogLik, without.LogLik, central.LogLik)
	}
	// A subject of whom nothing is known at all is at the means.
	_, r, _ := modelOf(t, adjusted)
	m := testkit.Get(Method{}.Evaluator(adjusted.plan, r.Files, true))(t)
	var post evaluate.Posterior
	if err := m.Infer(&dataset.Row{Views: make([][]float64, 2), Subject: make([]string, 3)}, &post); err != nil ||
		math.IsNaN(post.Mean[0][0]) {
		t.Errorf("%v, %v", post.Mean, err)
	}
}

// What the report says first: covariates that say nothing within sites, and subjects who lack
// one.
func TestWhatIsSaidOfAdjustment(t *testing.T) {
	scanner := "  adjust: [{column: scanner, levels: [\"0\", \"1\", \"2\"]}, age]\n"
	for options, want := range map[string]struct {
		change func(*shape)
		says   string
	}{
		ageAndSex: {nil, ""},
		scanner:   {nil, "the features could not be adjusted for scanner 1, scanner 2"},
		ageAndSex + " ": {func(s *shape) { s.unknown = 0.3 },
			"took no part, because a covariate of theirs is not known"},
	} {
		_, r, _ := modelOf(t, agedSites(t, options, want.change))
		wrong := !said(r.Verdicts(), want.says)
		if want.says == "" {
			wrong = said(r.Verdicts(), "covariate") || said(r.Verdicts(), "adjusted")
		}
		if wrong {
			t.Errorf("%s: the verdicts are %q", options, r.Verdicts())
		}
		if !slices.ContainsFunc(r.Sections, func(s figure.Section) bool { return s.ID == "adjusted" }) {
			t.Errorf("%s: the report does not name the covariates", options)
		}
	}
}

// A feature that covariates determine is named, and so are models whose numbers do not fit.
func TestAdjustmentsThatCannotBe(t *testing.T) {
	s := agedSites(t, ageAndSex, nil)
	for site := range s.data {
		dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 0, func(v []float64) { v[1], _ = parse64(table.Row(i).Subject[0]) })
		})
	}
	if _, err := newPlay(t, s).run(); err == nil ||
		!strings.Contains(err.Error(), "view v0, feature f0_1: nothing is left of it when it is adjusted for age, "+
			"sex m") {
		t.Errorf("a feature that is age: %v", err)
	}
	m, _, _ := modelOf(t, agedSites(t, ageAndSex, nil))
	refused(t, m, map[string]func(m *fitted.Model){
		"format":  func(m *fitted.Model) { m.Format = fitted.ModelFormat },
		"means":   func(m *fitted.Model) { m.Covariates[0].Mean = nil },
		"effects": func(m *fitted.Model) { m.Views[0].Features[0].Effects = nil },
		"slopes":  func(m *fitted.Model) { m.Views[0].Features[0].Effects[0] = 1e80 },
	})
}

// Plans whose covariates cannot be are refused by place.
func TestCovariatesThatCannotBe(t *testing.T) {
	for adjust, want := range map[string]string{
		"[height]":                         `method.adjust: "height" is not a column under subjects`,
		"[age, age]":                       "method.adjust: column age is named twice",
		"[{levels: [a, b]}]":               "method.adjust: no column is named",
		"[{column: sex, levels: [f]}]":     "method.adjust.levels: a category of one level says nothing",
		"[{column: sex, levels: [f, f]}]":  `level "f" stands for what is not known, or is there twice`,
		"[{column: sex, levels: [f, NA]}]": `level "NA" stands for what is not known, or is there twice`,
		"age":                              "where a list is expected",
		"[{column: sex, level: [f, m]}]":   "did you mean levels?",
		"[{column: sex, levels: [" + levels(66) + "]}]": "65 numbers and levels to adjust for",
	} {
		_, err := parse("subjects: [age, sex]\n" + planWith("  - {name: clinic, features: [bmi, weight]}\n",
			"  latent: 1\n  adjust: "+adjust+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", adjust, err, want)
		}
	}
	_, err := parse(strings.Replace("subjects: [age]\n"+
		planWith("  - {name: clinic, features: [{name: bmi, range: [10, 60]}, {name: weight, range: [20, 200]}]}\n",
			"  latent: 1\n  adjust: [age]\n"), "{protection: none}", totalBudget, 1))
	if err == nil || !strings.Contains(err.Error(), "exact sums, which do not leave a site under differential "+
		"privacy") || !strings.Contains(err.Error(), "parley model associate --adjust") {
		t.Errorf("under differential privacy: %v", err)
	}
}

func levels(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("l%d", i))
	}
	return strings.Join(list, ", ")
}
