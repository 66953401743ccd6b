package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

func TestBlocksAreTheirDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLayout(rt, 2, ppca.NoisePerView)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		d := l.Features()
		rows := factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, rapid.IntRange(1, 250).Draw(rt, "n"))
		if rapid.Bool().Draw(rt, "views") {
			factorstest.Lacking(l, rows[len(rows)/3:], 0)
		}
		factorstest.Hole(r, rows, rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(rt, "share"))
		scale := &ppca.Scale{Shift: make([]float64, d), Factor: make([]float64, d)}
		for j := range d {
			scale.Shift[j], scale.Factor[j] = r.NormFloat64(), 0.5+r.Float64()
		}
		a := factorstest.Must(ppca.NewAccumulator(l, scale))(t)
		for _, row := range rows {
			if err := a.Add(factorstest.Split(l, row)); err != nil {
				rt.Fatal(err)
			}
		}
		blocks := a.Blocks()
		if !slices.IsSortedFunc(blocks, func(x, y ppca.Block) int { return slices.Compare(x.Features, y.Features) }) {
			rt.Fatal("blocks are not in canonical order")
		}
		n := float64(a.Empty())
		for _, b := range blocks {
			if err := b.Check(l); err != nil {
				rt.Fatal(err)
			}
			n += b.N
			var own [][]float64
			for _, row := range rows {
				var o []int
				var x []float64
				for j, v := range row {
					if !math.IsNaN(v) {
						o, x = append(o, j), append(x, (v-scale.Shift[j])*scale.Factor[j])
					}
				}
				if slices.Equal(o, b.Features) {
					own = append(own, x)
				}
			}
			p := len(b.Features)
			mean, scatter := make([]float64, p), make([]float64, p*p)
			for _, x := range own {
				for i := range x {
					mean[i] += x[i] / float64(len(own))
				}
			}
			for _, x := range own {
				for i := range x {
					for j := range x {
						scatter[i*p+j] += (x[i] - mean[i]) * (x[j] - mean[j])
					}
				}
			}
			dense := b.Dense()
			if float64(len(own)) != b.N || factorstest.Worst(mean, b.Mean) > 1e-12 || factorstest.Worst(scatter, dense.Scatter) > 1e-11 {
				rt.Fatalf("block on %v differs from its %d rows", b.Features, len(own))
			}
		}
		if n != float64(len(rows)) {
			rt.Fatalf("%v subjects of %d", n, len(rows))
		}
		share := 0.0
		for _, pt := range ppca.Patterns(l, blocks) {
			cells := 0
			for _, k := range pt.Views {
				cells += l.Dims[k]
			}
			share += pt.Share * pt.Subjects * float64(cells)
		}
		for _, row := range rows {
			for _, x := range row {
				if !math.IsNaN(x) {
					share--
				}
			}
		}
		if math.Abs(share) > 1e-8 {
			rt.Fatalf("patterns count %v cells too many", share)
		}
	})
}

func TestAccumulatorRefusesWhatDoesNotFit(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 1)
	a := factorstest.Must(ppca.NewAccumulator(l, nil))(t)
	for _, c := range []struct {
		views [][]float64
		want  string
	}{
		{[][]float64{{1, 2}}, "1 views"},
		{[][]float64{{1}, {1}}, "1 values in view 0"},
		{[][]float64{{1, math.Inf(1)}, nil}, "infinite"},
	} {
		if err := a.Add(c.views); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.views, err, c.want)
		}
	}
	if err := a.Add([][]float64{nil, {math.NaN()}}); err != nil || a.Empty() != 1 || len(a.Blocks()) != 0 {
		t.Errorf("a subject without values: %v, %d empty, %d blocks", err, a.Empty(), len(a.Blocks()))
	}
	for _, s := range []ppca.Scale{{Shift: []float64{0}, Factor: []float64{1}}, {Shift: make([]float64, 3), Factor: make([]float64, 3)},
		{Shift: []float64{0, 0, math.NaN()}, Factor: []float64{1, 1, 1}}} {
		if _, err := ppca.NewAccumulator(l, &s); err == nil {
			t.Errorf("scale %v was accepted", s)
		}
	}
}
