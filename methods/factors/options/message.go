package options

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
	"parley/methods/factors/between"
	"parley/methods/factors/ppca"
)

// Scale is a [ppca.Scale] as it travels and is kept.
type Scale struct {
	ppca.Scale
	// Effects of covariates are taken out of the values before; none where the plan adjusts
	// for nothing.
	Effects *Effects `cbor:"effects,omitempty"`
}

// Block is a [ppca.Block] as it travels, and as it is kept: its scatter matrix, or factors of it and what they leave of
// its diagonal, or its products with directions, which are kept as factors and a rest.
type Block struct {
	Runs    [][2]int    `cbor:"runs"`
	N       float64     `cbor:"n"`
	Mean    wire.Vector `cbor:"mean"`
	Scatter wire.Vector `cbor:"scatter"`          // p(p+1)/2: upper triangle by rows
	Factor  wire.Matrix `cbor:"factor"`           // r × p
	Diag    wire.Vector `cbor:"diag"`             // p, or none
	Filled  wire.Vector `cbor:"filled,omitempty"` // p, or none
	// Products are p × r by rows, with the whole diagonal as Diag; Rest is kept of these, and never travels.
	Products wire.Vector `cbor:"products"`
	Rest     wire.Vector `cbor:"rest"`
}

func PackBlock(b *ppca.Block) Block {
	p := len(b.Features)
	m := Block{Runs: ppca.RunsOf(b.Features), N: b.N, Mean: b.Mean, Diag: b.Diag, Filled: b.Filled,
		Products: b.Products,
		Factor:   wire.Matrix{Rows: len(b.Factor) / p, Cols: p, Data: b.Factor}, Rest: b.Rest}
	if b.Scatter != nil {
		for i := range p {
			m.Scatter = append(m.Scatter, b.Scatter[i*p+i:(i+1)*p]...)
		}
	}
	return m
}

// Unpack is the inverse of PackBlock. What it returns is what subjects can have.
func (m *Block) Unpack(l ppca.Layout) (*ppca.Block, error) {
	features, err := ppca.FeaturesOf(m.Runs, l)
	if err != nil {
		return nil, err
	}
	p := len(features)
	b := &ppca.Block{Features: features, N: m.N, Mean: m.Mean, Factor: m.Factor.Data, Diag: m.Diag}
	if len(m.Filled) > 0 {
		b.Filled = m.Filled
	}
	if len(m.Rest) > 0 {
		b.Rest = m.Rest
	}
	if len(m.Products) > 0 {
		b.Products = m.Products
	}
	switch {
	case m.Factor.Cols != p:
		return nil, fmt.Errorf("block: factors of %d features, not %d", m.Factor.Cols, p)
	case len(m.Scatter) > 0:
		if len(m.Scatter) != p*(p+1)/2 || len(m.Factor.Data) > 0 || len(m.Diag) > 0 {
			return nil, fmt.Errorf("block: %d numbers for the scatter of %d features, or factors beside them",
				len(m.Scatter), p)
		}
		b.Factor, b.Diag, b.Scatter = nil, nil, make([]float64, p*p)
		at := 0
		for i := range p {
			for j := i; j < p; j++ {
				b.Scatter[i*p+j], b.Scatter[j*p+i] = m.Scatter[at], m.Scatter[at]
				at++
			}
		}
	case len(m.Diag) == 0:
		b.Diag = nil
	}
	if err := b.Check(l); err != nil {
		return nil, err
	}
	return b, errors.Join(b.Measured(), b.MakePossible())
}

// SiteMeans is how the sites' means differ, as it is kept: an [between.Offsets] with names.
type SiteMeans struct {
	Variance wire.Vector                    `cbor:"variance"`
	NewSite  wire.Vector                    `cbor:"new_site"`
	Along    wire.Vector                    `cbor:"along,omitempty"`
	Sites    map[string]*between.SiteOffset `cbor:"sites"`
}

// PackSiteMeans puts names to the sites, which are in the same order.
func PackSiteMeans(names []string, o *between.Offsets) *SiteMeans {
	m := &SiteMeans{Variance: o.Variance, NewSite: o.NewSite, Along: o.Along,
		Sites: map[string]*between.SiteOffset{}}
	for i := range o.Sites {
		m.Sites[names[i]] = &o.Sites[i]
	}
	return m
}

// SD returns the standard deviation between sites of the means of each view: the root mean
// square over its features.
func (m *SiteMeans) SD(l ppca.Layout) []float64 {
	out := make([]float64, l.Views())
	for k := range out {
		lo, hi := l.View(k)
		out[k] = math.Sqrt(floats.Sum(m.Variance[lo:hi]) / float64(hi-lo))
	}
	return out
}

// At returns what is known of a site's offset; nil if sites have none. A site that said
// nothing of its subjects is as any that took no part.
func (m *SiteMeans) At(site string) *between.SiteOffset {
	if m == nil {
		return nil
	}
	if at, ok := m.Sites[site]; ok {
		return at
	}
	d := len(m.NewSite)
	return &between.SiteOffset{Mean: make(wire.Vector, d), Diag: m.NewSite, Factor: wire.Matrix{Cols: d}}
}
