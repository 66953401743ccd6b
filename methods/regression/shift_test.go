package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
)

// What is added to every outcome moves the intercept by as much, and changes nothing else: no
// standard error, no spread of sites, no prediction of a new site. Outcomes and what is added
// are multiples of 2⁻²⁰, so that nothing is rounded before the fit.
func TestTheOutcomesZeroDecidesNothing(t *testing.T) {
	for name, options := range map[string]string{
		"noise estimated":   "outcome: {column: falls}",
		"noise stated":      "outcome: {column: falls}\nnoise_variance: 1",
		"narrow prior":      "outcome: {column: falls}\nprior_variance: 0.05\nintercept_variance: 2",
		"random intercepts": "outcome: {column: falls}\nnoise_variance: 1\nsite_effects: random",
	} {
		t.Run(name, func(t *testing.T) {
			p := stayPlan(t, options)
			r := rand.New(rand.NewPCG(31, 5))
			rows := stays(31, 90, func(age, dose, sex float64) float64 { return 0 })
			y := make([]float64, len(rows))
			for i := range rows {
				y[i] = math.Round((1+rows[i].Views[0][0]/20+0.3*float64(i*i%7)+r.NormFloat64())*(1<<20)) / (1 << 20)
			}
			fit := func(added float64) (numbers []float64, intercept float64) {
				for i := range rows {
					rows[i].Subject[2] = strconv.FormatFloat(y[i]+added, 'g', -1, 64)
				}
				m, out := run(t, among(t, p, rows))
				f := testkit.Get(m.Forecaster(p.Schema()))(t)
				var new evaluate.Posterior
				testkit.Do(t, f.Infer(&dataset.Row{Views: [][]float64{{70, 2.5, 1}}, Subject: make([]string, 5)}, &new))
				numbers = append(numbers, new.Outcome.Mean-added, new.Outcome.SD, out.Result.Metrics["exchanges"],
					out.Result.Metrics["r_squared"],
					out.Result.Metrics["between_sites"], out.Result.Metrics["between_sites_high_90"],
					float64(len(out.Result.Verdicts())))
				for _, e := range m.Effects {
					numbers = append(numbers, e.SD)
					if e.Feature != "intercept" {
						numbers = append(numbers, e.Mean)
					} else {
						intercept = e.Mean
					}
				}
				return numbers, intercept
			}
			want, at := fit(0)
			for _, added := range []float64{36, 140, -1e4} {
				got, moved := fit(added)
				if d := moved - at - added; math.Abs(d) > 1e-6 {
					t.Errorf("%v added moves the intercept by %v more", added, d)
				}
				for k := range want {
					if math.Abs(got[k]-want[k]) > 1e-6*(1+math.Abs(want[k])) {
						t.Errorf("%v added: %v, without %v", added, fmt.Sprint(got), fmt.Sprint(want))
						break
					}
				}
			}
		})
	}
}
