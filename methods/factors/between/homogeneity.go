package between

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

const (
	// level is the probability with which [homogeneity] is wrong about sites whose means are the same.
	level = 0.001
	// unvarying is the variance, relative to the square of the mean or to the total, that
	// rounding leaves where nothing varies.
	unvarying = 1e-24
)

// comparable says whether each view can have offsets. One that a single site has cannot: what the site's
// subjects differ in from others, and the mean of that view, could not be told apart.
func (a *anova) comparable(l ppca.Layout) bool {
	for k := range l.Views() {
		lo, hi := l.View(k)
		if slices.Max(a.rows[lo:hi]) > 0 && !a.testable(lo, hi) {
			return false
		}
	}
	return true
}

// homogeneity returns for each view the p-value of the hypothesis that the means of its
// features are the same at all sites: 1 where no feature of the view could have offsets,
// see [Fit].
//
// It is Dempster's test ("A high dimensional two sample significance test", 1958) for any
// number of sites, with each feature in units of its standard deviation within sites: the
// ratio of the mean squares between and within sites, added over the features, is F
// distributed with (Σ_j f_j) d/Σ_ij r_ij² and N − C degrees of freedom (Box 1954), where f_j
// is the number of sites that have feature j, less one, and r the correlations within sites.
// Features may be more than subjects. The test does not rest on a model: with too few factors,
// or one noise variance for unequal features, a ratio of likelihoods would take what the model
// does not describe for differences between sites. The correlations are those
// within the blocks, as they are estimated; from few subjects their squares are too
// large, and the test is a little too strict.
func (a *anova) homogeneity(l ppca.Layout, sites [][]ppca.Block) []float64 {
	p := make([]float64, l.Views())
	for k := range p {
		lo, hi := l.View(k)
		p[k] = a.test(lo, hi, sites)
	}
	return p
}

// anova is an analysis of variance of each feature, by site.
type anova struct {
	sites, rows, mean []float64
	between, within   []float64 // sums of squares
	blocks            []float64 // the part of within that is within blocks
}

func analyse(l ppca.Layout, sites [][]ppca.Block) *anova {
	vector := func() []float64 { return make([]float64, l.Features()) }
	a := &anova{sites: vector(), rows: vector(), mean: vector(), between: vector(), within: vector(), blocks: vector()}
	squares := vector()
	for _, blocks := range sites {
		for i := range blocks {
			blocks[i].Squares(squares)
			for c, j := range blocks[i].Features {
				a.blocks[j] += squares[c]
			}
		}
		n, mean, within := ppca.Means(l, blocks)
		for j := range n {
			if n[j] > 0 {
				delta, all := mean[j]-a.mean[j], a.rows[j]+n[j]
				a.within[j] += within[j]
				a.between[j] += delta * delta * a.rows[j] * n[j] / all
				a.mean[j] += delta * n[j] / all
				a.rows[j] = all
				a.sites[j]++
			}
		}
	}
	return a
}

// testable says whether any of the features lo to hi may have offsets.
func (a *anova) testable(lo, hi int) bool {
	for j := lo; j < hi; j++ {
		if mayHave(a.sites[j], a.rows[j]) {
			return true
		}
	}
	return false
}

// test returns the p-value for features lo to hi.
func (a *anova) test(lo, hi int, sites [][]ppca.Block) float64 {
	scale := make([]float64, hi-lo) // 1/√ of the sum of squares within blocks; 0 for features left out
	ratio, between, within, features, known := 0.0, 0.0, 0.0, 0.0, true
	for j := lo; j < hi; j++ {
		all := a.within[j] + a.between[j]
		if !mayHave(a.sites[j], a.rows[j]) || !(all > unvarying*a.mean[j]*a.mean[j]*a.rows[j]) {
			continue
		}
		f := a.rows[j] - a.sites[j]
		features++
		between += a.sites[j] - 1
		within += f
		ratio += a.between[j] / (max(a.within[j], unvarying*all) / f)
		if a.blocks[j] > unvarying*all {
			scale[j-lo] = 1 / math.Sqrt(a.blocks[j])
		} else {
			known = false
		}
	}
	if features == 0 {
		return 1
	}
	squares := features * features // the most there can be
	if known {
		squares = min(max(correlation(lo, hi, scale, sites), features), squares)
	}
	f, f1, f2 := ratio/between, between*features/squares, within/features
	return mathext.RegIncBeta(f2/2, f1/2, f2/(f2+f1*f))
}

// correlation returns the sum of the squares of all correlations of features lo to hi, given
// what brings the scatter of all blocks to that of correlations. No matrix of features by
// features is made of factors with few rows.
func correlation(lo, hi int, scale []float64, sites [][]ppca.Block) (squares float64) {
	d, ld := hi-lo, linalg.Stride(hi-lo)
	n, at := 0, 0
	for _, blocks := range sites {
		for i := range blocks {
			n += blocks[i].Rows()
		}
	}
	rows, diag := make([]float64, n*ld), make([]float64, d)
	var dense []float64
	for _, blocks := range sites {
		for i := range blocks {
			b := &blocks[i]
			p := len(b.Features)
			if b.Scatter != nil && dense == nil {
				dense = make([]float64, d*ld)
			}
			for c, j := range b.Features {
				if j < lo || j >= hi {
					continue
				}
				s := scale[j-lo]
				for r := range b.Rows() {
					rows[at+r*ld+j-lo] = s * b.Factor[r*p+c]
				}
				if b.Diag != nil {
					diag[j-lo] += s * s * b.Diag[c]
				}
				for e, i := range b.Features {
					if b.Scatter != nil && i >= lo && i < hi {
						dense[(j-lo)*ld+i-lo] += s * scale[i-lo] * b.Scatter[c*p+e]
					}
				}
			}
			at += b.Rows() * ld
		}
	}
	if dense == nil && n < d {
		for i := range n {
			for k := range i + 1 {
				x := 0.0
				for c, y := range rows[i*ld:][:d] {
					x += y * rows[k*ld+c]
				}
				if squares += x * x; k < i {
					squares += x * x
				}
			}
		}
		for c, x := range diag {
			own := 0.0
			for i := range n {
				own += rows[i*ld+c] * rows[i*ld+c]
			}
			squares += 2*x*own + x*x
		}
		return squares
	}
	if dense == nil {
		dense = make([]float64, d*ld)
	}
	lower := make([]float64, d*ld)
	linalg.MulAdd(lower, rows, 1, ld, rows, d, n, d)
	for i := range d {
		for k := range d {
			x := dense[i*ld+k] + lower[i*ld+k]
			if i == k {
				x += diag[i]
			}
			squares += x * x
		}
	}
	return squares
}
