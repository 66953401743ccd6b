package ppca

import (
	"fmt"
	"slices"

	"parley/internal/wire"
)

// CheckPatterns refuses what no site has.
func CheckPatterns(patterns []Pattern, l Layout) error {
	if n := len(patterns); n == 0 || n > LargestPatterns {
		return fmt.Errorf("%d patterns of present views, want from 1 to %d", n, LargestPatterns)
	}
	for i, p := range patterns {
		if i > 0 && slices.Compare(patterns[i-1].Views, p.Views) >= 0 {
			return fmt.Errorf("pattern %d: its views %v do not follow %v", i, p.Views, patterns[i-1].Views)
		}
		if l.CheckViews(p.Views) != nil || len(p.Views) == 0 {
			return fmt.Errorf("pattern %d: its views are %v of %d", i, p.Views, l.Views())
		}
		// Who has a view has a value of it.
		if p.Subjects < 1 || p.Subjects > LargestCount ||
			!(p.Share*float64(l.Width(p.Views)) >= 0.999*float64(len(p.Views)) && p.Share <= 1) {
			return fmt.Errorf("pattern %d: %d subjects, %v of their cells observed", i, p.Subjects, p.Share)
		}
	}
	return nil
}

// packedBlock is a [Block] as it travels and is kept.
type packedBlock struct {
	Features []int       `cbor:"features"`
	N        float64     `cbor:"n"`
	Mean     wire.Vector `cbor:"mean"`
	Scatter  wire.Vector `cbor:"scatter"`          // p(p+1)/2: upper triangle by rows
	Factor   wire.Matrix `cbor:"factor"`           // r × p
	Diag     wire.Vector `cbor:"diag"`             // p, or none, as below
	Filled   wire.Vector `cbor:"filled,omitempty"` // p
	Products wire.Vector `cbor:"products"`
	Rest     wire.Vector `cbor:"rest"` // of what is kept of products: no site sends it
}

// MarshalCBOR encodes the block.
func (b Block) MarshalCBOR() ([]byte, error) {
	p := len(b.Features)
	m := packedBlock{Features: b.Features, N: b.N, Mean: b.Mean, Diag: b.Diag, Filled: b.Filled,
		Products: b.Products, Factor: wire.Matrix{Rows: b.Rows(), Cols: p, Data: b.Factor}, Rest: b.Rest}
	if b.Scatter != nil {
		for i := range p {
			m.Scatter = append(m.Scatter, b.Scatter[i*p+i:(i+1)*p]...)
		}
	}
	return wire.Marshal(m)
}

// UnmarshalCBOR decodes a block, whose numbers are unchecked.
func (b *Block) UnmarshalCBOR(data []byte) error {
	var m packedBlock
	if err := wire.Unmarshal(data, &m); err != nil {
		return err
	}
	p := len(m.Mean)
	some := func(x []float64) []float64 { // nil stands for none
		if len(x) == 0 {
			return nil
		}
		return x
	}
	*b = Block{Features: m.Features, N: m.N, Mean: m.Mean, Factor: some(m.Factor.Data), Diag: some(m.Diag),
		Filled: some(m.Filled), Products: some(m.Products), Rest: some(m.Rest)}
	if len(m.Features) != p || m.Factor.Cols != p || len(m.Scatter) != 0 && len(m.Scatter) != p*(p+1)/2 {
		return fmt.Errorf("block: %d features, factors of %d, or %d numbers for the scatter, with means of %d",
			len(m.Features), m.Factor.Cols, len(m.Scatter), p)
	}
	if len(m.Scatter) > 0 {
		b.Scatter = make([]float64, p*p)
	}
	for i, rest := 0, m.Scatter; len(rest) > 0; i++ {
		for j := i; j < p; j++ {
			b.Scatter[i*p+j], b.Scatter[j*p+i], rest = rest[0], rest[0], rest[1:]
		}
	}
	return nil
}
