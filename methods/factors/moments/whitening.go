package moments

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// Whitening says how the subjects of one pattern of views enter a sum of moments.
// With u the subject in parts of the ranges, h the scale of its views and c the
// centre,
//
//	y = Σ squeezeᵢ aᵢ aᵢᵀ z + (z − Σ aᵢ aᵢᵀ z),   z = h ∘ (u − c),
//	t = (√(1−b²−s²) y / max(|y|, bound), b, s min(1, |z|²/r²)),   |t| ≤ 1.
//
// It holds only what noised sums told, and so may be sent.
type Whitening struct {
	Views     []int     // of the pattern
	Count     float64   // its subjects, by the overview
	CountVar  float64   // variance of the noise in it
	Scale     []float64 // h, per feature of the pattern
	Centre    []float64 // c
	Axes      []float64 // k × p by rows, orthonormal
	Shrinkage []float64 // k, in (0, 1]
	Strength  []float64 // k: variance along an axis over that of the rest, before squeezing
	Bound     float64
	Constant  float64 // b, in (0, 1)
}

// Check says what is wrong with a lens that came from elsewhere.
func (n *Whitening) Check(l ppca.Layout) error {
	f, err := l.FeaturesOf(n.Views)
	if err != nil {
		return fmt.Errorf("lens: %w", err)
	}
	p, k := len(f), len(n.Shrinkage)
	if p == 0 || len(n.Scale) != p || len(n.Centre) != p || len(n.Axes) != k*p || len(n.Strength) != k || k > p {
		return fmt.Errorf("lens: %d scales, %d centres, %d entries of axes, %d squeezes and %d strengths for %d features",
			len(n.Scale), len(n.Centre), len(n.Axes), k, len(n.Strength), p)
	}
	// What sites make of noised sums is far within these bounds, and nothing
	// within them overflows.
	for _, c := range []struct {
		what      string
		x         []float64
		low, high float64
	}{
		{"scale", n.Scale, 1e-3, 1e6}, {"centre", n.Centre, -0.5, 0.5}, {"axis", n.Axes, -1 - 1e-6, 1 + 1e-6},
		{"squeeze", n.Shrinkage, 1e-9, 1}, {"strength", n.Strength, 1e-9, 1e18}, {"bound", []float64{n.Bound}, 1e-9, 1e12},
		{"constant", []float64{n.Constant}, 1e-3, 0.99}, {"count", []float64{n.Count}, -1e15, 1e15},
		{"variance of the count", []float64{n.CountVar}, 1e-30, 1e30},
	} {
		for _, x := range c.x {
			if !(x >= c.low && x <= c.high) {
				return fmt.Errorf("lens: %s %v is not from %v to %v", c.what, x, c.low, c.high)
			}
		}
	}
	for i := range k {
		for j := range i + 1 {
			if d := dot(n.Axes[i*p:][:p], n.Axes[j*p:][:p]); math.Abs(d-kronecker(i, j)) > 1e-6 {
				return fmt.Errorf("lens: axes %d and %d are not orthonormal", i, j)
			}
		}
	}
	return nil
}

