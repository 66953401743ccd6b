package graffl

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A linear Gaussian model, whose posterior is known: u ~ N(0, 1), s | u ~ N(u, ½), so
// u | s ~ N(⅔s, ⅓). Draws come from a wider proposal, so that weights matter. Five
// standard errors of about 0.01.
func TestAdjustFindsAKnownPosterior(t *testing.T) {
	const n, observed = 20000, 0.9
	r := rand.New(rand.NewPCG(1, 1))
	var u, s [][]float64
	for range n {
		x := 2 * r.NormFloat64()
		u = append(u, []float64{x})
		s = append(s, []float64{x + math.Sqrt(0.5)*r.NormFloat64()})
	}
	moved, kernel, err := Adjust(u, s, []float64{observed}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	// Under the proposal as prior: u | s ~ N(8s/9, 4/9).
	mean, sd := spreadOf(moved, kernel)
	if math.Abs(mean[0]-8*observed/9) > 0.05 || math.Abs(sd[0]-2./3) > 0.05 {
		t.Errorf("under the proposal mean %.3f and sd %.3f, want %.3f and %.3f", mean[0], sd[0], 8*observed/9, 2./3)
	}
	var used int
	_, before := spreadOf(u, kernel)
	for i := range u {
		if kernel[i] > 0 {
			used++
		}
		if math.Abs(moved[i][0]-u[i][0]) > 2*before[0]+1e-12 {
			t.Fatalf("draw %d was shifted by %v, more than two standard deviations", i, moved[i][0]-u[i][0])
		}
		kernel[i] *= math.Exp(-moved[i][0] * moved[i][0] * 3 / 8) // prior over proposal
	}
	if math.Abs(float64(used)-n/2) > 1 {
		t.Errorf("%d of %d draws take part, want half", used, n)
	}
	mean, sd = spreadOf(moved, kernel)
	if math.Abs(mean[0]-2*observed/3) > 0.05 || math.Abs(sd[0]-math.Sqrt(1./3)) > 0.05 {
		t.Errorf("mean %.3f and sd %.3f, want %.3f and %.3f", mean[0], sd[0], 2*observed/3, math.Sqrt(1./3))
	}
}

// Statistics that say the same twice, or nothing, change nothing.
func TestAdjustTakesDependentStatistics(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var u, one, three [][]float64
	for range 500 {
		x := r.NormFloat64()
		s := x + 0.3*r.NormFloat64()
		u, one, three = append(u, []float64{x}), append(one, []float64{s}), append(three, []float64{s, 7, -2 * s})
	}
	a, _, err := Adjust(u, one, []float64{0.2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := Adjust(u, three, []float64{0.2, 7, -0.4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if math.Abs(a[i][0]-b[i][0]) > 1e-3 {
			t.Fatalf("draw %d is adjusted to %v by one statistic, to %v by its copies", i, a[i][0], b[i][0])
		}
	}
}

func TestAdjustRefuses(t *testing.T) {
	draws := func(n int, v float64) (x [][]float64) {
		for range n {
			x = append(x, []float64{v})
		}
		return x
	}
	few, many, bad := draws(3, 1), draws(30, 1), draws(30, math.NaN())
	if _, _, err := Adjust(few, few, []float64{1}, 1); err == nil {
		t.Error("three draws were regressed on")
	}
	if _, _, err := Adjust(many, bad, []float64{1}, 1); err == nil {
		t.Error("statistics that are no numbers were taken")
	}
	if _, _, err := Adjust(many, many, []float64{math.Inf(1)}, 1); err == nil {
		t.Error("an infinite observation was taken")
	}
	for _, share := range []float64{0, 0.1, 1.1, math.NaN()} {
		if _, _, err := Adjust(many, many, []float64{1}, share); err == nil {
			t.Errorf("a share of %v of 30 draws was taken", share)
		}
	}
}
