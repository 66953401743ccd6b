package between

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Where means of many features shift together, as many directions as there are make the subjects of sites that took no
// part likelier; where each shifts by itself, there are none. Of 180 studies of the latter kind, 60 for each number of
// sites, 5 had a direction, and lost .2 nats a row by it. The variance of a feature's mean stays what it was.
func TestMeansThatShiftTogether(t *testing.T) {
	const rows, shifts, further = 40, 2, 10
	l := factorstest.Shape(t, ppca.NoisePerFeature, 20, 15)
	d := l.Features()
	for _, c := range []struct {
		sites int
		along float64 // standard deviation of a feature's part of a shift
		draws uint64
		most  int     // studies with another number of directions
		gain  float64 // nats a row at further sites
	}{
		{5, 0, 20, 2, -.05}, {10, 0, 20, 2, -.05}, {34, 0, 5, 1, -.05},
		{5, .5, 10, 10, .5}, {10, .5, 10, 6, 1.8}, {34, .5, 3, 0, 4},
	} {
		gain, other, wanted := 0.0, 0, map[bool]int{true: shifts}[c.along > 0]
		for seed := range c.draws {
			r := rand.New(rand.NewPCG(seed, 8))
			tr := factorstest.NewTruth(r, l, 3, 0.5)
			drawn, _ := shifted(r, tr, slices.Repeat([]int{rows}, c.sites+further), 0.1, 0.1)
			for k := range shifts * d {
				a := c.along * r.NormFloat64()
				for i := range drawn {
					z := rand.New(rand.NewPCG(seed, uint64(i*shifts+k/d))).NormFloat64()
					for _, row := range drawn[i] {
						row[k%d] += z * a
					}
				}
			}
			sites := siteBlocks(t, l, drawn)
			fit, off, err := Fit(l, sites[:c.sites], 3, nil, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
			testkit.Do(t, err)
			testkit.Do(t, off.Together(l, sites[:c.sites], &fit.Params))
			if len(off.Along)/d != wanted {
				other++
			}
			rest := slices.Clone(off.NewSite)
			for i, x := range off.Along {
				rest[i%d] -= x * x
			}
			for sign, at := range map[float64]SiteOffset{-1: {make([]float64, d), off.NewSite, wire.Matrix{}},
				1: {make([]float64, d), rest, wire.Matrix{Data: off.Along}}} {
				p := testkit.Get(AtSite(l, &fit.Params, &at))(t)
				logLik, _, err := p.LogLik(slices.Concat(sites[c.sites:]...))
				testkit.Do(t, err)
				gain += sign * logLik / float64(rows*further*c.draws)
			}
		}
		t.Logf("%+v: %d studies have another number of directions, a gain of %.3f nats a row", c, other, gain)
		if other > c.most || !(gain >= c.gain) || math.IsNaN(gain) {
			t.Errorf("%+v: %d studies with another number of directions than %d, a gain of %v", c, other, wanted, gain)
		}
	}
}
