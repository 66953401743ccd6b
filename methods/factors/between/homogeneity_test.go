package between

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Cuts of one population seldom come out as different, whatever it looks like, and sites
// that are two standard deviations apart always do. In 200 draws, 10 are expected to have a
// p-value under .05, and 22 or more happen once in three thousand such tests. The model has a
// factor too few.
func TestHomogeneity(t *testing.T) {
	for name, c := range map[string]struct {
		dims, sizes []int
		heavy       bool
	}{
		"three sites":              {[]int{10, 8}, []int{100, 60, 30}, false},
		"small sites":              {[]int{12, 8, 6}, slices.Repeat([]int{20, 15, 10, 5, 3}, 5), false},
		"more features than rows":  {[]int{60, 40}, []int{20, 15, 15}, false},
		"two sites, heavy tails":   {[]int{6}, []int{80, 80}, true},
		"many sites with one each": {[]int{6}, slices.Repeat([]int{1}, 40), false},
	} {
		l := factorstest.Shape(t, ppca.NoisePerView, c.dims...)
		wrong, missed := 0, 0
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 5))
			tr := factorstest.NewTruth(r, l, 2, 0.5)
			same, _ := shifted(r, tr, c.sizes, 0, 0.2)
			apart, _ := shifted(r, tr, c.sizes, 12, 0.2) // total variance is 3 or so
			if c.heavy {
				for _, row := range slices.Concat(same...) {
					if r.Float64() < 0.1 {
						for j := range row {
							row[j] *= 5
						}
					}
				}
			}
			sites := siteBlocks(t, l, same)
			if p := analyse(l, sites).homogeneity(l, sites); slices.Min(p)*float64(len(p)) < 0.05 {
				wrong++
			}
			sites = siteBlocks(t, l, apart)
			if slices.Min(analyse(l, sites).homogeneity(l, sites)) > level {
				missed++
			}
		}
		if t.Logf("%s: %d of 200 under .05, %d shifts missed", name, wrong, missed); wrong > 21 {
			t.Errorf("%s: %d of 200 cuts of one population have a p-value under .05", name, wrong)
		}
		if untestable := len(c.sizes) == 40; missed > 0 && !untestable || untestable && missed < 200 {
			t.Errorf("%s: %d of 200 shifts of two standard deviations were missed", name, missed)
		}
	}
}

func chosen(t *testing.T, l ppca.Layout, sites [][]ppca.Block, rank int) (*ppca.Fitted, *Offsets) {
	t.Helper()
	fit, off, err := Choose(l, sites, rank, nil, ppca.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fit, off
}

// Samples of one population hardly ever get offsets, not even where the model lacks factors.
func TestOnePopulationHasNoOffsets(t *testing.T) {
	wrong := 0
	for seed := range uint64(60) {
		l := factorstest.Shape(t, ppca.Noise(seed%2), 10, 8, 12)
		r := rand.New(rand.NewPCG(seed, 15))
		rows, _ := shifted(r, factorstest.NewTruth(r, l, 3, 0.4), [][]int{{100, 100, 100}, {40, 30, 20, 20}, slices.Repeat([]int{8}, 20)}[seed%3], 0, 0.2)
		if _, off := chosen(t, l, siteBlocks(t, l, rows), 1+int(seed%4)); off != nil {
			wrong++
			t.Logf("seed %d: offsets of %.2g", seed, mean(off.Variance))
		}
	}
	if wrong > 1 {
		t.Errorf("%d of 60 studies of one population have offsets", wrong)
	}
}

// Differences that the spread of the factors hides are found by the likelihood.
func TestDifferencesBesideStrongFactors(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 12, 8)
	found, hidden := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		tr := factorstest.NewTruth(r, l, 1, 0.1)
		for i := range tr.P.W {
			tr.P.W[i] *= 3
		}
		rows, _ := shifted(r, tr, slices.Repeat([]int{12}, 20), 0.05, 0)
		sites := siteBlocks(t, l, rows)
		if _, off := chosen(t, l, sites, 1); off != nil {
			found++
		}
		if slices.Min(analyse(l, sites).homogeneity(l, sites)) > 0.001 {
			hidden++
		}
	}
	if found < 20 || hidden < 10 {
		t.Errorf("%d of 20 differences found, %d of 20 not to be seen in the values themselves", found, hidden)
	}
}

