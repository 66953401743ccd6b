package between

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

func chosen(t *testing.T, l ppca.Layout, sites [][]ppca.Block, rank int) (*ppca.Fitted, *Offsets) {
	t.Helper()
	fit, off, err := Choose(l, sites, rank, nil, ppca.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fit, off
}

// Samples of one population hardly ever get offsets, not even where the model lacks factors, or some subjects are
// five times as far from the mean as others.
func TestOnePopulationHasNoOffsets(t *testing.T) {
	wrong := 0
	for seed := range uint64(60) {
		l := factorstest.Shape(t, ppca.Noise(seed%2), 10, 8, 12)
		r := rand.New(rand.NewPCG(seed, 15))
		rows, _ := shifted(r, factorstest.NewTruth(r, l, 3, 0.4), [][]int{{100, 100, 100}, {40, 30, 20, 20}, slices.Repeat([]int{8}, 20)}[seed%3], 0, 0.2)
		for _, row := range slices.Concat(rows...) {
			if seed >= 30 && r.Float64() < 0.1 {
				floats.Scale(5, row)
			}
		}
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
	found := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		tr := factorstest.NewTruth(r, l, 1, 0.1)
		for i := range tr.P.W {
			tr.P.W[i] *= 3
		}
		rows, _ := shifted(r, tr, slices.Repeat([]int{12}, 20), 0.05, 0)
		if _, off := chosen(t, l, siteBlocks(t, l, rows), 1); off != nil {
			found++
		}
	}
	if found < 20 {
		t.Errorf("%d of 20 differences found", found)
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
