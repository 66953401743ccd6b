package message

import (
	"parley/internal/wire"
	"parley/methods/mvppca/ppca/offsets"
)

// SiteMeans is how the sites' means differ, as it is kept: an [offsets.Offsets] with names.
type SiteMeans struct {
	Variance wire.Vector        `cbor:"variance"`
	NewSite  wire.Vector        `cbor:"new_site"`
	Sites    map[string]*Offset `cbor:"sites"`
}

// Offset is an [offsets.Site] as it travels and is kept.
type Offset struct {
	Mean   wire.Vector `cbor:"mean"`
	Diag   wire.Vector `cbor:"diag"`
	Factor wire.Matrix `cbor:"factor"` // r × d
}

// PackSiteMeans puts names to the sites, which are in the same order.
func PackSiteMeans(names []string, o *offsets.Offsets) *SiteMeans {
	m := &SiteMeans{Variance: o.Variance, NewSite: o.NewSite, Sites: map[string]*Offset{}}
	for i, s := range o.Sites {
		d := len(s.Mean)
		m.Sites[names[i]] = &Offset{s.Mean, s.Diag, wire.Matrix{Rows: len(s.Factor) / d, Cols: d, Data: s.Factor}}
	}
	return m
}

// At returns what is known of a site's offset; nil if sites have none. A site that said
// nothing of its subjects is as any that took no part.
func (m *SiteMeans) At(site string) *Offset {
	if m == nil {
		return nil
	}
	if at, ok := m.Sites[site]; ok {
		return at
	}
	d := len(m.NewSite)
	return &Offset{Mean: make(wire.Vector, d), Diag: m.NewSite, Factor: wire.Matrix{Cols: d}}
}

// Unpack is the inverse of packing. What it returns is checked where it is used.
func (m *Offset) Unpack() *offsets.Site {
	return &offsets.Site{Mean: m.Mean, Diag: m.Diag, Factor: m.Factor.Data}
}
