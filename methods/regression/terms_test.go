package regression_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/methods/regression"
	"parley/methods/regression/exact"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/study"
)

// stayPlan has a number, another one and a category, and five subject columns.
func stayPlan(t testing.TB, options string) *study.Plan {
	t.Helper()
	return parse(t, stayText(options, unprotected))
}

func stayText(options, privacy string) string {
	return `parley: 1
name: stay
sites: [north, south, west]
views:
  - {name: clinic, features: [age, dose, {name: sex, kind: category, levels: [f, m]}]}
subjects: [days, died, falls, exposure, worth]
method:
  name: regression
  constants: [{feature: age, centre: 60, scale: 10}, {feature: dose, centre: 2, scale: 0.5}]
  ` + strings.ReplaceAll(options, "\n", "\n  ") + "\nprivacy: " + privacy + "\n"
}

// stays draws subjects who fall at a rate of exp(f + ln exposure) and die with a hazard of
// σ(f − 2) in each of three periods of 30 days, where followed to the end; f is a function of
// age in decades from 60, dose in halves from 2 and sex.
func stays(seed uint64, n int, f func(age, dose, sex float64) float64) (rows []dataset.Row) {
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range n {
		age, dose, sex := r.NormFloat64(), r.NormFloat64(), float64(r.IntN(2))
		a, log := f(age, dose, sex), 0.5*r.NormFloat64()
		falls := 0
		for left := math.Exp(a+log) - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
			falls++
		}
		days, died := 90.0, "no"
		for k := range 3 {
			if r.Float64() < 1/(1+math.Exp(2-a)) {
				days, died = 30*(float64(k)+1-r.Float64()), "yes"
				break
			}
		}
		text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{{60 + 10*age, 2 + dose/2, sex}},
			Subject: []string{text(days), died, strconv.Itoa(falls), text(log), text(0.5 + r.Float64())}})
	}
	return rows
}

func tableOf(t testing.TB, p *study.Plan, rows []dataset.Row) *dataset.Table {
	t.Helper()
	return testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
}

// among divides rows over the plan's sites.
func among(t testing.TB, p *study.Plan, rows []dataset.Row) local.Config {
	t.Helper()
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for m, site := range p.Sites {
		var own []dataset.Row
		for i := range rows {
			if min(i*i%7, len(p.Sites)-1) == m {
				own = append(own, rows[i])
			}
		}
		c.Data[site] = tableOf(t, p, own)
	}
	return c
}

const allTerms = "references: [{feature: sex, level: f}]\noffset: exposure\nweights: {column: worth, as: " +
	"survey}\nsplines: [{feature: age, knots: [45, 60, 75]}]\ninteractions: [[dose, sex], [age, dose]]"

// Every outcome with all terms at once ends where the fit to all rows does, which stays
// around the truth.
func TestTermsEndAtCentralInference(t *testing.T) {
	rows := stays(1, 900, func(age, dose, sex float64) float64 { return 0.3 + 0.4*age - 0.5*sex + 0.3*dose*sex })
	names := map[string]string{"falls": "intercept", "hazard": "period (0, 30],period (30, 60],period (60, 90]"}
	for name, outcome := range map[string]string{
		"falls":  "outcome: {column: falls}\nlikelihood: poisson\n",
		"hazard": "outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, 90]}\n",
	} {
		p := stayPlan(t, outcome+allTerms)
		m, out := run(t, among(t, p, rows))
		fit := testkit.Get(exact.Central(t.Context(), p, tableOf(t, p, rows)))(t)
		want, variance := fit.Posterior.Moments()
		got, _ := m.Posterior.Moments()
		for j := range want {
			if far := math.Abs(got[j]-want[j]) / math.Sqrt(variance[j]); !(far < 0.001) {
				t.Errorf("%s: weight %d is %.3f standard deviations from that of all rows", name, j, far)
			}
		}
		var features []string
		for _, e := range m.Effects {
			features = append(features, e.Feature)
		}
		if text, want := strings.Join(features, ","), "age,age',dose,sex=m,dose × sex=m,age × dose,age' × dose,"+
			names[name]; text != want {
			t.Errorf("%s: effects %s, want %s", name, text, want)
		}
		// The effect of half a unit of dose among men, .3, is that of dose and of its product.
		e := m.Effects
		if men := (e[2].Mean + e[4].Mean) / 2; math.Abs(men-0.3) > 0.15 {
			t.Errorf("%s: an effect of %.3f among men, not of .3", name, men)
		}
		if out.Result.Metrics["log_likelihood_per_subject"]+
			out.Result.Metrics["log_likelihood_per_person_period"] >= 0 {
			t.Errorf("%s: %v", name, out.Result.Metrics)
		}
	}
}

