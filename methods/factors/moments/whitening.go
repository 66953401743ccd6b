package moments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"

	"gonum.org/v1/gonum/floats"
)

// Whitening says how the subjects of one pattern of views enter a sum of moments.
// With u the subject in parts of the ranges, h the scale of its views and c the
// centre,
//
//	y = Σ squeezeᵢ aᵢ aᵢᵀ z + (z − Σ aᵢ aᵢᵀ z),   z = h ∘ (u − c),
//	t = (√(1−b²−s²) y / max(|y|, bound), b, s min(1, |z|²/r²)),   |t| ≤ 1.
//
// It is the same at all sites, and follows from noised sums of all of them alone.
type Whitening struct {
	Views     []int       `cbor:"views" json:"views"` // of the pattern
	Bound     float64     `cbor:"bound" json:"bound"`
	Constant  float64     `cbor:"constant" json:"constant"`           // b, in (0, 1)
	Scale     wire.Vector `cbor:"scale" json:"scale"`                 // h, per feature of the pattern
	Centre    wire.Vector `cbor:"centre" json:"centre"`               // c
	Axes      wire.Vector `cbor:"axes" json:"axes,omitempty"`         // k × p by rows, orthonormal
	Shrinkage wire.Vector `cbor:"squeeze" json:"squeeze,omitempty"`   // k, in (0, 1]
	Strength  wire.Vector `cbor:"strength" json:"strength,omitempty"` // k: variance along an axis, in that of the rest
}

// Check says what is wrong with a whitening that came from elsewhere.
func (n *Whitening) Check(l ppca.Layout) error {
	if err := l.CheckViews(n.Views); err != nil {
		return fmt.Errorf("whitening: %w", err)
	}
	p, k := l.Width(n.Views), len(n.Shrinkage)
	if p == 0 || k > p {
		return fmt.Errorf("whitening: %d axes of %d features", k, p)
	}
	// What is made of noised sums is far within these bounds, and nothing within them
	// overflows.
	if err := cmp.Or(ppca.Between("scale", p, 1e-3, 1e6, n.Scale), ppca.Between("centre", p, -0.5, 0.5, n.Centre),
		ppca.Between("axes", k*p, -1-1e-6, 1+1e-6, n.Axes), ppca.Between("squeeze", k, 1e-9, 1, n.Shrinkage),
		ppca.Between("strength", k, 1e-9, 1e18, n.Strength), ppca.Between("bound", 1, 1e-9, 1e12, []float64{n.Bound}),
		ppca.Between("constant", 1, 1e-3, 0.99, []float64{n.Constant})); err != nil {
		return fmt.Errorf("whitening: %w", err)
	}
	for i := range k {
		for j := range i + 1 {
			d, want := floats.Dot(n.Axes[i*p:][:p], n.Axes[j*p:][:p]), map[bool]float64{true: 1}[i == j]
			if math.Abs(d-want) > 1e-6 {
				return fmt.Errorf("whitening: axes %d and %d are not orthonormal", i, j)
			}
		}
	}
	return nil
}

// Tuning of the sums. Clipping near the root mean square norm loses little of
// what a row says of directions, and noise goes with the square of the bound.
// Of many features noise hides more, and a tighter bound is worth what it distorts.
const (
	narrow         = 64  // features
	narrowClip     = 1.0 // bound over the root mean square norm
	wideClip       = 0.8
	coarseConstant = 0.3
	sizeWeight     = 0.25 // s
	usualSpread    = 0.12 // prior mean of e_k: standard deviation .17 of the range
	usualDoubt     = 0.06 // its prior standard deviation
)

// Overviewed is a noised overview of a site, or the sum of those of some with the same patterns.
type Overviewed struct {
	Patterns [][]int
	Sums     []float64
	SD       float64
}

// Counts returns the numbers of subjects per pattern, and the variance of the noise in each.
func (o *Overviewed) Counts() (n []float64, variance float64) {
	for _, x := range o.Sums[:len(o.Patterns)] {
		n = append(n, x/overviewHalf)
	}
	return n, o.SD * o.SD / (overviewHalf * overviewHalf)
}

