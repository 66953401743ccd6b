package regression_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/methods/regression/fitted"
)

// With a prior that says next to nothing, estimates over three sites are those of R, by testdata/r/compare.R: of glm
// with all links, also on person-periods, of lm and of multinom within .01 standard errors, and of coxph, from
// sixty periods, within .1. Standard errors are within 1 % and 2 %.
func TestEstimatesAreThoseOfR(t *testing.T) {
	read := func(name string) [][]string {
		data := testkit.Get(os.ReadFile("testdata/r/" + name))(t)
		return testkit.Get(csv.NewReader(strings.NewReader(string(data))).ReadAll())(t)[1:]
	}
	var cuts []string
	for _, r := range read("cuts.csv") {
		cuts = append(cuts, r[0])
	}
	for name, c := range map[string]struct {
		outcome string
		far     float64 // in standard errors
		wide    float64
	}{
		"glm cloglog": {fmt.Sprintf(`{column: until, event: event, levels: ["no", "yes"], cuts: [%s]}, link: cloglog`,
			strings.Join(cuts, ", ")), 0.01, 0.01},
		"coxph": {fmt.Sprintf(`{column: time, event: event, levels: ["no", "yes"], cuts: [%s]}, link: cloglog`,
			strings.Join(cuts, ", ")), 0.1, 0.02},
		"multinom":    {"{column: class, levels: [a, b, c]}", 0.01, 0.01},
		"glm logit":   {`{column: event, levels: ["no", "yes"]}`, 1e-3, 1e-3},
		"glm poisson": {"{column: visits}, likelihood: poisson", 1e-3, 1e-3},
		"lm":          {"{column: time}", 1e-3, 1e-3},
	} {
		p := parse(t, `{parley: 1, name: r, sites: [one, two, three], subjects: [time, until, event, class, visits], views: [{name: v, features: [age, dose,
			{name: sex, kind: category, levels: [f, m]}]}], method: {name: regression, references: [{feature: sex, level: f}], prior_variance: 1e6,
			intercept_variance: 1e6, rounds: 60, outcome: `+c.outcome+`}, privacy: {protection: none}}`)
		rows := map[string][]dataset.Row{}
		for i, r := range read("data.csv") {
			site := p.Sites[i%7%3]
			rows[site] = append(rows[site], dataset.Row{ID: r[0],
				Views: [][]float64{{float(t, r[1]), float(t, r[2]), map[string]float64{"m": 1}[r[3]]}}, Subject: r[4:]})
		}
		data := map[string]dataset.Source{}
		for site, own := range rows {
			data[site] = tableOf(t, p, own)
		}
		m, _ := run(t, local.Config{Plan: p, Methods: methods, Data: data})
		for _, r := range read("estimates.csv") {
			if r[0] != name {
				continue
			}
			j := slices.IndexFunc(m.Coefficients(), func(x fitted.Coefficient) bool {
				return x.Feature == r[2] && x.Class == r[1]
			})
			if j < 0 {
				t.Fatalf("no effect of %s", r[2])
			}
			got, se := m.Effects[j].Mean, m.Effects[j].SD
			if r[1] != "" { // against class a
				of := r[1] + ": " + r[2]
				data := testkit.Get(json.Marshal(testkit.Get(m.Contrast(of, "a: "+r[2]))(t).Value))(t)
				var c struct {
					Estimate float64 `json:"estimate"`
					SE       float64 `json:"standard_error"`
				}
				testkit.Do(t, json.Unmarshal(data, &c))
				got, se = c.Estimate, c.SE
			}
			want, wantSE := float(t, r[3]), float(t, r[4])
			if off := math.Abs(got-want) / wantSE; off > c.far || math.Abs(se/wantSE-1) > c.wide {
				t.Errorf("%s, %s: %v ± %v, of R %v ± %v: %.3f standard errors off", name, strings.Join(r[1:3], " "),
					got, se, want, wantSE, off)
			}
		}
	}
}
