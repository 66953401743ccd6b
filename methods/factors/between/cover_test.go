package between

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Where the model holds, intervals of 90 % hold the mean of a feature at a site in about 90 %
// of draws, however few the sites, and so do those for a site that took no part. Over other
// seeds the shares of 3 sites, the least certain, are .907 and .924 with standard deviations
// of .004 and .006: the bounds fail four times in a thousand.
func TestOffsetsCover(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 7, 5)
	for _, c := range []struct {
		sizes []int
		draws uint64
	}{
		{[]int{30, 20, 15}, 200}, {[]int{30, 20, 20, 15, 12, 10, 8, 6}, 200},
		{slices.Repeat([]int{30, 20, 20, 15, 15, 12, 12, 10, 10, 8, 8, 8, 6, 6, 5, 5}, 3), 200},
	} {
		seen, unseen, v := coverage(t, l, c.sizes, c.draws)
		t.Logf("%d sites: intervals of 90 %% cover %.3f of sites' means, %.3f of new ones, mean variance %.3f", len(c.sizes), seen, unseen, v)
		if !(seen > 0.87 && seen < 0.93 && unseen > 0.87 && unseen < 0.94) {
			t.Errorf("%d sites: intervals of 90 %% cover %.3f of sites' means and %.3f of new ones", len(c.sizes), seen, unseen)
		}
		if math.Abs(v-0.25) > 0.02 {
			t.Errorf("variance between sites is %.3f on average, truth 0.25", v)
		}
	}
}

// coverage returns the shares of means of features, at sites and at one more, that intervals
// of 90 % hold, and the mean variance between sites, .25 in truth.
func coverage(t *testing.T, l ppca.Layout, sizes []int, draws uint64) (seen, unseen, v float64) {
	const z = 1.6448536269514722
	var in, n, inNew, nNew float64
	for seed := range draws {
		r := rand.New(rand.NewPCG(seed, 11))
		tr := factorstest.NewTruth(r, l, 2, 0.5)
		rows, offsets := shifted(r, tr, append(slices.Clone(sizes), 1), 0.25, 0.2)
		fit, off, err := Fit(l, siteBlocks(t, l, rows[:len(sizes)]), 2, nil, ppca.FitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v += mean(off.Variance) / float64(draws)
		for j, x := range offsets[len(sizes)] {
			if nNew++; math.Abs(fit.Mu[j]-tr.P.Mu[j]-x) < z*math.Sqrt(off.NewSite[j]) {
				inNew++
			}
		}
		for i := range off.Sites {
			variance := off.Sites[i].Variance()
			for j, m := range off.Sites[i].Mean {
				if n++; math.Abs(fit.Mu[j]+m-tr.P.Mu[j]-offsets[i][j]) < z*math.Sqrt(variance[j]) {
					in++
				}
			}
		}
	}
	return in / n, inNew / nNew, v
}
