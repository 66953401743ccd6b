package options

import (
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