// Whitenings turns noised overviews into the whitenings of the coarse sum, one for each pattern that
// any of them has. Views are scaled by the spread that all of them tell together.
func Whitenings(l ppca.Layout, all []Overviewed) ([]Whitening, error) {
	views := l.Views()
	// Of each view: subjects, the sum of e_k over them, and the variances of their noise.
	with, spread, withVar, spreadVar := make([]float64, views), make([]float64, views), make([]float64, views),
		make([]float64, views)
	var patterns [][]int
	for i := range all {
		o := &all[i]
		if len(o.Sums) != len(o.Patterns)+views || !(o.SD > 0) {
			return nil, fmt.Errorf("overview has %d entries, want %d, and noise %v", len(o.Sums),
				len(o.Patterns)+views, o.SD)
		}
		if err := ppca.Finite("overview", append(slices.Clone(o.Sums), o.SD)); err != nil {
			return nil, err
		}
		counts, noise := o.Counts()
		seen := make([]bool, views)
		for at, pattern := range o.Patterns {
			if !slices.ContainsFunc(patterns, func(p []int) bool { return slices.Equal(p, pattern) }) {
				patterns = append(patterns, pattern)
			}
			for _, k := range pattern {
				seen[k] = true
				with[k] += counts[at]
			}
		}
		for k, has := range seen {
			if has {
				withVar[k] += noise
				spread[k] += o.Sums[len(o.Patterns)+k]
				spreadVar[k] += o.SD * o.SD
			}
		}
	}
	scale := make([]float64, views)
	for k := range scale {
		root := math.Sqrt(float64(views)) / overviewHalf / max(with[k], math.Sqrt(withVar[k]))
		e, doubt := spread[k]*root, math.Sqrt(spreadVar[k])*root
		w := usualDoubt * usualDoubt / (usualDoubt*usualDoubt + doubt*doubt)
		e = min(1, max(usualSpread+w*(e-usualSpread), 1e-6, 0.2*(1-w)*usualSpread))
		scale[k] = 2 / math.Sqrt(e)
	}
	out := make([]Whitening, len(patterns))
	for i, pattern := range patterns {
		out[i] = Whitening{Views: pattern, Constant: coarseConstant}
		for _, k := range pattern {
			for range l.Dims[k] {
				out[i].Scale = append(out[i].Scale, scale[k])
			}
		}
		out[i].Centre = make([]float64, len(out[i].Scale))
		out[i].Bound = clip(len(out[i].Scale)) * math.Sqrt(float64(len(out[i].Scale)))
	}
	return out, nil
}

// Own returns those of the whitenings that the site's patterns need, in their order.
func (s *Statistics) Own(whitenings []Whitening) ([]Whitening, error) {
	var own []Whitening
	for _, pattern := range s.patterns {
		at := slices.IndexFunc(whitenings, func(n Whitening) bool { return slices.Equal(n.Views, pattern) })
		if at < 0 {
			return nil, fmt.Errorf("there is no whitening of the pattern of views %v", pattern)
		}
		own = append(own, whitenings[at])
	}
	return own, nil
}

// Contribution returns what writes a subject's t through the whitening of its pattern into
// v, which is zero and as long as Sums says, and returns the block, or −1
// if the subject contributes nothing. It is not safe for concurrent use.
func (s *Statistics) Contribution(whitenings []Whitening) func(row [][]float64, v []float64) int {
	var present []int
	mask := make([]bool, s.layout.Features())
	return func(row [][]float64, v []float64) int {
		present = s.views(row, present)
		at := s.pattern(present)
		if at < 0 {
			return -1
		}
		n := &whitenings[at]
		p := len(n.Scale)
		y := v[:p]
		i := 0
		for _, k := range n.Views {
			lo, _ := s.layout.View(k)
			seen := 0
			for c, x := range row[k] {
				if mask[i+c] = !math.IsNaN(x); mask[i+c] {
					seen++
					y[i+c] = n.Scale[i+c] * (s.unit(lo+c, x) - n.Centre[i+c])
				}
			}
			if len(n.Shrinkage) == 0 && seen < len(row[k]) {
				out := math.Sqrt(float64(len(row[k])) / float64(seen))
				for c := range row[k] {
					y[i+c] *= out
				}
			}
			i += len(row[k])
		}
		if slices.Contains(mask[:p], false) {
			n.complete(y, mask[:p])
		}
		v[p+1] = sizeWeight * min(1, floats.Dot(y, y)/n.reach())
		n.focus(y)
		floats.Scale(n.room()/max(n.Bound, math.Sqrt(floats.Dot(y, y))), y)
		v[p] = n.Constant
		return at
	}
}

// focus squeezes z along the axes.
func (n *Whitening) focus(z []float64) {
	p := len(z)
	for i, q := range n.Shrinkage {
		axis := n.Axes[i*p:][:p]
		floats.AddScaled(z, (q-1)*floats.Dot(axis, z), axis)
	}
}

// complete predicts the values that were not observed from the others by the
// axes: z = Σ aᵢ fᵢ + noise, Var fᵢ = strengthᵢ.
func (n *Whitening) complete(z []float64, observed []bool) {
	k, p := len(n.Shrinkage), len(z)
	if k == 0 {
		return
	}
	gram, f := make([]float64, k*k), make([]float64, k)
	for i := range k {
		a := n.Axes[i*p:][:p]
		gram[i*k+i] = 1 / n.Strength[i]
		for j, seen := range observed {
			if !seen {
				continue
			}
			f[i] += a[j] * z[j]
			for c := range i + 1 {
				gram[i*k+c] += a[j] * n.Axes[c*p+j]
			}
		}
	}
	if _, ok := linalg.Cholesky(gram, k, k); !ok {
		return
	}
	linalg.CholSolve(gram, k, k, f)
	for j, seen := range observed {
		if seen {
			continue
		}
		z[j] = 0
		for i := range k {
			z[j] += f[i] * n.Axes[i*p+j]
		}
	}
}

// clip is the bound of p features, over the root mean square norm.
func clip(p int) float64 {
	if p <= narrow {
		return narrowClip
	}
	return wideClip
}
