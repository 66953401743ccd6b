package ppca_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// TestHostileModelsGiveErrors changes valid blocks and parameters at random: whatever
// comes out is an error or finite numbers, and never a panic.
func TestHostileModelsGiveErrors(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(71, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.3)
	blocks := factorstest.BlocksOf(t, l, tr.Subjects(r, 20))
	for range 400 {
		p, bl := tr.P.Clone(), factorstest.Moments(blocks...)[:1]
		factorstest.Mutate(r, reflect.ValueOf(&p).Elem())
		factorstest.Mutate(r, reflect.ValueOf(&bl[0]).Elem())
		if said, err := ppca.Describe(l, &p, bl, 0); err == nil {
			if f, err := ppca.Fit(l, said.Blocks, 1, nil, ppca.FitOptions{MaxIter: 20}); err == nil {
				factorstest.FiniteResult(t, "fit", f.W, f.Mu, f.Noise, []float64{f.LogLik})
			}
		}
		if _, _, _, err := ppca.Canonical(l, &p); err == nil {
			if pred, err := ppca.NewPredictor(l, &p); err == nil {
				if post, err := pred.Given(p.Features); err == nil {
					factorstest.FiniteResult(t, "posterior", post.Cov)
				}
			}
		}
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for _, dims := range [][]int{nil, {}, {0}, {3, -1}, {1 << 62, 1 << 62}, {1 << 20}} {
		if _, err := ppca.NewLayout(dims, ppca.NoisePerView); err == nil {
			t.Errorf("dimensions %v were accepted", dims)
		}
	}
	if _, err := ppca.NewLayout([]int{1}, 7); err == nil {
		t.Error("an unknown kind of noise was accepted")
	}
}

// Whatever the data are like, a site can say something of them that others can take in: features
// that are constant, repeated, without noise or a trillion times as large as others, subjects who
// are all alike, single huge values, and gaps, as rows or as a scatter matrix.
func TestDescribeTakesAnyData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, n := rapid.IntRange(3, 60).Draw(rt, "features"), rapid.IntRange(1, 80).Draw(rt, "subjects")
		l := ppca.Layout{Dims: []int{d - 1, 1}, Noise: rapid.SampledFrom([]ppca.Noise{ppca.NoisePerFeature, ppca.NoisePerView}).Draw(rt, "noise")}
		factors := rapid.IntRange(0, 5).Draw(rt, "factors")
		noise := rapid.SampledFrom([]float64{0, 1e-12, 1e-6, 1e-3, 1}).Draw(rt, "standard deviation of the noise")
		orders := rapid.SampledFrom([]float64{0, 1, 8, 20}).Draw(rt, "orders of magnitude")
		gaps := rapid.SampledFrom([]float64{0, 0.02}).Draw(rt, "gaps")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		loadings, scale := make([]float64, d*factors), make([]float64, d)
		for i := range loadings {
			loadings[i] = r.NormFloat64()
		}
		for j := range scale {
			if r.IntN(8) > 0 {
				scale[j] = math.Pow(10, orders*(r.Float64()-0.5))
			}
		}
		var rows [][]float64
		for i := range n {
			row := make([]float64, d)
			x := make([]float64, factors)
			for a := range x {
				x[a] = r.NormFloat64()
			}
			for j := range row {
				row[j] = noise * r.NormFloat64()
				for a, v := range x {
					row[j] += loadings[j*factors+a] * v
				}
				if row[j] *= scale[j]; r.IntN(500) == 0 {
					row[j] *= 1e6
				}
				if i > 5 && r.Float64() < gaps {
					row[j] = math.NaN()
				}
			}
			if i > 0 && r.IntN(5) == 0 {
				copy(row, rows[0])
			}
			rows = append(rows, row)
		}
		blocks := factorstest.BlocksOf(t, l, rows)
		dense := slices.Clone(blocks)
		for i, b := range blocks {
			if len(b.Factor) > 0 {
				dense[i] = b.Dense()
			}
		}
		for _, all := range [][]ppca.Block{blocks, dense} {
			said, err := ppca.Describe(l, nil, all, 0)
			if err != nil {
				rt.Fatal(err)
			}
			out := said.Blocks
			for i := range out {
				if err := out[i].Check(l); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}
