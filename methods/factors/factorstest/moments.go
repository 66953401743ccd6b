package factorstest

import (
	"slices"

	"parley/methods/factors/ppca"
)

// Moments returns dense blocks, one per set of observed features and in the
// canonical order: by features, compared one after the other. Blocks on the
// same features are merged in the order given.
func Moments(blocks ...ppca.Block) []ppca.Block {
	var out []ppca.Block
	for i := range blocks {
		b := blocks[i].Dense()
		at, found := slices.BinarySearchFunc(out, b.Features, func(x ppca.Block, f []int) int { return slices.Compare(x.Features, f) })
		if !found {
			out = slices.Insert(out, at, b)
			continue
		}
		out[at] = merge(&out[at], &b)
	}
	return out
}

// merge adds two dense blocks on the same features.
func merge(a, b *ppca.Block) ppca.Block {
	p := len(a.Features)
	n := a.N + b.N
	out := ppca.Block{Features: a.Features, N: n, Mean: make([]float64, p), Scatter: make([]float64, p*p)}
	between := a.N * b.N / n
	for i := range p {
		di := b.Mean[i] - a.Mean[i]
		out.Mean[i] = a.Mean[i] + di*b.N/n
		for j := range i + 1 {
			s := a.Scatter[i*p+j] + b.Scatter[i*p+j] + between*di*(b.Mean[j]-a.Mean[j])
			out.Scatter[i*p+j], out.Scatter[j*p+i] = s, s
		}
	}
	return out
}
