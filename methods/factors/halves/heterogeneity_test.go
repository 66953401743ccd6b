package halves

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// drawn is what sites' subjects are drawn from: three views of six features, two factors.
type drawn struct {
	sizes    []int
	reversed []int                      // sites where feature 12 is
	differ   float64                    // standard deviation of loadings between sites, relative to theirs
	noise    func(r *rand.Rand) float64 // of unit variance; normal if nil
	lacking  func(site, i int) int      // view that a subject lacks, or −1
	holes    float64                    // share of single cells
	latent   int                        // factors fitted; two if zero
	truth    int                        // factors of the truth; two if zero
	scaled   func(site int) float64     // of the factors
	kind     ppca.Noise
}

// found fits one model to all sites and names the features of which they disagree.
func (d drawn) found(t *testing.T, seed uint64) []loadingHeterogeneity {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	q, fit := max(d.truth, 2), d.latent
	if fit == 0 {
		fit = 2
	}
	l := factorstest.Shape(t, d.kind, 6, 6, 6)
	w := make([]float64, 18*q)
	for i := range w {
		w[i] = 0.8 * r.NormFloat64()
	}
	w[24], w[25] = 0.9, -0.7 // clear, as the draw should be of what a reversal can show
	var names []string
	var rows [][][]float64
	for i, n := range d.sizes {
		own := slices.Clone(w)
		for a := range own {
			own[a] += d.differ * math.Abs(own[a]) * r.NormFloat64()
		}
		scale := 1.0
		if d.scaled != nil {
			scale = d.scaled(i)
		}
		var site [][]float64
		for k := range n {
			x := make([]float64, q)
			for a := range x {
				x[a] = scale * r.NormFloat64()
			}
			row := make([]float64, 18)
			for j := range row {
				e := r.NormFloat64()
				if d.noise != nil {
					e = d.noise(r)
				}
				row[j] = math.Sqrt(0.5) * e
				for a := range x {
					row[j] += own[j*q+a] * x[a]
				}
			}
			if slices.Contains(d.reversed, i) {
				row[12] *= -1
			}
			if d.lacking != nil {
				if v := d.lacking(i, k); v >= 0 {
					factorstest.Lacking(l, [][]float64{row}, v)
				}
			}
			site = append(site, row)
		}
		names, rows = append(names, fmt.Sprint(i)), append(rows, factorstest.Hole(r, site, d.holes))
	}
	for j := range 18 { // scaled as a study is
		n, sum, square := 0.0, 0.0, 0.0
		for _, site := range rows {
			for _, row := range site {
				if !math.IsNaN(row[j]) {
					n, sum, square = n+1, sum+row[j], square+row[j]*row[j]
				}
			}
		}
		sd := math.Sqrt(square/n - sum*sum/n/n)
		for _, site := range rows {
			for _, row := range site {
				row[j] = (row[j] - sum/n) / sd
			}
		}
	}
	var sites [][]ppca.Block
	for _, site := range rows {
		sites = append(sites, factorstest.Said(t, l, factorstest.BlocksOf(t, l, site), fit))
	}
	set := options.Setup{Frame: ppca.Frame{Layout: l, Factors: fit},
		Options: &options.Options{Latent: options.Factors(fit), SiteMeans: options.MeansAuto}}
	model, _, _, err := fitSums(set, sites, nil)
	if err != nil {
		t.Fatal(err)
	}
	return discords(l, &model.Params, names, sites)
}

// alike are six sites of as many subjects.
func alike(n int) []int { return slices.Repeat([]int{n}, 6) }

// student draws from Student's law, with unit variance.
func student(df int) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		chi := 0.0
		for range df {
			z := r.NormFloat64()
			chi += z * z / float64(df-2)
		}
		return r.NormFloat64() / math.Sqrt(chi)
	}
}

// Sites that do not differ, or in all features alike, get no feature named, whatever the law of
// the values and the number of factors.
func TestFeaturesThatAgreeAreNotNamed(t *testing.T) {
	const draws = 60
	own := func(site, i int) int { return []int{site % 3, -1}[i%2] }
	for name, d := range map[string]drawn{
		"equal":                  {sizes: alike(60)},
		"two sites":              {sizes: []int{60, 60}},
		"small":                  {sizes: alike(25)},
		"unequal":                {sizes: []int{1000, 30, 60, 20, 5}},
		"views are missing":      {sizes: []int{150, 80, 60}, lacking: own},
		"cells are missing":      {sizes: alike(50), holes: 0.15},
		"heavy tails":            {sizes: alike(60), noise: student(3)},
		"heavy tails, two sites": {sizes: []int{60, 60}, noise: student(3)},
		"loadings by 20 %":       {sizes: alike(100), differ: 0.2},
		"too few factors":        {sizes: alike(100), truth: 5, latent: 1, lacking: own},
		"too many factors":       {sizes: alike(60), latent: 6, kind: ppca.NoisePerFeature},
		"other factors": {sizes: alike(100), scaled: func(site int) float64 {
			return []float64{1, 2, 0.4, 1, 1.5, 0.7}[site]
		}},
	} {
		named := 0
		for seed := range uint64(draws) {
			if found := d.found(t, seed); len(found) > 0 {
				named++
			}
		}
		if named > 0 {
			t.Errorf("%s: features named in %d of %d draws", name, named, draws)
		}
	}
}
