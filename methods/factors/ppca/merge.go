package ppca

import (
	"math"
	"slices"
)

// Merge adds blocks on the same features, in the order given, and returns them in
// canonical order. The sum is factored as long as that is cheaper to fit.
func Merge(blocks []Block) []Block {
	slices.SortStableFunc(blocks, func(a, b Block) int { return slices.Compare(a.Features, b.Features) })
	var out []Block
	for len(blocks) > 0 {
		n := 1
		for n < len(blocks) && slices.Equal(blocks[n].Features, blocks[0].Features) {
			n++
		}
		out = append(out, mergeSame(blocks[:n])...)
		blocks = blocks[n:]
	}
	return out
}

// mergeSame adds blocks on the same features.
func mergeSame(blocks []Block) []Block {
	if len(blocks) == 1 {
		return blocks
	}
	// Two blocks' means scatter about their common one by N₁N₂/(N₁+N₂) Δ Δᵀ.
	p := len(blocks[0].Features)
	out := Block{Features: blocks[0].Features, Mean: make([]float64, p)}
	rows := len(blocks) - 1
	for i := range blocks {
		rows += blocks[i].Rows()
	}
	out.Factor = make([]float64, 0, rows*p)
	for i := range blocks {
		b := &blocks[i]
		out.Factor = append(out.Factor, b.Factor...)
		if b.Diag != nil && out.Diag == nil {
			out.Diag = make([]float64, p)
		}
		for k, x := range b.Diag {
			out.Diag[k] += x
		}
		if b.Filled != nil && out.Filled == nil {
			out.Filled = make([]float64, p)
		}
		for k, x := range b.Filled {
			out.Filled[k] += x
		}
		if b.Scatter != nil {
			if out.Scatter == nil {
				out.Scatter = make([]float64, p*p)
			}
			for k, x := range b.Scatter {
				out.Scatter[k] += x
			}
		}
		n := out.N + b.N
		size := math.Sqrt(out.N * b.N / n)
		for k, m := range b.Mean {
			delta := m - out.Mean[k]
			if i > 0 {
				out.Factor = append(out.Factor, size*delta)
			}
			out.Mean[k] += delta * b.N / n
		}
		out.N = n
	}
	if out.Scatter == nil && 2*out.Rows() < p {
		return []Block{out}
	}
	// The matrix is no dearer.
	if out.Scatter == nil {
		out.Scatter = make([]float64, p*p)
	}
	addSquare(out.Scatter, out.Factor, p)
	for k, x := range out.Diag {
		out.Scatter[k*p+k] += x
	}
	out.Factor, out.Diag = nil, nil
	return []Block{out}
}
