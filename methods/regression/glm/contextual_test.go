package glm

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
)

// With normal outcomes, what the last grid's derivatives say of a column that is one number at each
// site is what a fit with that column says: where its weight is, by its probability of the
// other sign, and how far another weight moves.
func TestAColumnOfSitesIsAddedAsAFitWould(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 9))
		const sites, rows = 8, 15
		var plain, with []*Marginal
		numbers := make([]float64, sites)
		for s := range numbers {
			numbers[s] = r.NormFloat64()
			a, b := NewDesign(2), NewDesign(3)
			intercept := 0.6*r.NormFloat64() + 0.7*numbers[s]
			for range rows {
				x := numbers[s] + r.NormFloat64()
				y := intercept - 0.5*x + math.Sqrt(0.7)*r.NormFloat64()
				testkit.Do(t, a.AppendDense([]float64{x, 1}, y))
				testkit.Do(t, b.AppendDense([]float64{x, 1, numbers[s]}, y))
			}
			for _, d := range []struct {
				design *Design
				to     *[]*Marginal
			}{{a, &plain}, {b, &with}} {
				m := testkit.Get(New(Linear{Variance: 0.7}, d.design))(t)
				*d.to = append(*d.to, m)
			}
		}
		p := Prior{Weights: Isotropic(2, 0, 100), Tau: TauScale(0.7)}
		before, _ := search(t, p, plain, 40)
		var points []MixedPoint
		for k := range 60 {
			points = append(points, MixedPoint{Weights: before.Mean, LogTau: -6 + 0.15*float64(k)})
		}
		all := make([][]*Derivatives, sites)
		for s, m := range plain {
			for _, x := range points {
				d := testkit.Get(m.At(x))(t)
				all[s] = append(all[s], d)
			}
		}
		c := testkit.Get(NewContextual(p, points, all, []int{1}))(t)
		after, _ := search(t, Prior{Weights: Isotropic(3, 0, 100), Tau: p.Tau}, with, 40)
		probability, moved := c.Add(numbers, 0, 1)
		nearBy(t, "moved", (after.Mean[0]-before.Mean[0])/math.Sqrt(before.Covariance[0]), moved, 0.02)
		z := math.Abs(after.Mean[2]) / math.Sqrt(after.Covariance[Packed(2, 2)])
		// The weight is a mixture of normal ones over τ, with longer tails than one normal has.
		if normal := math.Erfc(z / math.Sqrt2); !(probability > 0.5*normal && probability < 10*normal+0.02) {
			t.Errorf("seed %d: a probability of %v, of a normal weight %v standard deviations from 0 %v", seed, probability, z, normal)
		}
		if wide, _ := c.Add(numbers, 0, 4); !(wide > probability) {
			t.Errorf("seed %d: %v with four times the variance, and %v without", seed, wide, probability)
		}
	}
}
