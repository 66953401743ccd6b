package factorstest

import (
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

// Forms returns the same subjects as statistics, as rows, as two blocks and as
// one block per subject.
func Forms(l ppca.Layout, rows [][]float64) map[string][]ppca.Block {
	features := l.AllFeatures()
	single := func(rows [][]float64) ppca.Block {
		d := len(features)
		b := ppca.Block{Features: features, N: float64(len(rows)), Mean: make([]float64, d)}
		for _, r := range rows {
			for j, x := range r {
				b.Mean[j] += x / b.N
			}
		}
		for _, r := range rows {
			for j, x := range r {
				b.Factor = append(b.Factor, x-b.Mean[j])
			}
		}
		return b
	}
	all := single(rows)
	var subjects []ppca.Block
	for _, r := range rows {
		subjects = append(subjects, ppca.Block{Features: features, N: 1, Mean: r})
	}
	half := len(rows) / 2
	first, second := single(rows[:half]), single(rows[half:])
	return map[string][]ppca.Block{
		"statistics": {all.Dense()}, "rows": {all}, "mixed": {first, second.Dense()}, "subjects": subjects,
		"merged": Moments(subjects...),
	}
}

// Said is what a site sends first of its subjects.
func Said(t tb, l ppca.Layout, blocks []ppca.Block, q int) []ppca.Block {
	t.Helper()
	d, err := ppca.Describe(l, nil, blocks, nil, ppca.Bound{Numbers: ppca.LargestExact})
	if err != nil {
		t.Fatal(err)
	}
	return d.Blocks
}

// Gradient is the central difference of f at x in every coordinate, relative
// to the curvature scale of f.
func Gradient(f func([]float64) float64, x []float64) (largest float64) {
	y := slices.Clone(x)
	for i := range x {
		h := 1e-4 * max(1e-2, math.Abs(x[i]))
		y[i] = x[i] + h
		up := f(y)
		y[i] = x[i] - h
		down := f(y)
		y[i] = x[i]
		// The change of f over the step, against the size of the curvature term.
		g, c := (up-down)/2, math.Abs(up+down-2*f(x))/2
		largest = max(largest, math.Abs(g)/(c+1e-12*math.Abs(f(x))))
	}
	return largest
}

// Moments returns dense blocks, one per set of observed features and in the canonical order, those on the same features
// merged in the order given.
func Moments(blocks ...ppca.Block) []ppca.Block {
	out := ppca.Merge(slices.Clone(blocks))
	for i := range out {
		out[i] = out[i].Dense()
	}
	return out
}
