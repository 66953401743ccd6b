package regression_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
)

// link is a generalised linear model by its inverse link, the slope of that, the variance, and the log-likelihood.
type link struct{ mean, slope, variance, loglik func(y, f float64) float64 }

var links = map[string]link{
	"logit": {func(_, f float64) float64 { return 1 / (1 + math.Exp(-f)) }, func(_, f float64) float64 {
		p := 1 / (1 + math.Exp(-f))
		return p * (1 - p)
	}, nil, nil},
	"cloglog": {func(_, f float64) float64 { return 1 - math.Exp(-math.Exp(f)) }, func(_, f float64) float64 {
		return math.Exp(f - math.Exp(f))
	}, nil, nil},
	"log": {func(_, f float64) float64 { return math.Exp(f) }, func(_, f float64) float64 { return math.Exp(f) },
		func(_, m float64) float64 { return m }, func(y, m float64) float64 {
			l, _ := math.Lgamma(y + 1)
			return y*math.Log(m) - m - l
		}},
	"identity": {func(_, f float64) float64 { return f }, func(_, _ float64) float64 { return 1 },
		func(_, _ float64) float64 { return 1 }, nil},
}

// irls is iteratively reweighted least squares with the precisions of a prior about 0: estimates, the inverse of the
// expected information, rows' scores, and the log-likelihood.
func irls(of link, x [][]float64, y, w, prior []float64) (b []float64, covariance *mat.SymDense, scores [][]float64,
	value float64) {
	if of.variance == nil {
		of.variance = func(_, p float64) float64 { return p * (1 - p) }
		of.loglik = func(y, p float64) float64 { return y*math.Log(p) + (1-y)*math.Log(1-p) }
	}
	d := len(x[0])
	b = make([]float64, d)
	for range 60 {
		g, h := mat.NewVecDense(d, nil), mat.NewSymDense(d, nil)
		scores, value = nil, 0
		for j, l := range prior {
			g.SetVec(j, -l*b[j])
			h.SetSym(j, j, l)
		}
		for i, row := range x {
			f := 0.0
			for j, v := range row {
				f += v * b[j]
			}
			m := of.mean(y[i], f)
			slope, v := of.slope(y[i], f), of.variance(y[i], m)
			own := make([]float64, d)
			for j, a := range row {
				own[j] = w[i] * (y[i] - m) * slope / v * a
				g.SetVec(j, g.AtVec(j)+own[j])
				for k := range j + 1 {
					h.SetSym(j, k, h.At(j, k)+w[i]*slope*slope/v*a*row[k])
				}
			}
			if scores = append(scores, own); of.loglik != nil {
				value += w[i] * of.loglik(y[i], m)
			}
		}
		var chol mat.Cholesky
		if !chol.Factorize(h) {
			panic("no information")
		}
		covariance = new(mat.SymDense)
		var step mat.VecDense
		if chol.InverseTo(covariance) != nil || chol.SolveVecTo(&step, g) != nil {
			panic("no step")
		}
		far := mat.Norm(&step, 2)
		for j := range b {
			b[j] += step.AtVec(j) * min(1, 2/far)
		}
	}
	return b, covariance, scores, value
}

// sandwich is the covariance of estimates by the scores of clusters.
func sandwich(covariance *mat.SymDense, scores [][]float64, cluster []int, prior []float64) *mat.Dense {
	d := len(scores[0])
	sums := map[int][]float64{}
	for i, s := range scores {
		if sums[cluster[i]] == nil {
			sums[cluster[i]] = make([]float64, d)
		}
		for j, x := range s {
			sums[cluster[i]][j] += x
		}
	}
	meat, g := mat.NewDense(d, d, nil), float64(len(sums))
	for _, s := range sums {
		for j := range d {
			for k := range d {
				meat.Set(j, k, meat.At(j, k)+s[j]*s[k]*g/(g-1))
			}
		}
	}
	for j, l := range prior {
		meat.Set(j, j, meat.At(j, j)+l)
	}
	var half, all mat.Dense
	half.Mul(covariance, meat)
	all.Mul(&half, covariance)
	return &all
}

