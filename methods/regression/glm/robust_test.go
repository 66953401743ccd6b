package glm

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
)

// Where sites differ by far more than the noise, nearly all that rows tell of the common
// intercept cancels: 1/(σ²/n + τ²) is left of n/σ², and the gradient is as small.
func TestFarSitesKeepTheirDigits(t *testing.T) {
	const n = 200
	r := rand.New(rand.NewPCG(1, 9))
	d := NewDesign(2)
	sum := 0.0
	for range n {
		x, y := r.NormFloat64(), 3e6+1e6*r.NormFloat64()
		testkit.Do(t, d.Append(Row{Index: []int32{0, 1}, Value: []float64{x, 1}, Weight: 1}, y))
		sum += y
	}
	m := testkit.Get(New(Linear{Variance: 1}, d))(t)
	const tau = 1e6
	got := testkit.Get(m.At(MixedPoint{Weights: []float64{0, 0}, LogTau: math.Log(tau)}))(t)
	want := 1 / (1.0/n + tau*tau)
	nearBy(t, "information on the intercept", 1, got.Information[2]/want, 1e-9)
	nearBy(t, "gradient of the intercept", 1, got.Gradient[1]/(want*sum/n), 1e-9)
	b := sum / n
	nearBy(t, "gradient of ln τ", b*b/(tau*tau)-1, got.Gradient[2], 1e-6)
	nearBy(t, "curvature of ln τ", 2*b*b/(tau*tau), got.Information[5], 1e-6)
}

// Where no mode is found a grid over all that τ can be ends at the same posterior.
func TestTheWideGridEndsAtTheSamePosterior(t *testing.T) {
	for f, family := range families {
		all := drawn(t, rand.New(rand.NewPCG(7, uint64(f))), f, 6, 15, []float64{0.5, -1, 0.3}, 0.8)
		p := Prior{Weights: Isotropic(3, 0, 4), Tau: 1}
		want, _ := search(t, p, all, 40)
		got, exchanges := search(t, p, all, 1)
		t.Logf("%s: %d exchanges", family.name, exchanges)
		if exchanges > 1+MostGrid || !got.Settled {
			t.Errorf("%s: settled %v after %d exchanges", family.name, got.Settled, exchanges)
		}
		for j := range want.Mean {
			sd := math.Sqrt(want.Covariance[Packed(j, j)])
			nearBy(t, family.name+": mean, in standard deviations", want.Mean[j]/sd, got.Mean[j]/sd, 0.01)
			nearBy(t, family.name+": standard deviation", 1, math.Sqrt(got.Covariance[Packed(j, j)])/sd, 0.02)
		}
		nearBy(t, family.name+": τ", want.Tau.Median, got.Tau.Median, 0.02)
	}
}

// Sites of a few rows whose outcome a feature decides, and sites that do not differ in an
// outcome whose variance is enormous beside its noise: the search ends at a posterior, which has
// weights wherever τ may be.
func TestTheSearchEndsOnAwkwardSites(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 12))
		f := int(seed % 3)
		unit := math.Pow(10, float64(r.IntN(7)))
		l, p := families[f].l, Prior{Weights: Isotropic(3, 0, 6), Tau: 1}
		if f == 2 {
			l, p = Linear{Variance: 1}, Prior{Weights: Isotropic(3, 0, 6*unit*unit), Tau: unit}
		}
		var all []*Marginal
		for range 3 + r.IntN(2) {
			d := NewDesign(3)
			shift := float64(3 * r.IntN(2))
			for range []int{1, 2, 5, 30}[r.IntN(4)] {
				x := Row{Index: []int32{0, 1, 2}, Value: []float64{r.NormFloat64() + shift, r.NormFloat64(), 1},
					Weight: 1}
				y := math.Copysign(1, x.Value[0]-shift/2)
				switch f {
				case 1:
					y = math.Floor(math.Exp(min(2*x.Value[0], 8)))
				case 2:
					y = unit*x.Value[0] + r.NormFloat64()
				}
				testkit.Do(t, d.Append(x, y))
			}
			m := testkit.Get(New(l, d))(t)
			all = append(all, m)
		}
		q, exchanges := search(t, p, all, 25)
		if !q.Settled || exchanges > 25+MostGrid {
			t.Errorf("seed %d, %s: settled %v after %d exchanges", seed, families[f].name, q.Settled, exchanges)
		}
	}
}
