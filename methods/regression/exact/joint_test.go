package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/study"
)

var methods = method.Registry{regression.Method{}}

// plan has two numbers and a category of three levels, none of which needs scaling.
func plan(t testing.TB, outcome, sites string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan", []byte(fmt.Sprintf(`{parley: 1, name: small, sites: [%s], subjects: [y],
		views: [{name: v, features: [a, b, {name: c, kind: category, levels: [x, y, z]}]}],
		method: {name: regression, %s, constants: [{feature: a, centre: 0, scale: 1}, {feature: b, centre: 0, scale: 1}]},
		privacy: {protection: none}}`, sites, outcome)), methods)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// truth are the weights of a, b, c=x, c=z (against y, the most frequent) and the intercept.
var truth = []float64{0.8, -0.5, 0.7, -1, -0.3}

// drawn draws rows, and outcomes of an activation.
func drawn(r *rand.Rand, n int, outcome func(f float64) string) (rows []dataset.Row, design [][]float64) {
	for i := range n {
		a := r.NormFloat64()
		b := 0.6*a + 0.8*r.NormFloat64()
		level := []float64{0, 1, 1, 1, 2}[r.IntN(5)]
		x := []float64{a, b, 0, 0, 1}
		switch level {
		case 0:
			x[2] = 1
		case 2:
			x[3] = 1
		}
		f := 0.0
		for j, w := range truth {
			f += w * x[j]
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{{a, b, level}},
			Subject: []string{outcome(f)}})
		design = append(design, x)
	}
	return rows, design
}

func table(t testing.TB, p *study.Plan, rows []dataset.Row) *dataset.Table {
	t.Helper()
	out := testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
	return out
}

// ended runs a study and returns its model and result.
func ended(t testing.TB, p *study.Plan, data map[string]dataset.Source) (*fitted.Model, *method.Result) {
	t.Helper()
	out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data}))(t)
	file := testkit.Get(method.ModelJSON(out.Result.Files))(t)
	m := testkit.Get(fitted.LoadModel(file))(t)
	return m, out.Result
}

func binary(r *rand.Rand) func(float64) string {
	return func(f float64) string {
		if r.Float64() < 1/(1+math.Exp(-f)) {
			return "yes"
		}
		return "no"
	}
}

const logistic = "outcome: {column: y, levels: [no, yes]}"

// Sites of very unequal size find in at most ten exchanges what one fit to all rows finds, to
// a ten-thousandth of a standard deviation.
func TestSitesFindTheCentralFit(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := plan(t, logistic, "one, two, three")
		rows, _ := drawn(r, 900, binary(r))
		central := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
		m, result := ended(t, p, map[string]dataset.Source{"one": table(t, p, rows[:20]),
			"two": table(t, p, rows[20:150]), "three": table(t, p, rows[150:])})
		if result.Metrics["exchanges"] > 10 || result.Metrics["converged"] != 1 || !*m.Converged {
			t.Errorf("seed %d: %v", seed, result.Metrics)
		}
		for j, e := range m.Effects {
			want := central.Effects[j]
			if math.Abs(e.Mean-want.Mean) > 1e-4*want.SD || math.Abs(e.SD/want.SD-1) > 1e-4 {
				t.Errorf("seed %d, %s: %v ± %v, of all rows %v ± %v", seed, e.Feature, e.Mean, e.SD, want.Mean, want.SD)
			}
		}
	}
}

// Where a number lies changes no standard error, as far as its digits go.
func TestWhereTheOutcomeLiesDoesNotMatter(t *testing.T) {
	var sd []float64
	for _, shift := range []float64{0, 1e6, 1e9} {
		r := rand.New(rand.NewPCG(15, 16))
		p := plan(t, "outcome: {column: y}", "one")
		rows, _ := drawn(r, 300, func(f float64) string {
			return strconv.FormatFloat(shift+f+r.NormFloat64(), 'g', -1, 64)
		})
		fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
		sd = append(sd, fit.Effects[0].SD)
	}
	if math.Abs(sd[1]/sd[0]-1) > 0.05 || math.Abs(sd[2]/sd[0]-1) > 0.05 {
		t.Errorf("standard errors %v at 0, 1e6 and 1e9", sd)
	}
}

// A number far from 0 with known noise is found as well: the default prior does not know where.
func TestKnownNoiseFarFromZero(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	p := plan(t, "outcome: {column: y}, noise_variance: 1000000", "one")
	rows, _ := drawn(r, 300, func(f float64) string { return fmt.Sprint(1e4 + 1e3*(f+r.NormFloat64())) })
	fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
	if e := fit.Effects; math.Abs(e[0].Mean-800) > 4*e[0].SD || e[0].SD > 100 ||
		math.Abs(e[4].Mean-9700) > 4*e[4].SD {
		t.Errorf("%+v", e)
	}
}

// A prior that leaves weights no room does not keep the intercept from being fitted.
func TestAPriorMayBeVeryNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	p := plan(t, logistic+", references: [{feature: c, level: y}], prior_variance: 1e-20", "one")
	rows, _ := drawn(r, 300, binary(r))
	fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
	if e := fit.Effects; math.Abs(e[2].Mean) > 1e-6 || !(e[4].SD > 0.01) {
		t.Errorf("%+v", e)
	}
}

// An unknown noise is found: of 400 rows its estimate has a relative standard error of 7 %,
// so that a fair one misses by more than four of them less than once in 10 000 seeds.
func TestNoiseIsEstimated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := plan(t, "outcome: {column: y}", "one")
	rows, _ := drawn(r, 400, func(f float64) string { return fmt.Sprint(100 + 20*(f+0.5*r.NormFloat64())) })
	fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
	if v := *fit.Options.NoiseVariance; math.Abs(v/100-1) > 0.28 {
		t.Errorf("noise variance %v, want about 100", v)
	}
	if e := fit.Effects[0]; math.Abs(e.Mean-16) > 4*e.SD || e.SD > 2 {
		t.Errorf("%s: %v ± %v, want 16", e.Feature, e.Mean, e.SD)
	}
}

// Classes that a feature parts without error, and counts of sites that are cut short by the
// plan's rounds, are said not to have settled, first.
func TestWhatHasNotSettledIsSaidFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := plan(t, logistic+", rounds: 2", "one")
	rows, _ := drawn(r, 200, binary(r))
	out := testkit.Get(local.Run(t.Context(),
		local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{"one": table(t, p, rows)}}))(t)
	if len(out.Result.Verdicts()) == 0 || out.Result.Metrics["converged"] != 0 ||
		!strings.HasPrefix(out.Result.Headline[0].Value, "no") ||
		!strings.Contains(out.Result.Sections[0].Items[0].Note.Title, "had not converged") {
		t.Errorf("%v, %v", out.Result.Verdicts(), out.Result.Headline)
	}
}

// A reference that the plan names is taken, in place of the most frequent level.
func TestReferences(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for named, want := range map[string]string{"": "c=x c=z", ", references: [{feature: c, level: x}]": "c=y c=z"} {
		p := plan(t, logistic+named, "one")
		rows, _ := drawn(r, 200, binary(r))
		fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
		if got := fit.Effects[2].Feature + " " + fit.Effects[3].Feature; got != want {
			t.Errorf("%q: columns %s, want %s", named, got, want)
		}
	}
}

// One wrong cell squeezes all other values of a number together: the report names the site
// and the number, and so does the site's own report.
func TestAWrongCellIsNamed(t *testing.T) {
	for _, wrong := range []float64{3, 1e6} {
		p := testkit.Get(study.Parse("plan", []byte("{parley: 1, name: small, sites: [one, two], subjects: [y], "+
			"views: [{name: v, features: [a, b, {name: c, kind: category, levels: [x, y, z]}]}], method: {name: "+
			"regression, "+logistic+"}, privacy: {protection: none}}"), methods))(t)
		r := rand.New(rand.NewPCG(15, 2))
		rows, _ := drawn(r, 900, binary(r))
		rows[7].Views[0][1] = wrong
		out := testkit.Get(local.Run(t.Context(),
			local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{"one": table(t, p, rows[:300]),
				"two": table(t, p, rows[300:])}}))(t)
		reports := testkit.Get(out.SiteReports(t.Context()))(t)
		everybody, own := strings.Join(out.Result.Verdicts(), "\n"),
			strings.Join(reports["one"].Result.Verdicts(), "\n")
		if found := strings.Contains(everybody, "At site one, b is unlike that of other sites"); found !=
			(wrong == 1e6) {
			t.Errorf("of %v everybody reads %q", wrong, everybody)
		}
		if found := strings.Contains(own, "feature b: 1 of 300 values are far from the rest"); found != (wrong == 1e6) {
			t.Errorf("of %v the site reads %q", wrong, own)
		}
		if strings.Contains(everybody, "000007") || len(reports["two"].Result.Verdicts()) > 0 {
			t.Errorf("everybody reads %q, the other site %q", everybody, reports["two"].Result.Verdicts())
		}
	}
}
