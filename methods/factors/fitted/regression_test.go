package fitted

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// leastSquares is the regression by an orthogonal decomposition of its design.
func leastSquares(x [][]float64, y []float64) (b []float64, inverse *mat.Dense, rss float64) {
	p := len(x[0])
	design := mat.NewDense(len(x), p, slices.Concat(x...))
	var qr mat.QR
	qr.Factorize(design)
	var coefficients, fit mat.VecDense
	if err := qr.SolveVecTo(&coefficients, false, mat.NewVecDense(len(y), y)); err != nil {
		panic(err)
	}
	fit.MulVec(design, &coefficients)
	for i, v := range y {
		rss += (v - fit.AtVec(i)) * (v - fit.AtVec(i))
	}
	var gram mat.Dense
	inverse = new(mat.Dense)
	gram.Mul(design.T(), design)
	if err := inverse.Inverse(&gram); err != nil {
		panic(err)
	}
	return coefficients.RawVector().Data, inverse, rss
}

// manyColumns are columns that go with the factors and with each other: age, sex, site,
// group, and a copy of sex.
func manyColumns(r *rand.Rand, n int) (cells func(i int) []string, age []float64, sex, site, group []int) {
	for i := range n {
		age = append(age, 1950+30*r.Float64())
		sex, site, group = append(sex, r.IntN(2)), append(site, i%3), append(group, (i%3+r.IntN(3))%3)
	}
	return func(i int) []string {
		c := []string{fmt.Sprint(age[i]), []string{"f", "m"}[sex[i]], fmt.Sprint("site", site[i]),
			[]string{"x", "y", "z"}[group[i]], fmt.Sprint(sex[i])}
		switch i {
		case 4:
			c[0] = ""
		case 5:
			c[3] = "NA"
		}
		return c
	}, age, sex, site, group
}

var covariateNames = []string{"age", "sex", "site", "group", "copy"}

// choose keeps some columns of a data set.
func choose(t testing.TB, m *Model, rows [][]float64, cells func(i int) []string, names ...string) *dataset.Table {
	return labelled(t, ownUnits(m, rows), names, func(i int) (out []string) {
		for _, name := range names {
			out = append(out, cells(i)[slices.Index(covariateNames, name)])
		}
		return out
	})
}

// TestAdjustedAssociationsAreLeastSquares holds estimates, standard errors, partial F and
// p to a QR decomposition of the design and gonum's distributions.
func TestAdjustedAssociationsAreLeastSquares(t *testing.T) {
	r := rand.New(rand.NewPCG(401, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5)
	m := modelOf(t, tr, r)
	const n = 90
	rows := tr.Subjects(r, n)
	cells, age, sex, site, group := manyColumns(r, n)
	data := choose(t, m, rows, cells, "age", "sex", "site", "group")
	opts := method.AssociateOptions{Adjust: []string{"sex", "site", "age"}}
	account, err := m.Associate(context.Background(), data, opts)
	if err != nil {
		t.Fatal(err)
	}
	value := account.Value.(sitesOwn)
	if len(value.Associations) != 2 || !slices.Equal(value.AdjustedFor, []string{"age", "sex", "site"}) ||
		!strings.Contains(account.Notes.Error(), "1 without a value in [age, sex, site]") ||
		!strings.Contains(account.Notes.Error(), "is not known of 1 subject, left out of its tests") {
		t.Fatalf("%+v, %v", value, account.Notes)
	}
	predictor, scale, _ := m.PredictorFor(Population{})
	var scores [n][2]float64
	for i := range n {
		post, values, err := predictor.Subject(data.Row(i).Views, scale)
		testkit.Do(t, err)
		post.Latent(scores[i][:], values)
	}
	var small, large [][]float64
	y := make([][]float64, 2)
	reference := map[string]int{"x": 0, "y": 1, "z": 2}[value.Associations[0].Reference]
	others := slices.DeleteFunc([]int{0, 1, 2}, func(l int) bool { return l == reference })
	is := func(a, b int) float64 { return map[bool]float64{true: 1}[a == b] }
	for i := range n {
		if i == 4 || i == 5 {
			continue
		}
		y[0], y[1] = append(y[0], scores[i][0]), append(y[1], scores[i][1])
		row := []float64{1, age[i] - 1965, is(sex[i], 1), is(site[i], 1), is(site[i], 2)}
		small, large = append(small, row), append(large, append(slices.Clone(row), is(group[i], others[0]),
			is(group[i], others[1])))
	}
	holds := func(list []tested, small, large [][]float64, y [][]float64) {
		t.Helper()
		p, terms := len(small[0]), len(large[0])-len(small[0])
		df := [2]int{terms, len(large) - p - terms}
		for a, got := range list {
			_, _, before := leastSquares(small, y[a])
			b, inverse, after := leastSquares(large, y[a])
			noise := after / float64(df[1])
			f := (before - after) / float64(terms) / noise
			tail := distuv.F{D1: float64(terms), D2: float64(df[1])}.Survival(f)
			if got.Factor != a+1 || got.Subjects != len(large) || got.DF != df || math.Abs(got.F-f) > 1e-8*f ||
				math.Abs(got.P-tail) > 1e-8*tail+1e-12 || math.Abs(got.R2-(1-after/before)) > 1e-10 ||
				len(got.Effects) != terms {
				t.Errorf("%+v, want F %v, p %v", got, f, tail)
			}
			for k, e := range got.Effects {
				if se := math.Sqrt(noise * inverse.At(p+k, p+k)); math.Abs(e.Estimate-b[p+k]) > 1e-10 ||
					math.Abs(e.SE-se) > 1e-10 {
					t.Errorf("%+v, want %v ± %v", e, b[p+k], se)
				}
			}
			if r := math.Copysign(math.Sqrt(1-after/before), b[p]); (got.Kind == "number") != (got.R != nil) ||
				got.R != nil && (got.Reference != "" || math.Abs(*got.R-r) > 1e-10) {
				t.Errorf("%+v, want a correlation of %v", got, r)
			}
		}
	}
	holds(value.Associations, small, large, y)
	// By itself, a number is one with a correlation, and a category is one by request or for its cells; whoever lacks
	// all values, or the column, does not count.
	rows[7] = factorstest.Lacking(tr.L, rows[7:8], 0, 1)[0]
	list, notes := associations(t, m, choose(t, m, rows, cells, "age", "copy", "sex"), "copy")
	if len(list) != 6 || !strings.Contains(notes, "1 without any value") {
		t.Fatalf("%+v, %s", list, notes)
	}
	var ones, alone, ages [][]float64
	of, byAge := make([][]float64, 2), make([][]float64, 2)
	reference = map[string]int{"0": 0, "1": 1}[list[2].Reference]
	for i := range n {
		if i == 7 {
			continue
		}
		z := scores[i]
		ones, alone = append(ones, []float64{1}), append(alone, []float64{1, is(sex[i], 1-reference)})
		of[0], of[1] = append(of[0], z[0]), append(of[1], z[1])
		if i != 4 {
			ages, byAge[0], byAge[1] = append(ages, []float64{1, age[i] - 1965}), append(byAge[0], z[0]),
				append(byAge[1], z[1])
		}
	}
	holds(list[:2], ones[:n-2], ages, byAge)
	holds(list[2:4], ones, alone, of)
	holds(list[4:], ones, alone, of)
	if list[0].Kind != "number" || list[2].Kind != "category" || list[4].Kind != "category" || list[4].Levels != 2 {
		t.Errorf("%+v", list)
	}
}

func TestWhatTheCovariatesSayAlreadyIsNotTested(t *testing.T) {
	r := rand.New(rand.NewPCG(403, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.5)
	m := modelOf(t, tr, r)
	cells, _, _, _, _ := manyColumns(r, 60)
	rows := tr.Subjects(r, 60)
	data := choose(t, m, rows, cells, "sex", "copy")
	if _, err := m.Associate(context.Background(), data, method.AssociateOptions{Adjust: []string{"sex"}}); err ==
		nil || !strings.Contains(err.Error(), "column copy: says nothing that [sex] does not say already") {
		t.Errorf("got %v", err)
	}
	// Twice the same covariate takes one degree of freedom.
	account, err := m.Associate(context.Background(), choose(t, m, rows, cells, "sex", "copy", "age"),
		method.AssociateOptions{Adjust: []string{"sex", "copy"}})
	if err != nil || account.Value.(sitesOwn).Associations[0].DF != [2]int{1, 59 - 3} {
		t.Errorf("%+v, %v", account, err)
	}
	everybody := func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprint("id", i)} }
	data = labelled(t, ownUnits(m, rows), []string{"x", "id"}, everybody)
	if _, err := m.Associate(context.Background(), data, method.AssociateOptions{Adjust: []string{"id"}}); err == nil {
		t.Error("a covariate with a level for every subject leaves nothing to test with")
	}
}

