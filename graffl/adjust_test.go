package graffl

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A linear Gaussian model, whose posterior is known: u ~ N(0, 1), s | u ~ N(u, ½), so
// u | s ~ N(⅔s, ⅓). Draws come from a wider proposal, so that weights matter. Five
// standard errors of about 0.02.
func TestAdjustFindsAKnownPosterior(t *testing.T) {
	const n, observed = 20000, 0.9
	r := rand.New(rand.NewPCG(1, 1))
	var u, s [][]float64
	var w []float64
	for range n {
		x := 2 * r.NormFloat64()
		u = append(u, []float64{x})
		s = append(s, []float64{x + math.Sqrt(0.5)*r.NormFloat64()})
		w = append(w, math.Exp(-x*x/2+x*x/8))
	}
	moved, kernel, err := Adjust(u, s, w, []float64{observed})
	if err != nil {
		t.Fatal(err)
	}
	mean, sd := spreadOf(moved, kernel)
	if math.Abs(mean[0]-2*observed/3) > 0.1 || math.Abs(sd[0]-math.Sqrt(1./3)) > 0.1 {
		t.Errorf("mean %.3f and sd %.3f, want %.3f and %.3f", mean[0], sd[0], 2*observed/3, math.Sqrt(1./3))
	}
	if before, _ := spreadOf(u, w); math.Abs(before[0]) > 0.1 {
		t.Errorf("the weighted draws have the mean %v: want the prior's", before[0])
	}
	_, sdBefore := spreadOf(u, w)
	for i := range u {
		if math.Abs(moved[i][0]-u[i][0]) > 2*sdBefore[0]+1e-12 {
			t.Fatalf("draw %d was shifted by %v, more than two standard deviations", i, moved[i][0]-u[i][0])
		}
	}
}

func TestAdjustRefuses(t *testing.T) {
	draws := func(n int, v float64) (x [][]float64, w []float64) {
		for range n {
			x, w = append(x, []float64{v}), append(w, 1)
		}
		return x, w
	}
	few, one := draws(3, 1)
	if _, _, err := Adjust(few, few, one, []float64{1}); err == nil {
		t.Error("three draws were regressed on")
	}
	many, ones := draws(30, 1)
	bad, _ := draws(30, math.NaN())
	if _, _, err := Adjust(many, bad, ones, []float64{1}); err == nil {
		t.Error("statistics that are no numbers were taken")
	}
	if _, _, err := Adjust(many, many, ones, []float64{math.Inf(1)}); err == nil {
		t.Error("an infinite observation was taken")
	}
	if _, _, err := Adjust(many, many, make([]float64, 30), []float64{1}); err == nil {
		t.Error("draws without weight were taken")
	}
}