func kronecker(i, j int) float64 {
	if i == j {
		return 1
	}
	return 0
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

// Tuning of the sums. Clipping near the root mean square norm loses little of
// what a row says of directions, and noise goes with the square of the bound.
// Of many features noise hides more, and a tighter bound is worth what it distorts.
const (
	narrow         = 64  // features
	narrowClip     = 1.0 // bound over the root mean square norm
	wideClip       = 0.8
	coarseConstant = 0.3
	sizeWeight     = 0.14 // s
	usualSpread    = 0.12 // prior mean of e_k: standard deviation .17 of the range
	usualDoubt     = 0.06 // its prior standard deviation
)

// Lenses turns the noised overview into the lenses of the coarse sum, one for
// each pattern.
func (s *Statistics) Lenses(overview []float64, sd float64) ([]Whitening, error) {
	p, views := len(s.patterns), s.layout.Views()
	if len(overview) != p+views || !(sd > 0) {
		return nil, fmt.Errorf("overview has %d entries, want %d, and noise %v", len(overview), p+views, sd)
	}
	if err := ppca.Finite("overview", append(slices.Clone(overview), sd)); err != nil {
		return nil, err
	}
	sdCount := sd / overviewHalf
	count := make([]float64, p)
	for i := range count {
		count[i] = overview[i] / overviewHalf
	}
	with := make([]float64, views)
	for i, c := range count {
		for _, k := range s.patterns[i] {
			with[k] += c
		}
	}
	scale := make([]float64, views)
	for k := range scale {
		n := max(with[k], sdCount)
		root := math.Sqrt(float64(views)) / overviewHalf / n
		e, doubt := overview[p+k]*root, sd*root
		w := usualDoubt * usualDoubt / (usualDoubt*usualDoubt + doubt*doubt)
		e = min(1, max(usualSpread+w*(e-usualSpread), 1e-6, 0.2*(1-w)*usualSpread))
		scale[k] = 2 / math.Sqrt(e)
	}
	out := make([]Whitening, p)
	for i, pattern := range s.patterns {
		out[i] = Whitening{Views: pattern, Count: count[i], CountVar: sdCount * sdCount, Constant: coarseConstant}
		for _, k := range pattern {
			for range s.layout.Dims[k] {
				out[i].Scale = append(out[i].Scale, scale[k])
			}
		}
		out[i].Centre = make([]float64, len(out[i].Scale))
		out[i].Bound = clip(len(out[i].Scale)) * math.Sqrt(float64(len(out[i].Scale)))
	}
	return out, nil
}

// Contribution returns what writes a subject's t through the lens of its pattern into
// v, which is zero and as long as Sums says, and returns the block, or −1
// if the subject contributes nothing. It is not safe for concurrent use.
func (s *Statistics) Contribution(lenses []Whitening) func(row [][]float64, v []float64) int {
	var present []int
	mask := make([]bool, s.layout.Features())
	return func(row [][]float64, v []float64) int {
		present = s.views(row, present)
		at := s.pattern(present)
		if at < 0 {
			return -1
		}
		n := &lenses[at]
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
		v[p+1] = sizeWeight * min(1, dot(y, y)/n.reach())
		n.focus(y)
		a := n.room() / max(n.Bound, math.Sqrt(dot(y, y)))
		for j := range y {
			y[j] *= a
		}
		v[p] = n.Constant
		return at
	}
}

// focus squeezes z along the axes.
func (n *Whitening) focus(z []float64) {
	p := len(z)
	for i, q := range n.Shrinkage {
		axis := n.Axes[i*p:][:p]
		c := (q - 1) * dot(axis, z)
		for j, x := range axis {
			z[j] += c * x
		}
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

// Like demands the numbers of another lens, but for rounding and the directions.
func (n *Whitening) Like(want *Whitening) error {
	const rounding = 1e-6
	if !slices.Equal(n.Views, want.Views) {
		return fmt.Errorf("views %v, and the sums lead to %v", n.Views, want.Views)
	}
	for _, c := range []struct {
		what    string
		x, want []float64
	}{
		{"scale", n.Scale, want.Scale}, {"centre", n.Centre, want.Centre}, {"squeeze", n.Shrinkage, want.Shrinkage}, {"strength", n.Strength, want.Strength},
		{"own numbers", []float64{n.Count, n.CountVar, n.Bound, n.Constant}, []float64{want.Count, want.CountVar, want.Bound, want.Constant}},
	} {
		if len(c.x) != len(c.want) {
			return fmt.Errorf("%s: %d numbers, and the sums lead to %d", c.what, len(c.x), len(c.want))
		}
		for i, x := range c.x {
			if !(math.Abs(x-c.want[i]) <= rounding*(1e-3+math.Abs(c.want[i]))) {
				return fmt.Errorf("%s: %v, and the sums lead to %v", c.what, x, c.want[i])
			}
		}
	}
	return nil
}
