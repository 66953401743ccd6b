package options

import (
	"cmp"
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

// Scale is a [ppca.Scale] as it travels and is kept.
type Scale struct {
	Shift  wire.Vector `cbor:"shift"`
	Factor wire.Vector `cbor:"factor"`
	// Effects of covariates are taken out of the values before; none where the plan adjusts
	// for nothing.
	Effects *Effects `cbor:"effects,omitempty"`
}

func (m Scale) Unpack(l ppca.Layout) (*ppca.Scale, error) {
	s := &ppca.Scale{Shift: m.Shift, Factor: m.Factor}
	return s, s.Check(l)
}

// Params is [ppca.Params] as they travel and are kept: only what is described.
type Params struct {
	Runs  [][2]int    `cbor:"runs"` // described features, as half-open ranges
	W     wire.Matrix `cbor:"w"`    // p × q
	Mu    wire.Vector `cbor:"mu"`   // p
	Noise wire.Vector `cbor:"noise"`
}

// PackParams leaves out what is not described.
func PackParams(l ppca.Layout, p *ppca.Params) Params {
	m := Params{Runs: runsOf(p.Features), W: wire.Matrix{Rows: len(p.Features), Cols: p.Rank}}
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

// params is the inverse of PackParams; it refuses what does not fit the layout.
func (m *Params) Unpack(l ppca.Layout) (*ppca.Params, error) {
	described, err := FeaturesOf(m.Runs, l)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	d := l.Features()
	p := &ppca.Params{Features: described, Rank: m.W.Cols, Mu: make([]float64, d), Noise: make([]float64, l.Groups())}
	if len(p.Features) != m.W.Rows || len(p.Features) != len(m.Mu) || p.Rank < 1 || p.Rank > d {
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

// Pattern is how many of a site's subjects have exactly these views.
type Pattern struct {
	Views    []int   `cbor:"views"`
	Subjects int     `cbor:"subjects"`
	Share    float64 `cbor:"share"` // of these views' cells that were observed
}

func PackPatterns(patterns []ppca.Pattern) (m []Pattern) {
	for _, p := range patterns {
		m = append(m, Pattern{p.Views, int(p.Subjects), p.Share})
	}
	return m
}

func UnpackPatterns(m []Pattern, l ppca.Layout) (patterns []ppca.Pattern, err error) {
	if len(m) > ppca.LargestPatterns {
		return nil, fmt.Errorf("%d patterns of present views, want at most %d", len(m), ppca.LargestPatterns)
	}
	for i, p := range m {
		if i > 0 && slices.Compare(m[i-1].Views, p.Views) >= 0 {
			return nil, fmt.Errorf("pattern %d: its views %v do not follow %v", i, p.Views, m[i-1].Views)
		}
		if l.CheckViews(p.Views) != nil || len(p.Views) == 0 {
			return nil, fmt.Errorf("pattern %d: its views are %v of %d", i, p.Views, l.Views())
		}
		// Who has a view has a value of it.
		if p.Subjects < 1 || p.Subjects > ppca.LargestCount ||
			!(p.Share*float64(l.Width(p.Views)) >= 0.999*float64(len(p.Views)) && p.Share <= 1) {
			return nil, fmt.Errorf("pattern %d: %d subjects, %v of their cells observed", i, p.Subjects, p.Share)
		}
		patterns = append(patterns, ppca.Pattern{Views: p.Views, Subjects: float64(p.Subjects), Share: p.Share})
	}
	if len(patterns) == 0 {
		return nil, fmt.Errorf("no pattern of present views")
	}
	return patterns, nil
}

// Block is a [ppca.Block] as it travels: its scatter matrix, or factors of it and what they
// leave of its diagonal.
type Block struct {
	Runs    [][2]int    `cbor:"runs"`
	N       float64     `cbor:"n"`
	Mean    wire.Vector `cbor:"mean"`
	Scatter wire.Vector `cbor:"scatter"`          // p(p+1)/2: upper triangle by rows
	Factor  wire.Matrix `cbor:"factor"`           // r × p
	Diag    wire.Vector `cbor:"diag"`             // p, or none
	Filled  wire.Vector `cbor:"filled,omitempty"` // p, or none
}

func PackBlock(b *ppca.Block) Block {
	p := len(b.Features)
	m := Block{Runs: runsOf(b.Features), N: b.N, Mean: b.Mean, Factor: wire.Matrix{Rows: len(b.Factor) / p, Cols: p,
		Data: b.Factor}, Diag: b.Diag, Filled: b.Filled}
	if b.Scatter != nil {
		for i := range p {
			m.Scatter = append(m.Scatter, b.Scatter[i*p+i:(i+1)*p]...)
		}
	}
	return m
}

// Unpack is the inverse of PackBlock. What it returns is what subjects can have.
func (m *Block) Unpack(l ppca.Layout) (*ppca.Block, error) {
	features, err := FeaturesOf(m.Runs, l)
	if err != nil {
		return nil, err
	}
	p := len(features)
	b := &ppca.Block{Features: features, N: m.N, Mean: m.Mean, Factor: m.Factor.Data, Diag: m.Diag}
	if len(m.Filled) > 0 {
		b.Filled = m.Filled
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

// FeaturesOf is the inverse of Runs; it refuses ranges that are not ascending
// and inside the layout.
func FeaturesOf(runs [][2]int, l ppca.Layout) (list []int, err error) {
	last, d := -1, l.Features()
	for _, r := range runs {
		if r[0] <= last || r[1] <= r[0] || r[1] > d {
			return nil, fmt.Errorf("features %d to %d do not follow %d, or are not among %d", r[0], r[1], last, d)
		}
		last = r[1]
		for j := r[0]; j < r[1]; j++ {
			list = append(list, j)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no features")
	}
	return list, nil
}

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
		const what = "variance of means"
		return cmp.Or(ppca.Numbers(what, d, 0, v), ppca.Within(what, v, ppca.LargestValue*ppca.LargestValue))
	}
	if err := errors.Join(variances(m.Variance), variances(m.NewSite)); err != nil {
		return err
	}
	return method.Kept(m.Sites, sites, "means", func(o *Offset) error {
		if o.Factor.Cols != d {
			return fmt.Errorf("directions of %d features, where there are %d", o.Factor.Cols, d)
		}
		return errors.Join(o.CheckMean(l), variances(o.Diag), ppca.Within("directions of means", o.Factor.Data,
			ppca.LargestValue))
	})
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
