package ppca

import (
	"fmt"
	"slices"

	"parley/study"
)

// The ways to bring features to common units. All but the last use one
// scale at all sites, which is kept with the model.
const (
	ScaleStandard  = "standard"     // each feature by its pooled mean and standard deviation
	ScaleView      = "view"         // each feature by its pooled mean, each view by one factor
	ScaleMinMax    = "min-max"      // each feature to [0, 1] by its pooled minimum and maximum
	ScaleRange     = "range"        // each feature to [0, 1] by its public range in the plan: nothing is sent
	ScaleNone      = "none"         // values as they are
	ScaleSiteRange = "site-min-max" // each site by its own minimum and maximum: of fed-mv-ppca alone
)

// Scalings are those with one scale at all sites.
var Scalings = []string{ScaleStandard, ScaleView, ScaleMinMax, ScaleRange, ScaleNone}

// Frame is what a plan says of its model, however that is fitted: features, in which units, and factors.
type Frame struct {
	Plan    *study.Plan
	Layout  Layout
	Factors int    // of the model; the most that are tried, where the study chooses
	Scaling string // one of the Scale constants
	// Totals says that sites' sums are added as a secure sum adds them, with one or without.
	Totals bool
}

// NewFrame is that of a plan whose features share noise variances so.
func NewFrame(p *study.Plan, noise Noise, factors int, scaling string) (Frame, error) {
	dims := make([]int, len(p.Views))
	for k, v := range p.Views {
		dims[k] = len(v.Features)
	}
	layout, err := NewLayout(dims, noise)
	return Frame{Plan: p, Layout: layout, Factors: factors, Scaling: scaling}, err
}

// CheckFeatures demands features of which a model of so many factors can be, in such units.
func CheckFeatures(p *study.Plan, latent int, scaling string, report study.Report) {
	features := 0
	for k, v := range p.Views {
		features += len(v.Features)
		for j, f := range v.Features {
			at := fmt.Sprintf("views[%d].features[%d]", k, j)
			if f.Kind == study.Category {
				report(at, f.Name+" is a category, and "+p.Method.Name+" models numbers",
					"leave it out, or list it under subjects")
			}
			if scaling == ScaleRange && f.Range == nil {
				report("scaling", fmt.Sprintf("%q needs the range of every feature, and %s (%s) has none",
					ScaleRange, at, f.Name),
					fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known, or another scaling",
						f.Name))
			}
		}
	}
	if features > 0 && latent >= features {
		report("latent", fmt.Sprintf("%d factors for %d features", latent, features), "fewer factors than features")
	}
}

// Feature returns feature j of the plan, and its view.
func (s Frame) Feature(j int) (*study.View, *study.Feature) {
	k := s.Layout.ViewOf()[j]
	lo, _ := s.Layout.View(k)
	v := &s.Plan.Views[k]
	return v, &v.Features[j-lo]
}

// TooManyFactors says whether the plan's factors are more than the covariances of so many
// features can tell, whatever the subjects: d features with noise of their own have d(d + 1)/2
// variances and covariances, and a model dq − q(q − 1)/2 + d numbers (Ledermann 1937).
func (s Frame) TooManyFactors(features int) bool {
	return s.Layout.Noise == NoisePerFeature && TooMany(features, s.Factors)
}

// TooMany is [Frame.TooManyFactors] of q factors.
func TooMany(d, q int) bool { return (d-q)*(d-q) < d+q }

// Complete demands that the features that the sites together have are those of the plan.
func (s Frame) Complete(features []int) error {
	for _, j := range without(s.Layout.AllFeatures(), features) {
		view, feature := s.Feature(j)
		return fmt.Errorf("no site has a single value of feature %s of view %s: leave it out of the plan", feature.Name,
			view.Name)
	}
	return nil
}

// RangeScale is the scale that the plan's public ranges give, which a plan that uses
// it has for all features.
func (s Frame) RangeScale() *Scale {
	out := &Scale{}
	for _, v := range s.Plan.Views {
		for _, f := range v.Features {
			out.Shift = append(out.Shift, f.Range[0])
			out.Factor = append(out.Factor, 1/(f.Range[1]-f.Range[0]))
		}
	}
	return out
}

// Said is how many numbers [RowSums.Said] has at most, and what they are.
func (s Frame) Said() (values int, what string) {
	if s.Scaling == ScaleMinMax {
		return 3 * s.Layout.Features(), "number of values, smallest and largest value of each feature"
	}
	return 3 * s.Layout.Features(), "number of values, mean and sum of squared deviations of each feature"
}

// Pools says whether the scale comes from the sites.
func (s Frame) Pools() bool { return Pools(s.Scaling) }

// Pools says whether such a scale comes from the sites.
func Pools(scaling string) bool {
	return slices.Contains([]string{ScaleStandard, ScaleView, ScaleMinMax}, scaling)
}