// table reads a file of a result by the names in its first column, and of its columns.
func table(t *testing.T, r *method.Result, name string) map[string]map[string]string {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/"+name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	records := testkit.Get(csv.NewReader(strings.NewReader(string(r.Files[i].Data))).ReadAll())(t)
	out := map[string]map[string]string{}
	for _, line := range records[1:] {
		out[line[0]] = map[string]string{}
		for j, cell := range line {
			out[line[0]][records[0][j]] = cell
		}
	}
	return out
}

// stayed are rows of the study of stays as numbers in its units: age, dose, sex and 1.
func stayed(rows []dataset.Row) (x [][]float64) {
	for _, r := range rows {
		v := r.Views[0]
		x = append(x, []float64{(v[0] - 60) / 10, (v[1] - 2) / 0.5, v[2], 1})
	}
	return x
}

func column(t *testing.T, rows []dataset.Row, j int) (v []float64) {
	for _, r := range rows {
		if r.Subject[j] == "no" || r.Subject[j] == "yes" {
			v = append(v, map[string]float64{"no": 0, "yes": 1}[r.Subject[j]])
		} else {
			v = append(v, float(t, r.Subject[j]))
		}
	}
	return v
}

var (
	stayPrior = []float64{1 / 6.25, 1 / 6.25, 1 / 6.25, 1.0 / 100}
	stayUnits = map[string]float64{"age": 10, "dose": 0.5, "sex=m": 1}
	stayNames = []string{"age", "dose", "sex=m"}
)

const toF = "references: [{feature: sex, level: f}]\n"

// Estimates, standard errors, p values and tests of terms are those of a fit without the term in one place (R's glm
// and anova), by another implementation.
func TestTermsAreTestedAsByRefits(t *testing.T) {
	rows := stays(71, 400, func(age, dose, sex float64) float64 { return 0.1 + 0.25*age - 0.15*sex })
	ones := slices.Repeat([]float64{1}, len(rows))
	few := stays(72, 45, func(age, dose, sex float64) float64 { return 2*age - dose - sex }) // far from a parabola
	for name, c := range map[string]struct {
		options, link string
		y             int
		rows          []dataset.Row
	}{
		"few":     {"outcome: {column: died, levels: [\"no\", \"yes\"]}\n", "logit", 1, few},
		"classes": {"outcome: {column: died, levels: [\"no\", \"yes\"]}\n", "logit", 1, rows},
		"cloglog": {"outcome: {column: died, levels: [\"no\", \"yes\"]}\nlink: cloglog\n", "cloglog", 1, rows},
		"counts":  {"outcome: {column: falls}\nlikelihood: poisson\n", "log", 2, rows},
	} {
		_, out := run(t, among(t, stayPlan(t, c.options+toF), c.rows))
		x, y, ones := stayed(c.rows), column(t, c.rows, c.y), ones[:len(c.rows)]
		b, covariance, _, value := irls(links[c.link], x, y, ones, stayPrior)
		coefficients, terms := table(t, out.Result, "coefficients.csv"), table(t, out.Result, "terms.csv")
		for j, feature := range stayNames {
			got := coefficients[feature]
			unit, se := stayUnits[feature], math.Sqrt(covariance.At(j, j))
			if off := math.Abs(float(t, got["estimate"])*unit-b[j]) / se; off > 0.01 {
				t.Errorf("%s: %s is %v standard errors off", name, feature, off)
			}
			if ratio := float(t, got["standard_error"]) * unit / se; math.Abs(ratio-1) > 0.02 {
				t.Errorf("%s: the standard error of %s is %v times another's", name, feature, ratio)
			}
			z := float(t, got["estimate"]) / float(t, got["standard_error"])
			if p := float(t, got["p_value"]); math.Abs(p-2*distuv.UnitNormal.CDF(-math.Abs(z))) > 1e-9 {
				t.Errorf("%s: p of %s is %v at %v", name, feature, p, z)
			}
			var less [][]float64
			for _, row := range x {
				less = append(less, slices.Delete(slices.Clone(row), j, j+1))
			}
			_, _, _, without := irls(links[c.link], less, y, ones, slices.Delete(slices.Clone(stayPrior), j, j+1))
			test := terms[strings.TrimSuffix(feature, "=m")]
			if x2 := float(t, test["chi_squared"]); math.Abs(x2-2*(value-without)) > 0.002+0.002*x2 {
				t.Errorf("%s: a ratio of %v for %s, by refits %v", name, x2, feature, 2*(value-without))
			} else if p := float(t, test["p_value"]); math.Abs(p-distuv.ChiSquared{K: 1}.Survival(x2)) > 1e-9 {
				t.Errorf("%s: p of %s is %v at %v", name, feature, p, x2)
			}
		}
	}
	x := stayed(rows)
	// Of a number whose noise is estimated F is that of least squares.
	p := stayPlan(t, "outcome: {column: falls}\n"+toF+"prior_variance: 1.0e6\n")
	_, out := run(t, among(t, p, rows))
	squares := func(x [][]float64) float64 {
		b, _, _, _ := irls(links["identity"], x, column(t, rows, 2), ones, make([]float64, len(x[0])))
		sum := 0.0
		for i, row := range x {
			e := column(t, rows[i:i+1], 2)[0]
			for j, v := range row {
				e -= v * b[j]
			}
			sum += e * e
		}
		return sum
	}
	var less [][]float64
	for _, row := range x {
		less = append(less, row[1:])
	}
	want := (squares(less) - squares(x)) / (squares(x) / 396)
	if f := table(t, out.Result, "terms.csv")["age"]; math.Abs(float(t, f["f"])/want-1) > 1e-3 ||
		math.Abs(float(t, f["p_value"])-distuv.F{D1: 1, D2: 396}.Survival(want)) > 1e-4 {
		t.Errorf("%v, want F of %v", f, want)
	}
}