// A row of weight 3 is the row three times in estimates, and in all that is said of predictions.
func TestRowsThatCountForSeveralAreSeveral(t *testing.T) {
	for name, outcome := range map[string]string{
		"counts":  "outcome: {column: falls}\nlikelihood: poisson\n",
		"numbers": "outcome: {column: falls}\n",
		"classes": "outcome: {column: died, levels: ['no', 'yes']}\n",
		"times":   "outcome: {column: days, event: died, levels: ['no', 'yes'], cuts: [30, 60, 90]}\n",
	} {
		var thrice, weighted []dataset.Row
		for i, r := range stays(4, 240, func(age, dose, sex float64) float64 { return 0.8 * age }) {
			r.Subject = slices.Clone(r.Subject)
			r.Subject[4] = []string{"1", "3"}[i/2%2]
			weighted = append(weighted, r)
			for k := range 1 + 2*(i/2%2) {
				again := r
				again.ID += strconv.Itoa(k)
				thrice = append(thrice, again)
			}
		}
		m, each := run(t, among(t, stayPlan(t, outcome), thrice))
		plan := stayPlan(t, outcome+"weights: {column: worth, as: counts}")
		if _, err := (regression.Method{}).Outcome(plan); err == nil {
			t.Error("an evaluation would divide rows that are several people")
		}
		n, counted := run(t, among(t, plan, weighted))
		for _, f := range counted.Result.Sections {
			for _, item := range f.Items {
				if item.Table != nil && item.Table.ID == "baseline" {
					t.Error("rows are described as people")
				}
			}
		}
		mean, variance := m.Posterior.Moments()
		got, spread := n.Posterior.Moments()
		// the prior follows the outcome of the rows
		close2(t, name, append(mean, variance...), append(got, spread...), 1e-4)
		for metric, want := range each.Result.Metrics {
			if got := counted.Result.Metrics[metric]; metric != "exchanges" &&
				!(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("%s: %s is %v, and of the rows %v", name, metric, got, want)
			}
		}
	}
}

// A secure sum has room for an outcome in units that make it large, such as copies of a virus, and takes no digits from
// it.
func TestLargeOutcomesHaveRoomInASecureSum(t *testing.T) {
	rows := stays(5, 300, func(age, dose, sex float64) float64 { return 0 })
	for i := range rows {
		rows[i].Subject[2] = fmt.Sprint(2e7 * (rows[i].Views[0][0] - rows[i].Views[0][1]*float64(i%7)))
	}
	plain, _ := run(t, among(t, stayPlan(t, "outcome: {column: falls}"), rows))
	p := parse(t, stayText("outcome: {column: falls}", "{protection: none, sum: secure}"))
	secure, _ := run(t, among(t, p, rows))
	want, spread := plain.Posterior.Moments()
	got, variance := secure.Posterior.Moments()
	close2(t, "means", want, got, 1e-9)
	close2(t, "variances", spread, variance, 1e-9)
}

// Features that say the same, and what the outcome is without an error, leave a fit that ends and says so.
func TestAnOutcomeThatFeaturesSayTwice(t *testing.T) {
	rows := stays(6, 300, func(age, dose, sex float64) float64 { return 0 })
	for i := range rows {
		x := rows[i].Views[0]
		x[1] = x[0] / 3
		rows[i].Subject[2] = fmt.Sprint(x[0] / 2)
	}
	_, out := run(t, among(t, stayPlan(t, "outcome: {column: falls}"), rows))
	if said := strings.Join(out.Result.Verdicts(), "\n"); out.Result.Metrics["converged"] != 1 ||
		!strings.Contains(said, "The features say what falls is") {
		t.Errorf("%v, %s", out.Result.Metrics, said)
	}
}

