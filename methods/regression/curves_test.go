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
	"parley/methods/regression/glm"
)

// Intervals of 90 % of how a spline's curve rises hold as often as they say, between its knots and beyond
// them: the functions of a spline are nearly combinations of each other, and a prior that takes each for a
// feature by itself holds the curve straight. Of 80 studies with a right model fewer than 60 hold
// at one of six ages once in 6000; with the prior of single features 18 held at the age of 50. All fits
// converge, though each weight has many times the deviation of the curve.
func TestIntervalsOfCurves(t *testing.T) {
	knots := glm.Knots{40, 52, 60, 68, 80}
	truth := []float64{-0.12, 0.5, -1.6, 1.8} // a valley about 60
	curve := func(age float64) (f float64) {
		var here, centre [4]float64
		knots.Basis(age, here[:])
		knots.Basis(60, centre[:])
		for j, b := range truth {
			f += b * (here[j] - centre[j])
		}
		return f
	}
	p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}\nsplines: [{feature: age, knots: [40, 52, "+
		"60, 68, 80]}]")
	ages := []float64{35, 45, 50, 66, 72, 85}
	held, studies := make([]int, len(ages)), 80
	r := rand.New(rand.NewPCG(36, 5))
	for range studies {
		rows := stays(r.Uint64(), 400, func(age, dose, sex float64) float64 { return 0 })
		for i := range rows {
			rows[i].Subject[1] = "no"
			if f := curve(rows[i].Views[0][0]); r.Float64() < 1/(1+math.Exp(-f)) {
				rows[i].Subject[1] = "yes"
			}
		}
		m, _ := run(t, among(t, p, rows))
		if !*m.Converged {
			t.Error("the fit did not converge")
		}
		q := m.Weights()
		for k, age := range ages {
			var x glm.Row
			testkit.Do(t, m.Encoding.Encode([]float64{age, 2, math.NaN()}, &x))
			f, v := 0.0, 0.0 // of the curve, whose columns come first, less that at 60
			for i, a := range x.Index {
				if a > 3 {
					continue
				}
				f += x.Value[i] * q.Mean[a]
				for j, b := range x.Index {
					if b <= 3 {
						v += x.Value[i] * x.Value[j] * q.Covariance[glm.Packed(int(max(a, b)), int(min(a, b)))]
					}
				}
			}
			if math.Abs(f-curve(age)) < 1.645*math.Sqrt(v) {
				held[k]++
			}
		}
	}
	t.Logf("at ages of %v, %v of %d intervals held", ages, held, studies)
	for k, n := range held {
		if n < 60 {
			t.Errorf("at an age of %v %d of %d intervals held", ages[k], n, studies)
		}
	}
}

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