// Robust standard errors by rows, by sites and by clusters are those of another implementation; so are the estimates
// with weights of a sample, whose scale changes nothing, and counts are rows.
func TestRobustStandardErrors(t *testing.T) {
	rows := stays(72, 500, func(age, dose, sex float64) float64 { return 0.2 + 0.5*age - 0.5*sex })
	yes := "outcome: {column: died, levels: [\"no\", \"yes\"]}\n" + toF
	check := func(name string, out *local.Outcome, b []float64, covariance mat.Matrix, column string) {
		t.Helper()
		coefficients := table(t, out.Result, "coefficients.csv")
		for j, feature := range stayNames {
			got, se := coefficients[feature], math.Sqrt(covariance.At(j, j))
			if math.Abs(float(t, got["estimate"])*stayUnits[feature]-b[j]) > 0.01*se ||
				math.Abs(float(t, got[column])*stayUnits[feature]/se-1) > 0.005 {
				t.Errorf("%s: %s is %s ± %s, want %v ± %v", name, feature, got["estimate"], got[column],
					b[j]/stayUnits[feature], se/stayUnits[feature])
			}
		}
	}
	x, y, ones := stayed(rows), column(t, rows, 1), slices.Repeat([]float64{1}, len(rows))
	own, sites := make([]int, len(rows)), make([]int, len(rows))
	people := slices.Clone(rows)
	for i := range rows {
		own[i], sites[i] = i, min(i*i%7, 2)
		people[i].Subject = slices.Clone(rows[i].Subject)
		people[i].Subject[4] = fmt.Sprint("p", i%100*7+sites[i]) // four or five rows each, at one site
	}
	b, covariance, scores, _ := irls(links["logit"], x, y, ones, stayPrior)
	_, out := run(t, among(t, stayPlan(t, yes), rows))
	check("rows", out, b, sandwich(covariance, scores, own, stayPrior), "robust_standard_error")
	check("sites", out, b, sandwich(covariance, scores, sites, stayPrior), "robust_standard_error_by_site")
	names := map[string]int{}
	clusters := make([]int, len(rows))
	for i := range people {
		if _, ok := names[people[i].Subject[4]]; !ok {
			names[people[i].Subject[4]] = len(names)
		}
		clusters[i] = names[people[i].Subject[4]]
	}
	_, out = run(t, among(t, stayPlan(t, yes+"cluster: worth"), people))
	check("clusters", out, b, sandwich(covariance, scores, clusters, stayPrior), "standard_error")
	for _, scale := range []float64{1, 1000} {
		sampled, w, sum := slices.Clone(rows), column(t, rows, 4), 0.0
		for i := range sampled {
			w[i] = math.Exp(2 * w[i])
			sum += w[i]
			sampled[i].Subject = slices.Clone(rows[i].Subject)
			sampled[i].Subject[4] = fmt.Sprint(scale * w[i])
		}
		for i := range w {
			w[i] *= float64(len(w)) / sum
		}
		b, covariance, scores, _ := irls(links["logit"], x, y, w, stayPrior)
		_, out := run(t, among(t, stayPlan(t, yes+"weights: {column: worth, as: survey}"), sampled))
		if !strings.Contains(out.Result.Sure, "without its weights") {
			t.Errorf("how sure: %s", out.Result.Sure)
		}
		check(fmt.Sprint("weights times ", scale), out, b, sandwich(covariance, scores, own, stayPrior),
			"standard_error")
	}
}

