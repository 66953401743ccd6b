// Package ppca is the numerics of multi-view probabilistic principal component
// analysis over sites: no privacy, nothing of how a study goes. [Frame] is what a plan says
// of a model, and [Read] makes one pass over a site's rows. Use [Fit] on the blocks of an
// [Accumulator] for a model, a [Predictor] for what it says of single subjects, and
// [Canonical] before anybody looks at its factors.
//
// All results are functions of the arguments alone, to the last bit on one
// architecture. Values that come from other sites are checked where they enter (Check,
// [Block.Take], [Between], [Counts]) and give errors, never panics.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q
// factors x ~ N(0, I) and one noise variance per view or per feature: [Params].
//
// # From rows to statistics
//
// An [Accumulator] reads subjects one by one and yields one [Block] of sufficient
// statistics per set of observed features. That one mechanism covers complete sites,
// sites and subjects that lack views, and single missing cells: the E step is exact for
// all of them, and its cost does not depend on the number of subjects. What the
// coordinator has of sites are blocks too: each site makes those that it may send by
// [Describe], set of views by set of views, and the coordinator fits one model to what all
// sites say, added up by [Merge], by [FitBest].
//
// # Other ways to fit
//
// Other packages put iterations of their own together from an [EStep] on each block of a [Model].
// [Varimax] turns factors towards simple structure.
package ppca

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// Noise says which features share one noise variance.
type Noise uint8

const (
	// NoisePerView is the published model: one variance σ² per view.
	NoisePerView Noise = iota
	// NoisePerFeature gives each feature a variance of its own (factor
	// analysis): right where features of a view were scaled one by one.
	NoisePerFeature
)

// Layout says how the features of all views are numbered, view after view,
// and which of them share a noise variance.
type Layout struct {
	Dims  []int // features of each view, each at least 1
	Noise Noise
}

// MaxFeatures bounds what a layout from elsewhere can make this machine allocate.
const MaxFeatures = 1 << 16

// NewLayout checks the dimensions.
func NewLayout(dims []int, noise Noise) (Layout, error) {
	l := Layout{Dims: slices.Clone(dims), Noise: noise}
	return l, l.Check()
}

// Check says what is wrong with a layout that came from elsewhere.
func (l Layout) Check() error {
	if len(l.Dims) == 0 {
		return fmt.Errorf("layout has no views")
	}
	if l.Noise > NoisePerFeature {
		return fmt.Errorf("layout has unknown kind of noise %d", l.Noise)
	}
	total := 0
	for k, d := range l.Dims {
		if d < 1 {
			return fmt.Errorf("view %d has %d features, needs at least one", k, d)
		}
		if total += min(d, MaxFeatures+1); total > MaxFeatures {
			return fmt.Errorf("layout has more than %d features", MaxFeatures)
		}
	}
	return nil
}

// Views returns the number of views.
func (l Layout) Views() int { return len(l.Dims) }

// Features returns the number of features of all views, d.
func (l Layout) Features() int {
	d := 0
	for _, n := range l.Dims {
		d += n
	}
	return d
}

// View returns the half-open range of the features of view k.
func (l Layout) View(k int) (lo, hi int) {
	for _, n := range l.Dims[:k] {
		lo += n
	}
	return lo, lo + l.Dims[k]
}

// ViewOf returns, for each feature, the view it belongs to.
func (l Layout) ViewOf() []int {
	of := make([]int, 0, l.Features())
	for k, n := range l.Dims {
		for range n {
			of = append(of, k)
		}
	}
	return of
}

// Groups returns the number of noise variances.
func (l Layout) Groups() int {
	if l.Noise == NoisePerFeature {
		return l.Features()
	}
	return l.Views()
}

// GroupOf returns, for each feature, the index of its noise variance.
func (l Layout) GroupOf() []int {
	if l.Noise == NoisePerFeature {
		return l.AllFeatures()
	}
	return l.ViewOf()
}

// AllFeatures returns 0, 1, … d − 1.
func (l Layout) AllFeatures() []int {
	all := make([]int, l.Features())
	for j := range all {
		all[j] = j
	}
	return all
}

// FeaturesOf returns the features of views, in their order.
func (l Layout) FeaturesOf(views []int) []int {
	f := make([]int, 0, l.Width(views))
	for _, k := range views {
		lo, hi := l.View(k)
		for j := lo; j < hi; j++ {
			f = append(f, j)
		}
	}
	return f
}

