package regression_test

import (
	"bytes"
	"cmp"
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
	"parley/method"
	"parley/methods/regression/fitted"
)

// Sites whose intercepts differ by a standard deviation of 1: what everybody gets to know of
// that, what every site gets to know of itself, and what is predicted of a new site.
func TestRandomIntercepts(t *testing.T) {
	const sites = 12
	var names []string
	for i := range sites {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	text := stayText("outcome: {column: died, levels: [\"no\", \"yes\"]}\nsite_effects: random", unprotected)
	p := parse(t, strings.Replace(text, "sites: [north, south, west]", "sites: ["+strings.Join(names, ", ")+"]", 1))
	r := rand.New(rand.NewPCG(8, 8))
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	var truth []float64
	for i, site := range names {
		b := r.NormFloat64()
		truth = append(truth, b)
		rows := stays(uint64(100+i), 80, func(age, dose, sex float64) float64 { return 1 + 0.6*age + b })
		for j := range rows {
			// Died or not in the first period alone, by the hazard of the simulation.
			if rows[j].Subject[1] == "yes" && float(t, rows[j].Subject[0]) > 30 {
				rows[j].Subject[1] = "no"
			}
		}
		c.Data[site] = tableOf(t, p, rows)
	}
	m, out := run(t, c)
	if got := m.BetweenSites; got == nil || got.Low > 1 || got.High < 1 || got.High > 3 {
		t.Fatalf("sites differ by %+v, and did by 1", got)
	}
	metrics := out.Result.Metrics
	if metrics["between_sites"] != m.BetweenSites.Median || metrics["converged"] != 1 || metrics["exchanges"] > 12 {
		t.Errorf("%v", metrics)
	}
	// The intercept of everybody is less sure than of as many subjects at one site.
	if e := m.Effects[len(m.Effects)-1]; e.SD < 0.2 {
		t.Errorf("%+v of sites that differ", e)
	}
	held := 0
	reports := testkit.Get(out.SiteReports(t.Context()))(t)
	for i, site := range names {
		report := reports[site].Result
		b, sd := report.Metrics["intercept"], report.Metrics["intercept_sd"]
		if sd < 0.1 || sd > 1 {
			t.Errorf("site %s: an intercept of %v ± %v", site, b, sd)
		}
		if math.Abs(b-truth[i]) < 1.6449*sd {
			held++
		}
		if !strings.Contains(fmt.Sprint(report.Headline), "it stays here") {
			t.Errorf("site %s is told %v", site, report.Headline)
		}
	}
	// Of 12 intervals of 90 %, all of which hold the same estimate of the overall intercept.
	if held < 8 {
		t.Errorf("%d of %d sites' intercepts are held", held, sites)
	}
	// No file of the study has the sites' own intercepts.
	i := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	if bytes.Contains(out.Result.Files[i].Data, []byte(`"intercept_sd"`)) {
		t.Error("a site's intercept is in the model")
	}
	// A new site: wider than without what sites differ by.
	var wide, narrow evaluate.Posterior
	row := dataset.Row{Views: [][]float64{{60, 2, 0}}, Subject: make([]string, 5)}
	f := testkit.Get(m.Forecaster(p.Schema()))(t)
	testkit.Do(t, f.Infer(&row, &wide))
	without := *m
	without.BetweenSites = nil
	f = testkit.Get(without.Forecaster(p.Schema()))(t)
	testkit.Do(t, f.Infer(&row, &narrow))
	// Averaged over sites, a probability is nearer to one half.
	if a, b := math.Exp(wide.Outcome.LogP[1]),
		math.Exp(narrow.Outcome.LogP[1]); !(math.Abs(a-0.5) < math.Abs(b-0.5)-0.005) {
		t.Errorf("%v at a new site, %v without what sites differ by", a, b)
	}
	ownPredictions(t, c, names, reports, m)
}

// ownPredictions holds a site's own model against that of a new site, on rows of the site
// that farthest from the others: its probabilities add up to what happened there, and are
// surer than those of a site that nobody has seen.
func ownPredictions(t *testing.T, c local.Config, names []string, reports map[string]*local.SiteReport,
	m *fitted.Model) {
	t.Helper()
	far := slices.MaxFunc(names, func(a, b string) int {
		return cmp.Compare(math.Abs(reports[a].Result.Metrics["intercept"]),
			math.Abs(reports[b].Result.Metrics["intercept"]))
	})
	files := reports[far].Result.Files
	if len(files) != 1 || files[0].Name != "model/model.json" {
		t.Fatalf("site %s keeps %v", far, files)
	}
	own := testkit.Get(fitted.LoadModel(files[0].Data))(t)
	if own.Site == nil || own.Site.Name != far || own.Site.Mean != reports[far].Result.Metrics["intercept"] {
		t.Errorf("%+v", own.Site)
	}
	for name, m := range map[string]*fitted.Model{"own": own, "new": m} {
		var b bytes.Buffer
		if _, _, err := m.Predict(t.Context(), c.Data[far], &b, 0.9); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&b).ReadAll()
		if err != nil || len(records) != 81 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		expected, died, i := 0.0, 0.0, 0
		for row, err := range c.Data[far].Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			i++
			expected += float(t, records[i][3])
			if row.Subject[1] == "yes" {
				died++
			}
		}
		// Shrinkage leaves a part of a deviation of √(80 · ¼ · ¾) = 4.
		if off := math.Abs(expected - died); name == "own" && off > 4 || name == "new" && off < 8 {
			t.Errorf("%s: %.1f expected of %v", name, expected, died)
		}
	}
	for from, to := range map[string]string{`"variance": `: `"variance": -`, `"slope": [`: `"slope": [1,`,
		`"between_sites": {`: `"between_sites": null, "other": {`} {
		bad := strings.Replace(string(files[0].Data), `"site": {`, "\x00", 1)
		head, tail, _ := strings.Cut(bad, "\x00")
		if strings.Contains(from, "between") {
			head = strings.Replace(head, from, to, 1)
		} else {
			tail = strings.Replace(tail, from, to, 1)
		}
		if _, err := fitted.LoadModel([]byte(head + `"site": {` + tail)); err == nil {
			t.Errorf("a model with %s is read", to)
		}
	}
}

