package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"parley/judge/evaluate"
	"parley/methods/regression"
)

// That values are missing for outcomes other than the model expects is said where a fifth of cases lack
// them and one in a hundred of the others, and the feature is named. Of 160 studies whose values are
// missing by chance, or because of another feature, it is said of none: .001 each, so that two come once in
// 80 runs, and of each kind one is allowed.
func TestValuesThatAreMissingByOutcome(t *testing.T) {
	const n = 900
	for name, c := range map[string]struct {
		options string
		want    string // of whom more is missing
		mostly  func(y []string) bool
	}{
		"classes": {"outcome: {column: died, levels: [\"no\", \"yes\"]}", "of sex (more often yes without it)", func(y []string) bool { return y[1] == "yes" }},
		"three":   {"outcome: {column: died, levels: [\"no\", \"yes\", other]}", "of sex on yes", func(y []string) bool { return y[1] == "yes" }},
		"counts":  {"outcome: {column: falls}\nlikelihood: poisson\noffset: exposure", "of sex (higher without it)", func(y []string) bool { return len(y[2]) > 1 || y[2] >= "3" }},
		"numbers": {"outcome: {column: days}", "of sex (lower without it)", func(y []string) bool { x, _ := strconv.ParseFloat(y[0], 64); return x < -0.3 }},
		"times":   {"outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, 90]}", "of sex (more events without it)", func(y []string) bool { return y[1] == "yes" }},
	} {
		p := stayPlan(t, c.options+"\nreferences: [{feature: sex, level: f}]")
		said, falsely := 0, 0
		for study := range 42 {
			r := rand.New(rand.NewPCG(uint64(study), 39))
			rows := stays(r.Uint64(), n, func(age, dose, sex float64) float64 { return 0.5 + 0.4*age + 0.5*sex })
			for i := range rows {
				y := rows[i].Subject
				if name == "three" && r.IntN(3) == 0 {
					y[1] = "other"
				}
				if name == "numbers" {
					y[0] = fmt.Sprint(r.NormFloat64() + rows[i].Views[0][2])
				}
				lack := 0.04
				switch {
				case study >= 32 && c.mostly(y):
					lack = 0.2
				case study >= 32:
					lack = 0.01
				case study >= 16: // because of age
					lack = 0.1 / (1 + math.Exp((60-rows[i].Views[0][0])/5))
				}
				if r.Float64() < lack {
					rows[i].Views[0][2] = math.NaN()
				}
			}
			m, out := run(t, among(t, p, rows))
			title := strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), "Outcomes of subjects who lack values are not as the model expects")
			switch {
			case study < 32 && title:
				falsely++
			case study >= 32 && title:
				said++
				if text := strings.Join(m.Cautions().Lines(), "\n"); !strings.Contains(text, strings.Split(c.want, " on ")[0]) {
					t.Errorf("%s: said %q, want %q", name, text, c.want)
				}
			}
		}
		t.Logf("%s: said of %d of 10, and of %d of 32 by chance", name, said, falsely)
		if said < 8 || falsely > 1 {
			t.Errorf("%s: said of %d of 10, and of %d of 32 by chance", name, said, falsely)
		}
	}
}

// A fit to all rows in one place predicts subjects who lack a category as that to sites does: by the shares
// that its levels have.
func TestCentralFitsKnowShares(t *testing.T) {
	p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}")
	rows := stays(41, 400, func(age, dose, sex float64) float64 { return sex })
	for i := range rows {
		if i%5 > 0 {
			rows[i].Views[0][2] = 1
		}
	}
	_, out := run(t, among(t, p, rows))
	at := rows[0]
	at.Views = [][]float64{{60, 2, math.NaN()}}
	sites, err := regression.Method{}.Evaluator(p, out.Result.Files, false)
	if err != nil {
		t.Fatal(err)
	}
	central, err := regression.Method{}.Central(t.Context(), p, tableOf(t, p, rows))
	if err != nil {
		t.Fatal(err)
	}
	var want, got evaluate.Posterior
	if err := sites.Infer(&at, &want); err != nil {
		t.Fatal(err)
	}
	if err := central.Infer(&at, &got); err != nil || math.Abs(got.Outcome.LogP[1]-want.Outcome.LogP[1]) > 1e-4 {
		t.Errorf("in one place %v, of sites %v, %v", got.Outcome.LogP, want.Outcome.LogP, err)
	}
}