// An offset of ln 3 on every row is an intercept that is smaller by as much.
func TestOffsetsAreWhatTheySay(t *testing.T) {
	rows := stays(3, 240, func(age, dose, sex float64) float64 { return 0.5 * age })
	flat := "outcome: {column: falls}\nlikelihood: poisson\nintercept_variance: 1.0e6\n"
	fit := func(options string, rows []dataset.Row) []float64 {
		p := stayPlan(t, flat+options)
		f := testkit.Get(exact.Central(t.Context(), p, tableOf(t, p, rows)))(t)
		mean, variance := f.Posterior.Moments()
		return append(mean, variance...)
	}
	var shifted []dataset.Row
	for _, r := range rows {
		r.Subject = slices.Clone(r.Subject)
		r.Subject[3] = fmt.Sprint(math.Log(3))
		shifted = append(shifted, r)
	}
	want := fit("", rows)
	want[3] -= math.Log(3)
	close2(t, "shifted", want, fit("offset: exposure", shifted), 2e-4)

	p := parse(t, stayText("outcome: {column: died, levels: [\"0\", \"1\"]}\noffset: exposure\noffset_range: [-1, 1]",
		protected))
	s, data := testkit.Get(options.New(p))(t), tableOf(t, p, shifted)
	notes := testkit.Get(s.Notes(t.Context(), data))(t)
	b, x := testkit.Get(s.Encoding.Bind(data.Schema(), &s.Outcome))(t), glm.Row{}
	if err := b.Row(&shifted[0], &x); err != nil || x.Offset != 1 {
		t.Errorf("an offset beyond its range is %v, %v", x.Offset, err)
	}
	if !strings.Contains(fmt.Sprint(notes), "240 have an offset beyond the plan's range") {
		t.Errorf("notes of a site: %v", notes)
	}
}

