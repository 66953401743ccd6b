package pvi_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
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
	reports, err := out.SiteReports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	f, err := m.Forecaster(p.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Infer(&row, &wide); err != nil {
		t.Fatal(err)
	}
	without := *m
	without.BetweenSites = nil
	if f, err = without.Forecaster(p.Schema()); err != nil {
		t.Fatal(err)
	}
	if err := f.Infer(&row, &narrow); err != nil {
		t.Fatal(err)
	}
	// Averaged over sites, a probability is nearer to one half.
	if a, b := math.Exp(wide.Outcome.LogP[1]), math.Exp(narrow.Outcome.LogP[1]); !(math.Abs(a-0.5) < math.Abs(b-0.5)-0.005) {
		t.Errorf("%v at a new site, %v without what sites differ by", a, b)
	}
	var b bytes.Buffer
	if _, _, err := m.Predict(t.Context(), c.Data[names[0]], &b, fitted.PredictOptions{Level: 0.9}); err != nil {
		t.Fatal(err)
	}
	if records, err := csv.NewReader(&b).ReadAll(); err != nil || len(records) != 81 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
