package regression_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// What plans are told to do under privacy instead of an offset and of no intercept: a narrow prior holds an effect at 1 a
// unit, and the intercept at 0, and the effect beside them is found as without these.
func TestPriorsHoldWhatPrivatePlansCannotLeaveOut(t *testing.T) {
	const truth = 0.8
	r := rand.New(rand.NewPCG(5, 7))
	var s sample
	for range 4000 {
		x := []float64{r.NormFloat64(), 1.5 * r.NormFloat64()}
		y := "no"
		if r.Float64() < 1/(1+math.Exp(-truth*x[0]-x[1])) {
			y = "yes"
		}
		s.X, s.Y = append(s.X, x), append(s.Y, y)
	}
	loose := strings.Replace(protected, "epsilon: 2", "epsilon: 8", 1)
	text := planText(2, []string{"a", "b"}, twoLevels+"intercept_variance: 1e-6\npriors: [{feature: x1, mean: 2, variance: 1e-6}]", loose)
	p := parse(t, strings.Replace(text, "{feature: x1, centre: 0, scale: 1}", "{feature: x1, centre: 0, scale: 2}", 1))
	m, _ := run(t, config(t, s, p))
	for i, want := range []float64{truth, 1, 0} {
		e := m.Effects[i]
		if i > 0 && (math.Abs(e.Mean-want) > 0.01 || e.SD > 0.01) || i == 0 && (math.Abs(e.Mean-want) > 4*e.SD || e.SD > 0.15) {
			t.Errorf("%s is %.3f ± %.3f, want %v", e.Feature, e.Mean, e.SD, want)
		}
	}
}
