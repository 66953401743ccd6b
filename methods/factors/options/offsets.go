package options

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/ppca"
)

// SiteMeans is how the sites' means differ, as it is kept: an [between.Offsets] with names.
type SiteMeans struct {
	Variance wire.Vector        `cbor:"variance"`
	NewSite  wire.Vector        `cbor:"new_site"`
	Sites    map[string]*Offset `cbor:"sites"`
}

// Offset is an [between.SiteOffset] as it travels and is kept.
type Offset struct {
	Mean   wire.Vector `cbor:"mean"`
	Diag   wire.Vector `cbor:"diag"`
	Factor wire.Matrix `cbor:"factor"` // r × d
}

// PackSiteMeans puts names to the sites, which are in the same order.
func PackSiteMeans(names []string, o *between.Offsets) *SiteMeans {
	m := &SiteMeans{Variance: o.Variance, NewSite: o.NewSite, Sites: map[string]*Offset{}}
	for i, s := range o.Sites {
		d := len(s.Mean)
		m.Sites[names[i]] = &Offset{s.Mean, s.Diag, wire.Matrix{Rows: len(s.Factor) / d, Cols: d, Data: s.Factor}}
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

// Check holds what is kept of the sites' means to the layout.
func (m *SiteMeans) Check(l ppca.Layout, sites []string) error {
	d := l.Features()
	variances := func(v []float64) error {
		if len(v) != d || slices.ContainsFunc(v, func(x float64) bool { return x < 0 }) {
			return fmt.Errorf("%d variances of means, where there are %d features", len(v), d)
		}
		return ppca.Within("variance of means", v, ppca.LargestValue*ppca.LargestValue)
	}
	if err := errors.Join(variances(m.Variance), variances(m.NewSite)); err != nil {
		return err
	}
	return method.Kept(m.Sites, sites, "means", func(o *Offset) error {
		if o.Factor.Cols != d {
			return fmt.Errorf("directions of %d features, where there are %d", o.Factor.Cols, d)
		}
		return errors.Join(o.CheckMean(l), variances(o.Diag), ppca.Within("directions of means", o.Factor.Data, ppca.LargestValue))
	})
}

// Remove returns the blocks of a site with its offset taken from the means; as they are if
// there is none.
func (m *Offset) Remove(l ppca.Layout, blocks []ppca.Block) ([]ppca.Block, error) {
	if m == nil {
		return blocks, nil
	}
	if err := m.CheckMean(l); err != nil {
		return nil, err
	}
	out := slices.Clone(blocks)
	for i := range out {
		out[i].Mean = slices.Clone(out[i].Mean)
		for a, j := range out[i].Features {
			out[i].Mean[a] -= m.Mean[j]
		}
	}
	return out, nil
}

// CheckMean holds the offset's mean to the layout, and to what values can be.
func (m *Offset) CheckMean(l ppca.Layout) error {
	if len(m.Mean) != l.Features() {
		return fmt.Errorf("an offset of %d features, not %d", len(m.Mean), l.Features())
	}
	return ppca.Within("offset of the site", m.Mean, ppca.LargestValue)
}

// Unpack is the inverse of packing. What it returns is checked where it is used.
func (m *Offset) Unpack() *between.SiteOffset {
	return &between.SiteOffset{Mean: m.Mean, Diag: m.Diag, Factor: m.Factor.Data}
}
