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
	Observed  wire.Vector `cbor:"observed" json:"observed"`           // per feature the share of subjects who have it
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
		ppca.Between("strength", k, 1e-9, 1e18, n.Strength),
		ppca.Between("observed", p, leastObserved, 1, n.Observed),
		ppca.Between("bound", 1, 1e-9, 1e12, []float64{n.Bound}),
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
	meanSpread     = 0.25 // how far means may lie from the middle of their ranges
	usualMissing   = 0.15 // how large shares of missing values are, and how different
	careful        = 2.5  // of its posterior standard deviation it is at least
	surely         = 3    // standard deviations that shares are no noise
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
		n = append(n, x/overviewCount)
	}
	return n, o.SD * o.SD / (overviewCount * overviewCount)
}

// Whitenings turns noised overviews into the whitenings of the coarse sum, one for each pattern that
// any of them has. Views are scaled by the spread that all of them tell together, about the means.
func Whitenings(l ppca.Layout, all []Overviewed) ([]Whitening, error) {
	views, d := l.Views(), l.Features()
	// Of each view subjects and the sum of e_k over them, and variances of their noise; of each feature its sum, and
	// how many lack it.
	with, spread, withVar, variance := make([]float64, views), make([]float64, views), make([]float64, views),
		make([]float64, views)
	mean, lack := make([]float64, d), make([]float64, d)
	var patterns [][]int
	for i := range all {
		o := &all[i]
		if want := overviewLen(l, len(o.Patterns)); len(o.Sums) != want || !(o.SD > 0) {
			return nil, fmt.Errorf("overview has %d entries, want %d, and noise %v", len(o.Sums), want, o.SD)
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
		_, spreads, values, missing := overviewParts(l, o.Sums)
		for k, has := range seen {
			if has {
				withVar[k] += noise
				variance[k] += o.SD * o.SD
				spread[k] += spreads[k]
				lo, hi := l.View(k)
				floats.Add(mean[lo:hi], values[lo:hi])
				floats.Add(lack[lo:hi], missing[lo:hi])
			}
		}
	}
	scale, root := make([]float64, views), math.Sqrt(float64(d))
	for k := range scale {
		n := max(with[k], math.Sqrt(withVar[k]))
		lo, hi := l.View(k)
		missingShares(lack[lo:hi], root/overviewMissing/n, variance[k])
		more, doubt := centres(mean[lo:hi], lack[lo:hi], root/(2*overviewValue)/n, variance[k])
		unit := math.Sqrt(float64(views)) / overviewSpread / n
		there := 1 - floats.Sum(lack[lo:hi])/float64(hi-lo)
		e := (spread[k]*unit + 4*more) / there
		doubt = (unit*unit*variance[k] + 16*doubt) / (there * there)
		w := usualDoubt * usualDoubt / (usualDoubt*usualDoubt + doubt)
		// One that is too small clips everybody.
		e = min(1, max(usualSpread+w*(e-usualSpread), careful*math.Sqrt(w*doubt), 1e-6))
		scale[k] = 2 / math.Sqrt(e)
	}
	out := make([]Whitening, len(patterns))
	for i, pattern := range patterns {
		n := &out[i]
		n.Views, n.Constant = pattern, coarseConstant
		for _, k := range pattern {
			for j, hi := l.View(k); j < hi; j++ {
				n.Scale, n.Centre, n.Observed = append(n.Scale, scale[k]), append(n.Centre, mean[j]),
					append(n.Observed, max(1-lack[j], leastObserved))
			}
		}
		n.Bound = clip(len(n.Scale)) * math.Sqrt(float64(len(n.Scale)))
	}
	return out, nil
}

// centres makes means of the noised sums of a view's features, unit being what one is divided by the subjects, and
// draws them to the middle of the ranges by as much as they may be noise. It returns by how much more the mean square
// of values about them is than about the middle, 0 where one is missing, as a rule below 0, and the variance that noise
// leaves of that.
func centres(sum, lack []float64, unit, variance float64) (more, doubt float64) {
	p, square, noise := float64(len(sum)), 0.0, 0.0
	for j := range sum {
		there := 1 - lack[j]
		sum[j] *= unit / there
		square, noise = square+there*sum[j]*sum[j]/p, noise+unit*unit/there*variance/p
	}
	excess, least := max(0, square-noise), max(0, square-(1+math.Sqrt(2/p))*noise)
	keep := min(least/max(square, 1e-300), meanSpread*meanSpread/(meanSpread*meanSpread+noise))
	for j := range sum {
		sum[j] = min(max(keep*sum[j], -0.5), 0.5)
	}
	return keep*keep*noise - keep*(2-keep)*excess, (4*square*noise + 2*noise*noise) / p
}

// A share of subjects who have a feature is a divisor. It is at least leastObserved, and ten standard deviations of its
// noise up to HardlyObserved, below which reports name the feature.
const leastObserved, HardlyObserved = 0.05, 0.2

// missingShares makes shares of the noised sums of a view's features, and draws them to their mean, and that to 0, by
// as much as they are noise. An error of one does little harm, as each sum lies about what the sum before told.
func missingShares(share []float64, unit, variance float64) {
	floats.Scale(unit, share)
	variance *= unit * unit
	p, excess := float64(len(share)), 0.0
	mean := floats.Sum(share) / p
	for _, x := range share {
		excess += ((x-mean)*(x-mean) - variance) / p
	}
	prior, centre := usualMissing*usualMissing, 0.0
	if mean > surely*math.Sqrt(variance/p) {
		centre = mean * prior / (prior + variance/p)
	}
	prior = min(max(excess, 0), prior)
	keep := prior / (prior + variance)
	most := 1 - min(HardlyObserved, max(leastObserved, 10*math.Sqrt(variance)))
	for j, x := range share {
		share[j] = max(0, min(centre+keep*(x-mean), most))
	}
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
			for c, x := range row[k] {
				if mask[i+c] = !math.IsNaN(x); mask[i+c] {
					y[i+c] = n.Scale[i+c] * (s.unit(lo+c, x) - n.Centre[i+c])
				}
			}
			i += len(row[k])
		}
		n.enter(v, mask[:p])
		return at
	}
}

// enter turns z, 0 where nothing was observed, into t.
func (n *Whitening) enter(v []float64, observed []bool) {
	p := len(observed)
	y := v[:p]
	if slices.Contains(observed, false) {
		n.complete(y, observed)
	}
	v[p+1] = sizeWeight * min(1, floats.Dot(y, y)/n.reach())
	n.squeeze(y, 1)
	floats.Scale(n.room()/max(n.Bound, math.Sqrt(floats.Dot(y, y))), y)
	v[p] = n.Constant
}

// squeeze squeezes z along the axes so many times, or undoes it.
func (n *Whitening) squeeze(z []float64, times float64) {
	p := len(z)
	for i, q := range n.Shrinkage {
		axis := n.Axes[i*p:][:p]
		floats.AddScaled(z, (math.Pow(q, times)-1)*floats.Dot(axis, z), axis)
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
