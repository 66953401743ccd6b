//go:build long

package private

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The same of each number of sites and each ε, with 4000 and 40 000 subjects. At least .85 of 90 % intervals hold: .90
// of 780 and of 325 are taken for less by chance in one cell of 1000, and of 30 (standard errors .014 and .025; seeds
// are fixed). What is lost of the log-likelihood is at most .005 where noise does not hide most scales.
func TestRangesServeAsWellAsConstantsEverywhere(t *testing.T) {
	for n, seeds := range map[int]uint64{4000: 12, 40_000: 5} {
		for _, sites := range []int{3, 10, 34} {
			for _, epsilon := range []float64{0.5, 1, 3, 8} {
				c := cell{n: n, sites: sites, epsilon: epsilon}
				hidden := n == 4000 && sites == 34 && epsilon == 0.5
				if c.fill(t, seeds); c.cover(0) < 0.85 || !hidden && c.lost > 0.005 || hidden && 2*c.said < c.studies {
					t.Errorf("%+v", c)
				}
			}
		}
	}
}

// The same of outcomes of three classes: .90 of 520 and of 195 are taken for less than .85 in one cell of 1000, and of
// 30.
func TestIntervalsOfThreeClassesEverywhere(t *testing.T) {
	for n, seeds := range map[int]uint64{4000: 8, 40_000: 3} {
		for _, sites := range []int{3, 10} {
			for _, epsilon := range []float64{1, 3} {
				c := cell{n: n, sites: sites, epsilon: epsilon, three: true}
				if c.fill(t, seeds); min(c.cover(0), c.cover(1), c.cover(2)) < 0.85 || c.silentlyUseless > 0 {
					t.Errorf("%+v", c)
				}
			}
		}
	}
}

// On studies that the limit was not chosen by, of 500 to 5000 subjects with 2 to 8 features, shares
// from under one in a hundred to most, and noise over a range of forty, intervals of 90 % held the
// intercept in .50 of those with the verdict, and in .90 of the others: what the bounds are is two
// standard errors away or more.
func TestTheVerdictOnRareClassesIsRightOnOtherStudies(t *testing.T) {
	n, held := map[bool]float64{}, map[bool]float64{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7777))
		slopes := make([]float64, 2+r.IntN(7))
		for j := range slopes {
			slopes[j] = 0.7 * r.NormFloat64()
		}
		said, _, _, holds := interceptOf(slopes, 6*r.Float64()-5, 0.05*math.Pow(40, r.Float64()), 500+r.IntN(4500), r)
		n[said]++
		if holds {
			held[said]++
		}
	}
	t.Logf("intercepts held: %.3f of %v with the verdict, %.3f of %v without", held[true]/n[true], n[true],
		held[false]/n[false], n[false])
	if n[true] < 60 || held[true]/n[true] > 0.65 || held[false]/n[false] < 0.83 {
		t.Errorf("intercepts held: %v of %v with the verdict, %v of %v without", held[true], n[true],
			held[false], n[false])
	}
}

// On studies that nothing was chosen by, of 500 to 10 000 subjects with 2 to 10 features, slopes with
// standard deviations of .2 to 6, and noise over a range of forty, intervals of 90 % held .80 of slopes
// with the verdict, and .92 without.
func TestTheVerdictOnSizesIsRightOnOtherStudies(t *testing.T) {
	n, held := map[bool]float64{}, map[bool]float64{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8888))
		said, share := slopesOf(2+r.IntN(9), 0.2*math.Pow(30, r.Float64()), 0.05*math.Pow(40, r.Float64()),
			500+r.IntN(9500), r)
		n[said]++
		held[said] += share
	}
	t.Logf("slopes held: %.3f of %v with the verdict, %.3f of %v without", held[true]/n[true], n[true],
		held[false]/n[false], n[false])
	if n[true] < 60 || held[true]/n[true] > 0.84 || held[false]/n[false] < 0.845 {
		t.Errorf("slopes held: %.3f of %v with the verdict, %.3f of %v without", held[true]/n[true], n[true],
			held[false]/n[false], n[false])
	}
}

// Intervals hold where features share a direction, along which the gate shortens many rows: of 40
// data sets of 8000 rows with four numbers whose neighbours have the correlation .9, at ε of about 3
// and 8. Without a scale they hold .74 and .78 of the 160 weights.
func TestIntervalsHoldWhereFeaturesShareADirection(t *testing.T) {
	for _, mu := range []float64{0.8, 1.6} {
		held := 0.0
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 41))
			c := &columns{features: 4, numbers: []int{0, 1, 2, 3}, Feature: []int{0, 1, 2, 3, -1},
				Category: make([]bool, 5)}
			w := []float64{0, 0, 0, 0, -0.5}
			for j := range 4 {
				w[j] = 0.7 * r.NormFloat64()
			}
			d := normalRows(8000, w, r)
			for i, x := range d.rows {
				a := w[4]
				for j := range 4 {
					z := r.NormFloat64()
					if j > 0 {
						z = 0.9*x.Value[j-1] + math.Sqrt(1-0.81)*z
					}
					x.Value[j] = z
					a += w[j] * z
				}
				d.outcome[i] = math.Copysign(1, 1/(1+math.Exp(-a))-r.Float64())
			}
			_, _, mean, covariance := rehearse(c, d, mu, 5, fault{told: 1, clips: 1, sign: 1}, r)
			for j := range 4 {
				if math.Abs(mean[j]-w[j]) <= 1.645*math.Sqrt(covariance.At(j, j)) {
					held += 1. / 160
				}
			}
		}
		t.Logf("μ %v: %.3f", mu, held)
		if held < 0.87 {
			t.Errorf("μ = %v: 90 %% intervals hold the truth in %.3f of cases", mu, held)
		}
	}
}

// The same of numbers, with effects of three sizes, whose features explain a few hundredths, four tenths and nearly
// nine tenths of the variance: .90 of 260 and of 130 are taken for less than .85 by chance in one cell of 250, and of
// 30 (seeds are fixed). Where noise hides nearly all, at ten sites with ε .5 or 1 and a few hundredths to explain, 1 of
// 40 is behind the mean alone without a word.
func TestNumbersEverywhere(t *testing.T) {
	for _, c := range []linearCell{{times: 1, law: "normal"}, {times: 0.3, law: "normal"}, {times: 3, law: "normal"},
		{times: 1, law: "skewed"}, {times: 1, law: "heavy"}} {
		for n, seeds := range map[int]uint64{4000: 4, 40_000: 2} {
			for _, sites := range []int{3, 10} {
				for _, epsilon := range []float64{0.5, 1, 3, 8} {
					c := linearCell{n: n, sites: sites, epsilon: epsilon, times: c.times, law: c.law}
					if c.fill(t, seeds); c.cover() < 0.85 || c.behind() || 20*c.silent > c.studies {
						t.Errorf("%+v", c)
					}
				}
			}
		}
	}
}
