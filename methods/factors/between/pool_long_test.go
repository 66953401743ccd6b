//go:build long

package between

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestSpreadBetweenSitesIsRecovered draws a known spread: the estimate is
// within a fifth of it, and near nothing where there is none. Seeds are fixed.
func TestSpreadBetweenSitesIsRecovered(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 15, 8, 10)
		for seed := range uint64(3) {
			for _, sd := range [][2]float64{{0, 0}, {0.2, 0.2}, {0.2, 0}, {0, 0.3}} {
				r := rand.New(rand.NewPCG(seed, 61))
				var sites [][]ppca.Block
				for _, rows := range differingSites(r, factorstest.NewTruth(r, l, 3, 0.02), 4, 150, sd[0], sd[1]) {
					sites = append(sites, factorstest.BlocksOf(t, l, rows))
				}
				prior, _ := run(t, l, sites, 3, 4)
				w, mu := prior.Spread()
				for k, name := range []string{"W", "mu"} {
					mean := 0.0
					for _, v := range [][]float64{w, mu}[k] {
						mean += v / 3
					}
					got, want := math.Sqrt(mean), sd[k]
					if want == 0 && got > 0.03 || want > 0 && math.Abs(got/want-1) > 0.2 {
						t.Errorf("noise %d, seed %d, %v: standard deviation of %s is %v, drawn with %v", noise, seed, sd, name, got, want)
					}
				}
			}
		}
	}
}

// TestSpreadOfNoiseIsRecovered draws sites' noise variances with a known spread: the estimate
// is within a fifth of it, and near nothing where there is none, after two rounds as after ten.
// What the site's likelihood alone says is pooled: the site's own variances are shrunken, and
// would shrink the spread to three quarters. Seeds are fixed.
func TestSpreadOfNoiseIsRecovered(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 15, 15)
	for _, sd := range []float64{0, 0.3} {
		r := rand.New(rand.NewPCG(62, 61))
		tr := factorstest.NewTruth(r, l, 3, 0.3)
		var sites [][]ppca.Block
		for range 60 {
			own := factorstest.Truth{L: l, P: tr.P.Clone()}
			for i := range own.P.W {
				own.P.W[i] += 0.1 * r.NormFloat64()
			}
			for g := range own.P.Noise {
				own.P.Noise[g] *= math.Exp(sd * r.NormFloat64())
			}
			sites = append(sites, factorstest.BlocksOf(t, l, own.Subjects(r, 40)))
		}
		for _, rounds := range []int{2, 10} {
			prior, _ := run(t, l, sites, 3, rounds)
			got := 0.0 // 1/√α is nearly the standard deviation of the logarithm
			for _, alpha := range prior.Alpha {
				got += 1 / math.Sqrt(alpha) / float64(len(prior.Alpha))
			}
			if sd == 0 && got > 0.04 || sd > 0 && math.Abs(got/sd-1) > 0.2 {
				t.Errorf("after %d rounds noise variances spread by %.3f, drawn with %v", rounds, got, sd)
			}
		}
	}
}

func TestHierarchicalRoundsKeepTheFit(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 7, 5, 6)
		r := rand.New(rand.NewPCG(62, 1))
		tr := factorstest.NewTruth(r, l, 3, 0.05)
		var all []ppca.Block
		var sites [][]ppca.Block
		for c := range 4 {
			rows := tr.Subjects(r, 80)
			switch c {
			case 1:
				factorstest.Lacking(l, rows, 1)
			case 2:
				factorstest.Lacking(l, rows[:40], 2)
			case 3:
				factorstest.Hole(r, rows, 0.1)
			}
			sites = append(sites, factorstest.BlocksOf(t, l, rows))
			all = append(all, sites[c]...)
		}
		central := factorstest.Must(ppca.Fit(l, all, 3, nil, ppca.FitOptions{}))(t)
		prior, states := run(t, l, sites, 3, 5)
		held := factorstest.BlocksOf(t, l, tr.Subjects(r, 500))
		a, n, _ := ppca.LogLik(l, &central.Params, held)
		b, _, err := ppca.LogLik(l, &prior.Params, held)
		if gap := (a - b) / n; err != nil || gap > 0.15 {
			t.Errorf("noise %d: %v nats per subject below the central fit (%v)", noise, gap, err)
		}
		for i := range states {
			if err := states[i].Check(l); err != nil {
				t.Errorf("state of site %d: %v", i, err)
			}
		}
	}
}