// CheckViews says what is wrong with views that came from elsewhere: they ascend, and the
// layout has them.
func (l Layout) CheckViews(views []int) error { return ascending("view", views, len(l.Dims)) }

// ascending says which of some numbers does not follow the one before, or is not from 0 to below most.
func ascending(what string, list []int, most int) error {
	last := -1
	for _, x := range list {
		if x <= last || x >= most {
			return fmt.Errorf("%s %d of %d, after %d", what, x, most, last)
		}
		last = x
	}
	return nil
}

// ViewsOf returns the views with at least one of the features, ascending.
func (l Layout) ViewsOf(features []int) []int {
	var views []int
	of := l.ViewOf()
	for _, j := range features {
		if n := len(views); n == 0 || views[n-1] != of[j] {
			views = append(views, of[j])
		}
	}
	return views
}

// CheckFeatures says what is wrong with a list of features.
func (l Layout) CheckFeatures(features []int) error {
	if len(features) == 0 {
		return fmt.Errorf("no features")
	}
	return ascending("feature", features, l.Features())
}

// Width returns the number of features of some views.
func (l Layout) Width(views []int) int {
	d := 0
	for _, k := range views {
		d += l.Dims[k]
	}
	return d
}

// What anybody sends is held to limits that no measured data and no honest
// program come near, so narrow that nothing computed within them overflows or
// falls below the smallest number: then whatever was taken in fails nothing later.
const (
	// Largest bounds every number that is taken in: the product of four has a
	// finite sum over any number of features and subjects.
	Largest = 1e75
	// LargestValue bounds a value, and everything in a site's answer that is in
	// the units of values; variances are bounded by its square. It leaves what is
	// made of the answers of many sites, such as the spread between them, far
	// within Largest. In grams, it is the mass of fifty suns.
	LargestValue = 1e35
	// Least bounds every variance from below: with Largest, no quotient overflows.
	Least = 1e-100
	// LargestCount bounds the subjects of a site, as the noised sums do.
	LargestCount = 1 << 31
	// LargestPatterns bounds how many sets of views the subjects of a site have.
	LargestPatterns = 1 << 16
)

// BeyondMeasure says that no measurement is as large.
func BeyondMeasure(x float64) bool { return math.Abs(x) > LargestValue }

// Between says which of some vectors does not have n numbers from low to high.
func Between(what string, n int, low, high float64, all ...[]float64) error {
	for _, x := range all {
		if len(x) != n {
			return fmt.Errorf("%s: %d numbers, where there are %d", what, len(x), n)
		}
		for i, v := range x {
			if !(v >= low && v <= high) {
				return fmt.Errorf("%s: %v is not from %g to %g (entry %d)", what, v, low, high, i)
			}
		}
	}
	return nil
}

// Numbers says which of some vectors does not have n numbers of sensible size and of at least low.
func Numbers(what string, n int, low float64, all ...[]float64) error {
	return Between(what, n, low, Largest, all...)
}

// Within says which entry is not a number of at most the limit in size.
func Within(what string, x []float64, limit float64) error {
	return Between(what, len(x), -limit, limit, x)
}

// Finite says which entry is not a number of sensible size.
func Finite(what string, x []float64) error { return Within(what, x, Largest) }

// Counts says which entry is not a count of at most the limit.
func Counts(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(v >= 0 && v <= limit) || v != math.Trunc(v) {
			return fmt.Errorf("%s: entry %d is %v, want a whole number from 0 to %g", what, i, v, limit)
		}
	}
	return nil
}

// CheckFactors checks the law of the factors at a site.
func CheckFactors(q int, nu, xi []float64) error {
	const what = "covariance of the factors"
	if err := cmp.Or(Numbers("mean of the factors", q, -Largest, nu), Numbers(what, q*q, -Largest, xi)); err != nil {
		return err
	}
	for i := range q {
		for j := range i {
			if xi[i*q+j] != xi[j*q+i] {
				return fmt.Errorf("%s is not symmetric", what)
			}
		}
	}
	if _, ok := linalg.Cholesky(slices.Clone(xi), q, q); !ok {
		return fmt.Errorf("%s is not positive definite", what)
	}
	return nil
}
