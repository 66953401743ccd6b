package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
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
