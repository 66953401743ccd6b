package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// completeData returns the expected sufficient statistics of all blocks' subjects on all
// features that some block has, as a model sees those that a block lacks: what one E
// step of EM for missing values makes of them (Little and Rubin 2002, section 11.3).
// With K = M W_oᵀΨ_o⁻¹ of the features o that a block has, a row y_o − μ_o is continued
// by W_m K (y_o − μ_o), and N (W_m M W_mᵀ + Ψ_m) is added to the scatter, all but Ψ_m: of
// that, Filled says how often it is missing.
func completeData(l Layout, blocks []Block, fit *Params) (Block, error) {
	out := make([]Block, len(blocks))
	for i := range blocks {
		var err error
		if out[i], err = blocks[i].factored(); err != nil {
			return Block{}, err
		}
	}
	f := &filler{fit: fit, all: Observed(l, blocks), e: NewEStep(fit.Rank, out), root: linalg.NewEigen(fit.Rank)}
	md := NewModel(l, fit.Rank)
	md.Load(fit)
	for i, b := range out {
		err := f.e.Run(md, &b, nil)
		if err != nil {
			return Block{}, err
		}
		if out[i], err = f.block(&b); err != nil {
			return Block{}, err
		}
	}
	return mergeSame(out)[0], nil
}

type filler struct {
	fit  *Params
	all  []int  // features that some block has
	e    *EStep // which was run for the block
	root *linalg.Eigen
}

// block fills one block in factored form.
func (f *filler) block(b *Block) (Block, error) {
	q, ld, all := f.fit.Rank, f.e.ld, f.all
	p, own := len(all), len(b.Features)
	var missing []int // places in all
	place := make([]int, 0, own)
	for i, j := range all {
		if _, ok := slices.BinarySearch(b.Features, j); ok {
			place = append(place, i)
		} else {
			missing = append(missing, i)
		}
	}
	out := Block{Features: all, N: b.N, Mean: make([]float64, p), Filled: make([]float64, p)}
	continued := func(dst, src, x []float64) {
		for k, i := range place {
			dst[i] = src[k]
		}
		for _, i := range missing {
			for a, w := range f.fit.W[all[i]*q:][:q] {
				dst[i] += w * x[a]
			}
		}
	}
	for _, i := range missing {
		out.Mean[i] = f.fit.Mu[all[i]]
		out.Filled[i] = b.N
	}
	continued(out.Mean, b.Mean, f.e.X)
	x := make([]float64, q)
	for row := range slices.Chunk(b.Factor, own) {
		clear(x)
		for k, y := range row {
			for a, v := range f.e.v[k*ld:][:q] {
				x[a] += v * y
			}
		}
		linalg.CholSolve(f.e.chol, q, ld, x)
		dst := make([]float64, p)
		continued(dst, row, x)
		out.Factor = append(out.Factor, dst...)
	}
	if len(missing) == 0 {
		return out, nil
	}
	m := make([]float64, q*q)
	if !f.root.Factorise(f.e.M, ld) || !f.root.Power(m, q, 0.5) {
		return Block{}, ErrCollapsed
	}
	for a := range q {
		dst := make([]float64, p)
		for _, i := range missing {
			for c, w := range f.fit.W[all[i]*q:][:q] {
				dst[i] += math.Sqrt(b.N) * m[a*q+c] * w
			}
		}
		out.Factor = append(out.Factor, dst...)
	}
	return out, nil
}

// factored returns the block with its scatter as FᵀF.
func (b *Block) factored() (Block, error) {
	if b.Scatter == nil {
		return *b, nil
	}
	p := len(b.Features)
	e := linalg.NewEigen(p)
	if !e.Factorise(b.Scatter, p) {
		return Block{}, fmt.Errorf("the eigenvalues of a scatter matrix did not converge")
	}
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean}
	for a, x := range e.Values {
		if x > 1e-15*e.Values[p-1] {
			for i := range p {
				out.Factor = append(out.Factor, math.Sqrt(x)*e.Vectors[i*p+a])
			}
		}
	}
	return out, nil
}
