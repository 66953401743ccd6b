package ppca

import (
	"fmt"
	"slices"
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

// eachNoise is the layout with a noise variance for each feature.
func (l Layout) eachNoise() Layout {
	l.Noise = NoisePerFeature
	return l
}

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

// FeaturesOf returns the features of the given views, ascending.
func (l Layout) FeaturesOf(views []int) ([]int, error) {
	if err := l.CheckViews(views); err != nil {
		return nil, err
	}
	f := make([]int, 0, l.Width(views))
	for _, k := range views {
		lo, hi := l.View(k)
		for j := lo; j < hi; j++ {
			f = append(f, j)
		}
	}
	return f, nil
}

// CheckViews says what is wrong with views that came from elsewhere: they ascend, and the
// layout has them.
func (l Layout) CheckViews(views []int) error {
	last := -1
	for _, k := range views {
		if k <= last {
			return fmt.Errorf("views %v are not in ascending order", views)
		}
		if k >= len(l.Dims) {
			return fmt.Errorf("view %d of %d", k, len(l.Dims))
		}
		last = k
	}
	return nil
}

// ViewsOf returns the views with at least one of the features, ascending.
func (l Layout) ViewsOf(features []int) []int {
	var views []int
	k, end := -1, 0 // the view of the feature before, and the first feature after it
	for _, j := range features {
		if j < end {
			continue
		}
		for j >= end {
			k++
			end += l.Dims[k]
		}
		views = append(views, k)
	}
	return views
}

// CheckFeatures says what is wrong with a list of features.
func (l Layout) CheckFeatures(features []int) error {
	d := l.Features()
	if len(features) == 0 {
		return fmt.Errorf("no features")
	}
	for i, j := range features {
		if j < 0 || j >= d {
			return fmt.Errorf("feature %d of %d", j, d)
		}
		if i > 0 && features[i-1] >= j {
			return fmt.Errorf("features are not in ascending order at position %d", i)
		}
	}
	return nil
}

// Width returns the number of features of some views.
func (l Layout) Width(views []int) int {
	d := 0
	for _, k := range views {
		d += l.Dims[k]
	}
	return d
}