// TestSitesThatDifferMakeNoAssociations has a factor and a column that go with the site and
// not with each other. Of 200 p values given the site, 20 are expected below .1; fewer than
// 5 or more than 40 would come once in 10⁴. Without the adjustment nearly all are.
func TestSitesThatDifferMakeNoAssociations(t *testing.T) {
	r := rand.New(rand.NewPCG(404, 1))
	below := func(adjust ...string) (count int) {
		for range 200 {
			tests := newColumnTests([]dataset.Column{{Name: "site"}, {Name: "age"}}, nil, adjust, 1)
			var cells [][]string
			var z []float64
			for i := range 60 {
				cells = append(cells, []string{fmt.Sprint("s", i%3),
					fmt.Sprint(50 + 10*float64(i%3) + 5*r.NormFloat64())})
				z = append(z, float64(i%3)+r.NormFloat64())
			}
			for i := range cells {
				tests.Add(cells[i], z[i:i+1])
			}
			var notes method.Notes
			list, _ := tests.results(&notes)
			for _, x := range list {
				if x.Column == "age" && x.P < 0.1 {
					count++
				}
			}
		}
		return count
	}
	if with, without := below("site"), below(); with < 5 || with > 40 || without < 180 {
		t.Errorf("below .1: %d of 200 given the site, %d without", with, without)
	}
}

// TestReliabilitySaysHowMuchEstimatesShrink moves the factor of one group by .8.
func TestReliabilitySaysHowMuchEstimatesShrink(t *testing.T) {
	r := rand.New(rand.NewPCG(405, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 2, 2), 1, 2)
	m := modelOf(t, tr, r)
	const n = 6000
	rows := tr.Subjects(r, n)
	w := m.params().W
	for i := 0; i < n; i += 2 {
		for j := range rows[i] {
			rows[i][j] += 0.8 * w[j]
		}
	}
	data := labelled(t, ownUnits(m, rows), []string{"group"}, func(i int) []string {
		return []string{[]string{"yes", "no"}[i%2]}
	})
	account, err := m.Associate(context.Background(), data, method.AssociateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value := account.Value.(sitesOwn)
	e, reliability := value.Associations[0].Effects[0], value.Reliability[0]
	if e.Level == "no" {
		e.Estimate = -e.Estimate
	}
	// Five standard errors: a false failure once in a million.
	if !(reliability > 0.1 && reliability < 0.9) || math.Abs(e.Estimate/reliability-0.8) > 5*e.SE/reliability {
		t.Errorf("%v ± %v at a reliability of %v", e.Estimate, e.SE, reliability)
	}
}
