package between_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/internal/testkit"
	"parley/methods/factors/between"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// sums is what sites say whose noise has these standard deviations, and whose subjects are
// each scaled by a draw of tail.
func sums(t *testing.T, r *rand.Rand, truth factorstest.Truth, sizes []int, sd []float64, ownMean bool,
	tail func() float64) (all []between.SiteNoise) {
	t.Helper()
	p := testkit.Get(ppca.NewPredictor(truth.L, &truth.P))(t)
	group := truth.L.GroupOf()
	for i, n := range sizes {
		s := between.NewSums(truth.L.Views())
		var rows [][]float64
		mean := make([]float64, truth.L.Features())
		for range n {
			row := make([]float64, truth.L.Features())
			x, scale := []float64{r.NormFloat64(), r.NormFloat64()}, tail()
			for j := range row {
				noise := math.Sqrt(truth.P.Noise[group[j]]) * r.NormFloat64()
				if j < truth.L.Dims[0] {
					noise *= sd[i]
				}
				row[j] = truth.P.Mu[j] + scale*(truth.P.W[2*j]*x[0]+truth.P.W[2*j+1]*x[1]+noise)
			}
			rows = append(rows, row)
			floats.AddScaled(mean, 1/float64(n), row)
		}
		for _, row := range rows {
			if ownMean {
				floats.Sub(row, mean)
				floats.Add(row, truth.P.Mu)
			}
			post, values, err := p.Subject(factorstest.Split(truth.L, row), nil)
			if err != nil {
				t.Fatal(err)
			}
			latent := make([]float64, p.Rank())
			post.Latent(latent, values)
			s.Add(p, post, values, latent)
		}
		testkit.Do(t, s.Check(truth.L.Views()))
		all = append(all, between.SiteNoise{Sums: s,
			Patterns: []ppca.Pattern{{Views: []int{0, 1}, Subjects: n, Share: 1}}, OwnMean: ownMean})
	}
	return all
}

func estimate(t *testing.T, truth factorstest.Truth, sites []between.SiteNoise) [][]between.Noise {
	t.Helper()
	return testkit.Get(between.Estimate(testkit.Get(ppca.NewPredictor(truth.L, &truth.P))(t), sites))(t)
}

func truth(t *testing.T, r *rand.Rand) factorstest.Truth {
	return factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 12, 8), 2, 0.6)
}

// Sites whose noise is the same are called different at most once in a thousand studies of
// normal values: of 300 for each case, twice or more by chance once in 27. Subjects with heavy
// tails (t of 5 degrees of freedom) do not make it more than one in a hundred: of 300, 8 or
// more by chance once in a hundred.
func TestEqualNoiseIsHardlyEverCalledDifferent(t *testing.T) {
	sizes := []int{3, 3, 4, 4, 5, 5, 20, 40, 200}
	same := slices.Repeat([]float64{1}, len(sizes))
	for name, most := range map[string]int{"normal": 2, "t": 7, "means of their own": 2} {
		r := rand.New(rand.NewPCG(1, 2))
		tr := truth(t, r)
		tail := func() float64 { return 1 }
		if name == "t" {
			tail = func() float64 {
				chi := 0.0
				for range 5 {
					z := r.NormFloat64()
					chi += z * z
				}
				return math.Sqrt(5 / chi)
			}
		}
		found := 0
		for range 300 {
			if estimate(t, tr, sums(t, r, tr, sizes, same, name == "means of their own", tail)) != nil {
				found++
			}
		}
		if found > most {
			t.Errorf("%s: %d of 300 studies, want at most %d", name, found, most)
		}
	}
}

// Noise that differs is found in its view and, but for 2 of 200 draws, in no other; intervals of 90 % hold the truth
// (200 draws at 8 sites: between .87 and .93 but for chance), and few subjects count for
// little.
func TestNoiseOfSites(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tr := truth(t, r)
	sizes := []int{6, 10, 20, 20, 40, 40, 80, 150}
	held, all, other := 0, 0, 0
	for range 200 {
		sd := make([]float64, len(sizes))
		for i := range sd {
			sd[i] = math.Exp(0.3 * r.NormFloat64())
		}
		found := estimate(t, tr, sums(t, r, tr, sizes, sd, false, func() float64 { return 1 }))
		if found == nil {
			t.Fatal("nothing was found")
		}
		if found[len(sizes)-1][1].Times != 1 {
			other++
		}
		for i, x := range found {
			all++
			if v := sd[i] * sd[i]; v > x[0].Low && v < x[0].High {
				held++
			}
		}
	}
	if other > 2 {
		t.Errorf("the noise of the other view differs in %d of 200 draws", other)
	}
	if share := float64(held) / float64(all); share < 0.87 || share > 0.93 {
		t.Errorf("intervals of 90 %% held %.3f of the variances", share)
	}
	sizes[0] = 2
	few := sums(t, r, tr, sizes, []float64{1, 1, 1, 1, 1, 1, 1, 2}, false, func() float64 { return 1 })
	few[0].U[0] *= 9 // two subjects of nine times the noise
	few[0].Squares[0] *= 81
	if x := estimate(t, tr, few)[0][0].Times; !(x > 1.2 && x < 8.5) {
		t.Errorf("two subjects of nine times the noise make the site's %.2f times the model's", x)
	}
}
