package ppca

import (
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
	m := PackedParams{Runs: RunsOf(p.Features), W: wire.Matrix{Rows: len(p.Features), Cols: p.Rank}}
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
	described, err := FeaturesOf(m.Runs, l)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	d := l.Features()
	p := &Params{Features: described, Rank: m.W.Cols, Mu: make([]float64, d), Noise: make([]float64, l.Groups())}
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

// PackedPattern is how many of a site's subjects have exactly these views.
type PackedPattern struct {
	Views    []int   `cbor:"views"`
	Subjects int     `cbor:"subjects"`
	Share    float64 `cbor:"share"` // of these views' cells that were observed
}

// PackPatterns are the forms of patterns.
func PackPatterns(patterns []Pattern) (m []PackedPattern) {
	for _, p := range patterns {
		m = append(m, PackedPattern{p.Views, int(p.Subjects), p.Share})
	}
	return m
}

// UnpackPatterns is the inverse of [PackPatterns]; it refuses what no site has.
func UnpackPatterns(m []PackedPattern, l Layout) (patterns []Pattern, err error) {
	if len(m) > LargestPatterns {
		return nil, fmt.Errorf("%d patterns of present views, want at most %d", len(m), LargestPatterns)
	}
	for i, p := range m {
		if i > 0 && slices.Compare(m[i-1].Views, p.Views) >= 0 {
			return nil, fmt.Errorf("pattern %d: its views %v do not follow %v", i, p.Views, m[i-1].Views)
		}
		if l.CheckViews(p.Views) != nil || len(p.Views) == 0 {
			return nil, fmt.Errorf("pattern %d: its views are %v of %d", i, p.Views, l.Views())
		}
		// Who has a view has a value of it.
		if p.Subjects < 1 || p.Subjects > LargestCount ||
			!(p.Share*float64(l.Width(p.Views)) >= 0.999*float64(len(p.Views)) && p.Share <= 1) {
			return nil, fmt.Errorf("pattern %d: %d subjects, %v of their cells observed", i, p.Subjects, p.Share)
		}
		patterns = append(patterns, Pattern{Views: p.Views, Subjects: float64(p.Subjects), Share: p.Share})
	}
	if len(patterns) == 0 {
		return nil, fmt.Errorf("no pattern of present views")
	}
	return patterns, nil
}

// RunsOf writes ascending features as half-open ranges.
func RunsOf(features []int) (r [][2]int) {
	for _, j := range features {
		if n := len(r); n > 0 && r[n-1][1] == j {
			r[n-1][1]++
		} else {
			r = append(r, [2]int{j, j + 1})
		}
	}
	return r
}

// FeaturesOf is the inverse of [RunsOf]; it refuses ranges that are not ascending
// and inside the layout.
func FeaturesOf(runs [][2]int, l Layout) (list []int, err error) {
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