// Hazards with the complementary log-log link are those of reweighted least squares on person-periods; the life table,
// concordance and baseline survival are those of the rows and of the coefficients.
func TestSurvivalIsThatOfTheRows(t *testing.T) {
	rows := stays(73, 600, func(age, dose, sex float64) float64 { return 0.6*age - 0.5*sex })
	p := stayPlan(t, "outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, 90]}\nlink: "+
		"cloglog\n"+toF)
	_, out := run(t, among(t, p, rows))
	var x [][]float64
	var y []float64
	var people []int
	risk, events := [3]float64{}, [3]float64{}
	for i, row := range stayed(rows) {
		days := float(t, rows[i].Subject[0])
		for k := range 3 {
			period := []float64{0, 0, 0}
			period[k] = 1
			died := rows[i].Subject[1] == "yes" && days <= 30*float64(k+1)
			x, y, people = append(x, append(slices.Clone(row[:3]), period...)),
				append(y, map[bool]float64{true: 1}[died]), append(people, i)
			if risk[k]++; died {
				events[k]++
				break
			}
		}
	}
	prior := append(slices.Clone(stayPrior[:3]), 0.01, 0.01, 0.01)
	b, covariance, scores, _ := irls(links["cloglog"], x, y, slices.Repeat([]float64{1}, len(x)), prior)
	coefficients := table(t, out.Result, "coefficients.csv")
	robust := sandwich(covariance, scores, people, prior)
	for j, feature := range stayNames {
		got, se := coefficients[feature], math.Sqrt(covariance.At(j, j))
		if off := math.Abs(float(t, got["estimate"])*stayUnits[feature]-b[j]) / se; off > 0.01 {
			t.Errorf("%s is %v standard errors off", feature, off)
		}
		if ratio := float(t, got["robust_standard_error"]) * stayUnits[feature] / math.Sqrt(robust.At(j, j)); math.Abs(
			ratio-1) > 0.02 {
			t.Errorf("%s: the robust standard error is %v times another's", feature, ratio)
		}
	}
	survival, life, base := table(t, out.Result, "survival.csv"), 1.0, 0.0
	for k, until := range []string{"30", "60", "90"} {
		life *= 1 - events[k]/risk[k]
		base -= math.Exp(b[3+k])
		s := survival[until]
		if math.Abs(float(t, s["survival"])-life) > 1e-9 || float(t, s["at_risk"]) != risk[k] ||
			math.Abs(float(t, s["baseline_survival"])-math.Exp(base)) > 0.01 ||
			!(float(t, s["low_95"]) < math.Exp(base) && math.Exp(base) < float(t, s["high_95"])) {
			t.Errorf("until %s: %v, want %v and %v", until, s, life, math.Exp(base))
		}
	}
	if c := out.Result.Metrics["concordance"]; !(c > 0.6 && c < 0.8) {
		t.Errorf("a concordance of %v", c)
	}
	if p := out.Result.Metrics["proportional_hazards_p"]; !(p > 0.01) {
		t.Errorf("hazards are proportional, and p is %v", p)
	}
	if found := out.Result.Found; !strings.Contains(found, "on the hazard of died = yes") ||
		!strings.Contains(found, "age (up)") {
		t.Error(found)
	}
}

