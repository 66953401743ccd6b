package ppca

import (
	"fmt"
	"slices"
)

// Block is the sufficient statistics of subjects who share the same observed
// features: their number, mean and scatter matrix
// S = Σ (t − mean)(t − mean)ᵀ, which comes in one of two forms:
//
//   - dense: Scatter holds all of S;
//   - factored: S = Fᵀ F + diag(Diag), cheaper when F has few rows. For
//     subjects, F is their centred rows; for the pseudo-data of a site that sent
//     its parameters, F = √N Wᵀ and Diag = N ψ.
//
// The E step gives the same numbers for either.
type Block struct {
	Features []int     // observed, ascending; p of them
	N        float64   // number of subjects; need not be whole for pseudo-data
	Mean     []float64 // p
	Scatter  []float64 // dense form: p × p by rows, symmetric; nil otherwise
	Factor   []float64 // factored form: r × p by rows
	Diag     []float64 // factored form: p, or nil for zero
}

// rows returns the number of rows of the factor.
func (b *Block) rows() int { return len(b.Factor) / len(b.Features) }

// Check says what is wrong with a block that came from elsewhere.
func (b *Block) Check(l Layout) error {
	if err := l.checkFeatures(b.Features); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	p := len(b.Features)
	if !(b.N >= least && b.N <= Largest) {
		return fmt.Errorf("block: count %v is not positive and finite", b.N)
	}
	if len(b.Mean) != p {
		return fmt.Errorf("block: mean has %d entries for %d features", len(b.Mean), p)
	}
	if b.Scatter != nil {
		if len(b.Scatter) != p*p || b.Factor != nil || b.Diag != nil {
			return fmt.Errorf("block: dense scatter has %d entries for %d features, or comes with a factor", len(b.Scatter), p)
		}
		for i := range p {
			if b.Scatter[i*p+i] < 0 {
				return fmt.Errorf("block: negative sum of squares for feature %d", b.Features[i])
			}
			for j := range i {
				if b.Scatter[i*p+j] != b.Scatter[j*p+i] {
					return fmt.Errorf("block: scatter is not symmetric at features %d and %d", b.Features[i], b.Features[j])
				}
			}
		}
	} else {
		if len(b.Factor)%p != 0 || b.Diag != nil && len(b.Diag) != p {
			return fmt.Errorf("block: factor has %d and diagonal %d entries for %d features", len(b.Factor), len(b.Diag), p)
		}
		if len(b.Diag) > 0 && slices.Min(b.Diag) < 0 {
			return fmt.Errorf("block: negative entry on the diagonal")
		}
	}
	for _, x := range [][]float64{b.Mean, b.Scatter, b.Factor, b.Diag} {
		if err := Finite("block", x); err != nil {
			return err
		}
	}
	return nil
}

// Squares writes the diagonal of S.
func (b *Block) Squares(dst []float64) {
	p := len(b.Features)
	if b.Scatter != nil {
		for j := range p {
			dst[j] = b.Scatter[j*p+j]
		}
		return
	}
	clear(dst[:p])
	copy(dst, b.Diag)
	for r := range b.rows() {
		for j, x := range b.Factor[r*p:][:p] {
			dst[j] += x * x
		}
	}
}

// Dense returns the block with its scatter in dense form.
func (b *Block) Dense() Block {
	if b.Scatter != nil {
		return *b
	}
	p := len(b.Features)
	s := make([]float64, p*p)
	for r := range b.rows() {
		row := b.Factor[r*p:][:p]
		for i, x := range row {
			for j := i; j < p; j++ {
				s[i*p+j] += x * row[j]
			}
		}
	}
	for i := range p {
		if b.Diag != nil {
			s[i*p+i] += b.Diag[i]
		}
		for j := range i {
			s[i*p+j] = s[j*p+i]
		}
	}
	return Block{Features: b.Features, N: b.N, Mean: b.Mean, Scatter: s}
}

// Moments returns dense blocks, one per set of observed features and in the
// canonical order: by features, compared one after the other. Blocks on the
// same features are merged in the order given.
func Moments(blocks ...Block) []Block {
	var out []Block
	for i := range blocks {
		b := blocks[i].Dense()
		at, found := slices.BinarySearchFunc(out, b.Features, func(x Block, f []int) int { return slices.Compare(x.Features, f) })
		if !found {
			out = slices.Insert(out, at, b)
			continue
		}
		out[at] = merge(&out[at], &b)
	}
	return out
}

// merge adds two dense blocks on the same features.
func merge(a, b *Block) Block {
	p := len(a.Features)
	n := a.N + b.N
	out := Block{Features: a.Features, N: n, Mean: make([]float64, p), Scatter: make([]float64, p*p)}
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

// Scaled returns the statistics of the subjects after every value x of
// feature j has become (x − Shift)·Factor.
func (b *Block) Scaled(s *Scale) Block {
	p := len(b.Features)
	out := Block{Features: b.Features, N: b.N, Mean: make([]float64, p)}
	for i, j := range b.Features {
		out.Mean[i] = (b.Mean[i] - s.Shift[j]) * s.Factor[j]
	}
	product := func(src []float64, row func(i int) float64) []float64 {
		if src == nil {
			return nil
		}
		dst := make([]float64, len(src))
		for i := range len(src) / p {
			f := row(i)
			for k, j := range b.Features {
				dst[i*p+k] = src[i*p+k] * (f * s.Factor[j])
			}
		}
		return dst
	}
	out.Scatter = product(b.Scatter, func(i int) float64 { return s.Factor[b.Features[i]] })
	out.Factor = product(b.Factor, func(int) float64 { return 1 })
	if b.Diag != nil {
		out.Diag = make([]float64, p)
		for i, j := range b.Features {
			out.Diag[i] = b.Diag[i] * s.Factor[j] * s.Factor[j]
		}
	}
	return out
}
