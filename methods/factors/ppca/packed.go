package ppca

import (
	"cmp"
	"fmt"
	"slices"

	"parley/internal/wire"
)

// PackedParams are [Params] as they travel and are kept: only what is described.
type PackedParams struct {
	Runs  [][2]int    `cbor:"runs"` // described features, as half-open ranges
	W     wire.Matrix `cbor:"w"`    // p × q
	Mu    wire.Vector `cbor:"mu"`   // p
	Noise wire.Vector `cbor:"noise"`
}

// PackParams leaves out what is not described.
func PackParams(l Layout, p *Params) PackedParams {
	m := PackedParams{Runs: runsOf(p.Features), W: wire.Matrix{Rows: len(p.Features), Cols: p.Rank}}
	for _, j := range p.Features {
		m.W.Data = append(m.W.Data, p.W[j*p.Rank:][:p.Rank]...)
		m.Mu = append(m.Mu, p.Mu[j])
	}
	for g, used := range p.Groups(l) {
		if used {
			m.Noise = append(m.Noise, p.Noise[g])
		}
	}
	return m
}

// Unpack is the inverse of [PackParams]; it refuses what does not fit the layout.
func (m *PackedParams) Unpack(l Layout) (*Params, error) {
	described, err := featuresOf(m.Runs, m.W.Rows)
	if err = cmp.Or(err, l.CheckFeatures(described)); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	d := l.Features()
	p := &Params{Features: described, Rank: m.W.Cols, Mu: make([]float64, d), Noise: make([]float64, l.Groups())}
	if len(p.Features) != len(m.Mu) || p.Rank < 1 || p.Rank > d {
		return nil, fmt.Errorf("parameters: %d × %d loadings and %d means for %d features", m.W.Rows, m.W.Cols,
			len(m.Mu), len(p.Features))
	}
	p.W = make([]float64, d*p.Rank)
	for i, j := range p.Features {
		copy(p.W[j*p.Rank:][:p.Rank], m.W.Data[i*p.Rank:])
		p.Mu[j] = m.Mu[i]
	}
	at := 0
	for g, used := range p.Groups(l) {
		if used && at < len(m.Noise) {
			p.Noise[g] = m.Noise[at]
		}
		if used {
			at++
		}
	}
	if at != len(m.Noise) {
		return nil, fmt.Errorf("parameters: %d noise variances where %d are described", len(m.Noise), at)
	}
	return p, p.Check(l)
}

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
	Runs     [][2]int    `cbor:"runs"`
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
	m := packedBlock{Runs: runsOf(b.Features), N: b.N, Mean: b.Mean, Diag: b.Diag, Filled: b.Filled,
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
	features, err := featuresOf(m.Runs, p)
	if err != nil {
		return fmt.Errorf("block: %w", err)
	}
	some := func(x []float64) []float64 { // nil stands for none
		if len(x) == 0 {
			return nil
		}
		return x
	}
	*b = Block{Features: features, N: m.N, Mean: m.Mean, Factor: some(m.Factor.Data), Diag: some(m.Diag),
		Filled: some(m.Filled), Products: some(m.Products), Rest: some(m.Rest)}
	if m.Factor.Cols != p || len(m.Scatter) != 0 && len(m.Scatter) != p*(p+1)/2 {
		return fmt.Errorf("block: factors of %d features, or %d numbers for the scatter, of %d", m.Factor.Cols,
			len(m.Scatter), p)
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

// runsOf writes ascending features as half-open ranges.
func runsOf(features []int) (r [][2]int) {
	for _, j := range features {
		if n := len(r); n > 0 && r[n-1][1] == j {
			r[n-1][1]++
		} else {
			r = append(r, [2]int{j, j + 1})
		}
	}
	return r
}

// featuresOf is the inverse of runsOf; it refuses ranges that are not ascending and of n features, 1 at least.
func featuresOf(runs [][2]int, n int) (list []int, err error) {
	last := -1
	for _, r := range runs {
		if r[0] <= last || r[1] <= r[0] || r[1]-r[0] > n-len(list) {
			return nil, fmt.Errorf("features %d to %d do not follow %d, or there are not %d", r[0], r[1], last, n)
		}
		last = r[1]
		for j := r[0]; j < r[1]; j++ {
			list = append(list, j)
		}
	}
	if len(list) == 0 || len(list) != n {
		return nil, fmt.Errorf("%d features, where there are numbers of %d", len(list), n)
	}
	return list, nil
}