// Sites get offsets where their means differ feature by feature, and none where they hold
// other parts of one population, which factors describe, nor where a view is at one site alone.
func TestChoose(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 8, 6)
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 8))
		tr := factorstest.NewTruth(r, l, 2, 0.3)
		draw := func(v float64) [][][]float64 {
			rows, _ := shifted(r, tr, []int{60, 50, 40}, v, 0.1)
			return rows
		}
		parts, alone := draw(0), draw(4)
		for i := range parts {
			factorstest.Shifted(tr, parts[i], float64(2*i))
		}
		factorstest.Lacking(l, alone[1], 1)
		factorstest.Lacking(l, alone[2], 1)
		for _, c := range []struct {
			name string
			rows [][][]float64
			want bool
		}{{"one population", draw(0), false}, {"other means", draw(4), true}, {"parts of one population", parts, false}, {"a view at one site", alone, false}} {
			fit, off, err := Choose(l, siteBlocks(t, l, c.rows), 2, nil, ppca.FitOptions{})
			if err != nil || (off != nil) != c.want {
				t.Fatalf("%s, seed %d: offsets %t: %v", c.name, seed, off != nil, err)
			}
			if fit.Starts == 0 || fit.AtBest == 0 {
				t.Errorf("%s, seed %d: %d of %d starts ended at the best", c.name, seed, fit.AtBest, fit.Starts)
			}
			if off != nil && !(off.Parameters > 2 && off.Parameters < 2+float64(l.Features())) || fit.Subjects != 150 {
				t.Errorf("%s, seed %d: %v parameters of %v subjects", c.name, seed, off, fit.Subjects)
			}
		}
	}
}

// Ordinary analysis of variance is the case of one feature, and a feature that only differs
// between sites, or nowhere, is no obstacle.
func TestHomogeneityOfOneFeature(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 1, 1, 1)
	rows := func(x ...float64) (out [][]float64) {
		for _, y := range x {
			out = append(out, []float64{y, 7, 1})
		}
		return out
	}
	sites := siteBlocks(t, l, [][][]float64{rows(6, 8, 4, 5, 3, 4), rows(8, 12, 9, 11, 6, 8), rows(13, 9, 11, 8, 7, 12)})
	for i := range sites {
		sites[i][0].Mean[2] = float64(i)
	}
	p := analyse(l, sites).homogeneity(l, sites)
	// F = 42/(68/15) = 9.3 on 2 and 15 degrees of freedom.
	if math.Abs(p[0]-0.0023987773) > 1e-8 || p[1] != 1 || p[2] > 1e-9 {
		t.Errorf("p-values %v, want 0.0024, 1 and 0", p)
	}
}

// Correlations of factors and of the matrices that they stand for are the same.
func TestCorrelationOfFactors(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 30, 5)
	r := rand.New(rand.NewPCG(9, 9))
	rows := factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, 12)
	thin := [][]ppca.Block{siteOfRows(l, rows[:6]), siteOfRows(l, rows[6:])}
	thin[0][0].Diag = slices.Repeat([]float64{0.7}, l.Features())
	dense := [][]ppca.Block{{thin[0][0].Dense()}, {thin[1][0].Dense()}}
	scale := make([]float64, 30)
	for j := range scale {
		scale[j] = 0.5 + r.Float64()
	}
	a, b := correlation(0, 30, scale, thin), correlation(0, 30, scale, dense)
	many := correlation(0, 30, scale, [][]ppca.Block{thin[0], thin[1], thin[0], thin[1], thin[0], thin[1]})
	if math.Abs(a-b) > 1e-9*b || math.Abs(many-9*b) > 1e-8*b {
		t.Errorf("sums of squares %v of factors, %v of matrices, %v of three times as many", a, b, many)
	}
}
