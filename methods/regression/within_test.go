package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/methods/regression/fitted"
)

// endogenous fits ten sites of 20 subjects, whose outcomes fall with x within sites. Their intercepts
// go with the sites' means of x by so much. The plan has that mean as a feature where adjusted.
func endogenous(t *testing.T, seed uint64, by, apart float64, adjusted bool, effects string) *fitted.Model {
	t.Helper()
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	features := "x, z"
	if adjusted {
		features += ", mean"
	}
	p := parse(t, fmt.Sprintf(`{parley: 1, name: within, sites: [%s], subjects: [y], views: [{name: v, features: [%s]}],
		method: {name: pvi, outcome: {column: y, levels: ["no", "yes"]}, site_effects: %s}, privacy: {protection: none}}`, strings.Join(names, ", "), features, effects))
	r := rand.New(rand.NewPCG(seed, 77))
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for _, site := range names {
		mu := r.NormFloat64()
		b := apart*r.NormFloat64() + by*mu
		var rows []dataset.Row
		for k := range 20 {
			x := []float64{mu + 0.5*r.NormFloat64(), r.NormFloat64(), mu}
			y := []string{"no", "yes"}[int(r.Float64()+1/(1+math.Exp(x[0]-0.3*x[1]-b)))]
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%02d", k), Views: [][]float64{x[:2+strings.Count(features, "mean")]}, Subject: []string{y}})
		}
		c.Data[site] = tableOf(t, p, rows)
	}
	m, _ := run(t, c)
	return m
}

// Random intercepts take the sites' means of a feature for ones that have nothing to do with the
// intercepts. Where they have, the effect comes out between the one within sites and the one between
// them, and the study says so. It does not where it is so by the plan's own features, and where
// intercepts are as the model has them (seeds are fixed).
func TestEffectsWithinSitesUnderRandomIntercepts(t *testing.T) {
	const verdict = "Within sites the effect of x is lower than between them"
	said, wrong, cured, independent := 0, 0.0, 0.0, 0
	const n = 8
	for seed := range uint64(n) {
		m := endogenous(t, seed, 2, 0, false, "random")
		wrong += m.Effects[0].Mean / n
		if text := strings.Join(m.Verdicts, "\n"); strings.Contains(text, verdict) {
			said++
			if !strings.Contains(text, "mean of the feature at its site") || strings.Contains(text, "site_effects") {
				t.Errorf("seed %d: %q", seed, text)
			}
		}
		adjusted := endogenous(t, seed, 2, 0, true, "random")
		cured += adjusted.Effects[0].Mean / n
		other := endogenous(t, seed, 0, 1, false, "random")
		for _, m := range []*fitted.Model{adjusted, other} {
			if strings.Contains(strings.Join(m.Verdicts, "\n"), "Within sites") {
				independent++
			}
		}
	}
	t.Logf("said in %d of %d, with a mean of %.2f, and of %.2f beside the sites' means", said, n, wrong, cured)
	if said < 6 || wrong < -0.7 || math.Abs(cured+1) > 0.3 || independent > 0 {
		t.Errorf("said in %d of %d studies with a mean of %.2f; beside the sites' means it was %.2f, and the verdict was given in %d studies that want none", said, n, wrong, cured, independent)
	}
	// Without site effects the advice is what helps.
	text := strings.Join(endogenous(t, 7, 2, 0, false, "none").Verdicts, "\n")
	if !strings.Contains(text, verdict) || !strings.Contains(text, "make the site a feature, a category") || !strings.Contains(text, "Random intercepts (site_effects: random) alone") {
		t.Errorf("without site effects: %q", text)
	}
}