// Without features hazards are shares of those at risk, and survival is the product of what
// is left: Kaplan and Meier's estimate in periods.
func TestSurvivalWithoutFeatures(t *testing.T) {
	rows := stays(4, 1500, func(age, dose, sex float64) float64 { return 0.3 })
	text := stayText("outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, "+
		"90]}\nintercept_variance: 1.0e4\nprior_variance: 1.0e-9", unprotected)
	text = strings.Replace(text, "features: [age, dose, ", "features: [", 1)
	text = strings.Replace(text, "constants: [{feature: age, centre: 60, scale: 10}, {feature: dose, centre: 2, "+
		"scale: 0.5}]", "scaling: standard", 1)
	p := parse(t, text)
	for i := range rows {
		rows[i].Views = [][]float64{rows[i].Views[0][2:]}
	}
	m, _ := run(t, among(t, p, rows))
	atRisk, events := [3]float64{}, [3]float64{}
	for _, r := range rows {
		days := float(t, r.Subject[0])
		for k := range 3 {
			if days > 30*float64(k) {
				atRisk[k]++
				if r.Subject[1] == "yes" && days <= 30*float64(k+1) {
					events[k]++
				}
			}
		}
	}
	survival := 1.0
	var want []float64
	for k := range 3 {
		h := events[k] / atRisk[k]
		survival *= 1 - h
		want = append(want, survival)
		if e := m.Effects[1+k]; math.Abs(e.Mean-math.Log(h/(1-h))) > 0.1*e.SD+0.02 ||
			math.Abs(e.SD*math.Sqrt(atRisk[k]*h*(1-h))-1) > 0.02 {
			t.Errorf("%s: %+v of a hazard of %v", e.Feature, e, h)
		}
	}
	var b bytes.Buffer
	n, _, err := m.Predict(t.Context(), tableOf(t, p, rows), &b, 0.9)
	if err != nil || n != len(rows) {
		t.Fatalf("%d, %v", n, err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil || strings.Join(records[0], ",") != "id,survival=30,low=30,high=30,survival=60,low=60,high=60,"+
		"survival=90,low=90,high=90" {
		t.Fatalf("%q, %v", records[0], err)
	}
	// Greenwood's formula for the variance of ln S, of which the interval is 1.645 deviations.
	greenwood := 0.0
	for k := range 3 {
		got, low, high := float(t, records[1][1+3*k]), float(t, records[1][2+3*k]), float(t, records[1][3+3*k])
		greenwood += events[k] / (atRisk[k] * (atRisk[k] - events[k]))
		if math.Abs(got-want[k]) > 0.003 || !(low < got && got < high) {
			t.Errorf("survival %v [%v, %v], want %v", got, low, high, want[k])
		}
		if wide := math.Log(high/low) / (2 * 1.6449 * math.Sqrt(greenwood)); math.Abs(wide-1) > 0.03 {
			t.Errorf("period %d: an interval %.3f times as wide as Greenwood's", k+1, wide)
		}
	}
	// As a judge sees it: survival until each cut.
	o := testkit.Get((regression.Method{}).Outcome(p))(t)
	f := testkit.Get(m.Forecaster(p.Schema()))(t)
	j := testkit.Get(o.Judge(t.Context(), f, tableOf(t, p, rows), 0.9))(t)
	logLik := 0.0
	for k := range 3 {
		h := events[k] / atRisk[k]
		logLik += (events[k]*math.Log(h) + (atRisk[k]-events[k])*math.Log1p(-h)) / float64(len(rows))
	}
	if got := j.Marks.Get(evaluate.MeasureLogLik); math.Abs(got-logLik) > 1e-3 {
		t.Errorf("log-likelihood %v of a subject, want %v", got, logLik)
	}
}

// Counts are predicted with intervals that hold them, and need the offset.
func TestCountsArePredicted(t *testing.T) {
	rows := stays(5, 1200, func(age, dose, sex float64) float64 { return 1 + 0.4*age - 0.5*sex })
	p := stayPlan(t, "outcome: {column: falls}\nlikelihood: poisson\noffset: exposure\nweights: {column: worth, as: "+
		"survey}")
	m, out := run(t, among(t, p, rows[:600]))
	var b bytes.Buffer
	if _, _, err := m.Predict(t.Context(), tableOf(t, p, rows[600:]), &b, 0.9); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil || strings.Join(records[0], ",") != "id,predicted,sd,low,high" {
		t.Fatalf("%q, %v", records[0], err)
	}
	held := 0
	for i, r := range records[1:] {
		if y := float(t, rows[600+i].Subject[2]); y >= float(t, r[3]) && y <= float(t, r[4]) {
			held++
		}
	}
	// Intervals of counts hold .9 or more, as counts have no fractions; the sample's share has
	// a standard deviation of .012.
	if share := float64(held) / 600; share < 0.86 || share > 0.99 {
		t.Errorf("intervals of 90 %% hold %.3f of new counts", share)
	}
	bare := p.Schema()
	bare.Subject = nil
	if _, _, err := m.Predict(t.Context(), noOutcomes{tableOf(t, p, rows), bare}, &b, 0.9); err == nil ||
		!strings.Contains(err.Error(), `no subject column "exposure", the offset`) {
		t.Errorf("predictions without offsets: %v", err)
	}
	if s := m.Schema(); len(s.Subject) != 1 || s.Subject[0].Name != "exposure" {
		t.Errorf("the model asks for %v", s.Subject)
	}
	// As a judge sees it: a number, of rows with all of the plan's columns of subjects.
	f := testkit.Get(regression.Method{}.Evaluator(p, out.Result.Files, false))(t)
	var post evaluate.Posterior
	if err := f.Infer(&rows[600], &post); err != nil || math.Abs(post.Outcome.Mean-float(t, records[1][1])) > 1e-12 ||
		!(post.Outcome.SD > math.Sqrt(post.Outcome.Mean)) {
		t.Errorf("%+v, %v", post.Outcome, err)
	}
	central := testkit.Get(regression.Method{}.Central(t.Context(), p, tableOf(t, p, rows[:600])))(t)
	want := post.Outcome.Mean
	if err := central.Infer(&rows[600], &post); err != nil || math.Abs(post.Outcome.Mean/want-1) > 1e-3 {
		t.Errorf("all rows in one place: %v, want %v, %v", post.Outcome.Mean, want, err)
	}
}

// What a site's rows lack is told with the subject and the column.
func TestBadOutcomesOfTerms(t *testing.T) {
	hazard := "outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, 90]}"
	counts := "outcome: {column: falls}\nlikelihood: poisson\noffset: exposure\nweights: {column: worth, as: survey}"
	for want, c := range map[string]struct {
		options string
		column  int
		text    string
	}{
		`"" is not a finite number`:              {hazard, 0, ""},
		"the time -3 is negative":                {hazard, 0, "-3"},
		`"maybe" is not one of`:                  {hazard, 1, "maybe"},
		"want a whole number":                    {counts, 2, "1.5"},
		`offset exposure: "x" is not`:            {counts, 3, "x"},
		"offset exposure: 365 is beyond ±30":     {counts, 3, "365"},
		"offset exposure: -31 is beyond ±30":     {hazard + "\noffset: exposure", 3, "-31"},
		"weight worth: 0 is not positive":        {counts, 4, "0"},
		`weight worth: "NaN" is not a finite`:    {counts, 4, "NaN"},
		`outcome falls: "Inf" is not a finite`:   {counts, 2, "Inf"},
		`offset exposure: "" is not a finite nu`: {counts, 3, ""},
	} {
		p := stayPlan(t, c.options)
		rows := stays(6, 40, func(age, dose, sex float64) float64 { return 0 })
		rows[7].Subject[c.column] = c.text
		if _, err := local.Run(t.Context(), among(t, p, rows)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "000007") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTermsThatContradictThePlan(t *testing.T) {
	counts := "outcome: {column: falls}\nlikelihood: poisson\n"
	yes := "outcome: {column: died, levels: [\"no\", \"yes\"]}\n"
	for name, c := range map[string]struct{ options, privacy, want string }{
		"levels of counts": {"outcome: {column: falls, levels: [a, b]}\nlikelihood: poisson", unprotected,
			"a poisson model predicts a number"},
		"private counts": {counts, protected, "likelihood: poisson has no differentially private form"},
		"private spline": {yes + "splines: [{feature: age, knots: [1, 2, 3]}]", protected,
			"splines has no differentially private form"},
		"private product": {yes + "interactions: [[age, sex]]", protected,
			"interactions has no differentially private form"},
		"private weight": {yes + "weights: {column: worth, as: survey}", protected,
			"weights has no differentially private form"},
		"no event": {"outcome: {column: days, levels: [\"no\", \"yes\"], cuts: [3]}\nlikelihood: hazard",
			unprotected, "not a second column"},
		"no cuts": {"outcome: {column: days, event: died, levels: [\"no\", \"yes\"]}", unprotected,
			"method.outcome.cuts"},
		"cuts that fall": {"outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [3, 2]}",
			unprotected, "a cut at 2 after 3"},
		"no levels of the event": {"outcome: {column: days, event: died, cuts: [3]}", unprotected,
			"0 levels of the event"},
		"cuts of a class": {"outcome: {column: died, levels: [\"no\", \"yes\"], cuts: [3]}", unprotected,
			"belong to likelihood: hazard"},
		"spline of a category": {yes + "splines: [{feature: sex, knots: [1, 2, 3]}]", unprotected,
			"not a number of the plan"},
		"two knots": {yes + "splines: [{feature: age, knots: [1, 2]}]", unprotected, "2 knots"},
		"spline twice": {yes + "splines: [{feature: age, knots: [1, 2, 3]}, {feature: age, knots: [1, 2, " +
			"4]}]", unprotected, "there twice"},
		"three in a pair":      {yes + "interactions: [[age, sex, dose]]", unprotected, "2 are expected"},
		"with itself":          {yes + "interactions: [[age, age]]", unprotected, "not a pair"},
		"pair twice":           {yes + "interactions: [[age, sex], [sex, age]]", unprotected, "there twice"},
		"pair with a stranger": {yes + "interactions: [[age, height]]", unprotected, `"height" is not a feature`},
		"offset elsewhere":     {yes + "offset: age", unprotected, `"age" is not a column under subjects`},
		"outcome as weight":    {yes + "weights: {column: died, as: survey}", unprotected, "of its own"},
		"weight, as before":    {yes + "weight: worth", unprotected, "did you mean weights?"},
		"cluster of sites": {yes + "cluster: worth\nsite_effects: random", unprotected,
			"no robust standard errors"},
		"link of counts":    {counts + "link: cloglog", unprotected, "a poisson model has one of its own"},
		"a prior of a term": {yes + "priors: [{feature: age, variance: 1}]", unprotected, "prior_variance"},
		"offset of classes": {"outcome: {column: died, levels: [a, b, c]}\noffset: exposure", unprotected,
			"changes nothing"},
	} {
		_, err := study.Parse("plan.yaml", []byte(stayText(c.options, c.privacy)), methods)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