// What a fit without a site says is near what that fit is, and what it says of the site's outcomes.
func TestEachSiteIsLeftOut(t *testing.T) {
	rows := stays(74, 600, func(age, dose, sex float64) float64 { return 0.3 + 0.5*age - 0.5*sex })
	p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}\n"+toF)
	_, out := run(t, among(t, p, rows))
	var left map[string][]string
	for _, s := range out.Result.Sections {
		for _, i := range s.Items {
			if i.Table != nil && i.Table.ID == "left-out" {
				left = map[string][]string{}
				for _, c := range i.Table.Columns {
					for k := range i.Table.Columns[0].Text {
						text := ""
						if c.Text != nil {
							text = c.Text[k]
						} else {
							text = fmt.Sprint(c.Numbers[k])
						}
						left[i.Table.Columns[0].Text[k]] = append(left[i.Table.Columns[0].Text[k]], text)
					}
				}
			}
		}
	}
	x, y := stayed(rows), column(t, rows, 1)
	all, covariance, _, _ := irls(links["logit"], x, y, slices.Repeat([]float64{1}, len(rows)), stayPrior)
	for m, site := range p.Sites {
		w, n := make([]float64, len(rows)), 0.0
		for i := range rows {
			if min(i*i%7, 2) != m {
				w[i] = 1
			} else {
				n++
			}
		}
		b, _, _, _ := irls(links["logit"], x, y, w, stayPrior)
		value, most := 0.0, 0.0
		for i, row := range x {
			f := 0.0
			for j, v := range row {
				f += v * b[j]
			}
			if w[i] == 0 {
				value -= math.Log1p(math.Exp(-(2*y[i] - 1) * f))
			}
		}
		for j := range 3 {
			if z := (b[j] - all[j]) / math.Sqrt(covariance.At(j, j)); math.Abs(z) > math.Abs(most) {
				most = z
			}
		}
		got := left[site]
		if len(got) != 5 || math.Abs(float(t, got[2])-value/n) > 0.003 || math.Abs(float(t, got[4])-most) > 0.1 {
			t.Errorf("%s: %v, want %v and %v", site, got, value/n, most)
		}
	}
}

// A site whose outcomes are the other way round is named if effects are strong, and otherwise that sites differ; and
// none of studies without

// A site whose outcomes are the other way round is named if effects are strong, and otherwise that sites differ; and
// none of studies without that, nor where most of a site's subjects are of one class.
func TestOutcomesTheOtherWayRound(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 75))
		strength := 0.5 + r.Float64()
		for _, options := range []string{"outcome: {column: died, levels: [\"no\", \"yes\"]}\n",
			"outcome: {column: falls}\n"} {
			rows := stays(seed+100, 500, func(age, dose, sex float64) float64 {
				return 0.3 + strength*age - strength*sex
			})
			for i := range rows {
				v := rows[i].Views[0]
				rows[i].Subject[2] = fmt.Sprint(5 + strength*((v[0]-60)/10-v[2]) + r.NormFloat64())
				if i*i%7 == 0 && r.IntN(3) > 0 { // the first site, as among deals them
					rows[i].Subject[1] = "yes"
				}
			}
			for _, turned := range []bool{false, true} {
				p := stayPlan(t, options)
				if turned {
					for i := range rows {
						if i*i%7 == 1 {
							rows[i].Subject[1] = map[string]string{"yes": "no", "no": "yes"}[rows[i].Subject[1]]
							// a score from good to bad
							rows[i].Subject[2] = fmt.Sprint(10 - float(t, rows[i].Subject[2]))
						}
					}
				}
				_, out := run(t, among(t, p, rows))
				said := strings.Join(out.Result.Verdicts(), "\n")
				named := strings.Contains(said, "At site south, outcomes go with the features the other way round")
				if named && !turned || turned && !named &&
					(strength > 1.4 || !strings.Contains(said, "Sites differ in the effect of")) ||
					strings.Contains(said, "At north outcomes") || strings.Contains(said, "At west outcomes") {
					t.Errorf("seed %d, strength %v, %s turned %v: %q", seed, strength, options, turned, said)
				}
			}
		}
	}
}