// How much sites differ is found in every unit of the outcome.
func TestRandomInterceptsInAnyUnit(t *testing.T) {
	between := func(unit float64) float64 {
		plan := parse(t, fmt.Sprintf("parley: 1\nname: units\nsites: [s0, s1, s2, s3]\nviews:\n  - {name: v, "+
			"features: [x]}\nsubjects: [y]\nmethod:\n  name: regression\n  outcome: {column: y}\n  "+
			"site_effects: random\n  noise_variance: %g\nprivacy: {protection: none}\n",
			unit*unit))
		r := rand.New(rand.NewPCG(3, 15))
		data := map[string]dataset.Source{}
		for k, name := range plan.Sites {
			var rows []dataset.Row
			for i := range 40 {
				x := r.NormFloat64()
				y := unit * (2*float64(k) + x + r.NormFloat64())
				rows = append(rows, dataset.Row{ID: fmt.Sprintf("p%05d", i), Views: [][]float64{{x}},
					Subject: []string{strconv.FormatFloat(y, 'g', -1, 64)}})
			}
			data[name] = tableOf(t, plan, rows)
		}
		run, err := local.Run(t.Context(), local.Config{Plan: plan, Methods: methods, Data: data})
		if err != nil {
			t.Fatalf("unit %g: %v", unit, err)
		}
		return run.Result.Metrics["between_sites"]
	}
	one := between(1)
	for _, unit := range []float64{1e-6, 1e7} {
		if got := between(unit) / unit; !(one > 1) || math.Abs(got/one-1) > 1e-4 {
			t.Errorf("in units of %g sites differ by %v, in 1 by %v", 1/unit, got, one)
		}
	}
}
