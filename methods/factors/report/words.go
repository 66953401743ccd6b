package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// notMeaningful stands for a number that verdicts say must not be relied on.
const notMeaningful = "not meaningful: see below"

// SureOfNoised is how sure a model is that was fitted to noised sums.
const SureOfNoised = "The model was fitted to sums with noise, which protects single subjects. The variance explained follows from the same sums, so that it holds noise too; the page says below what the noise may have hidden."

// Differences that R² counts.
const (
	withinSites   = "between subjects of one site"
	AndAmongSites = "between subjects, with those between sites"
	OfOneSite     = "between subjects"
)

// Found says in words what a model found. explained is the variance explained of views, or
// empty if that is not known; differences says of what.
func Found(m *fitted.Model, explained, differences string) string {
	q := len(m.Factors)
	says := fmt.Sprintf("The model describes the subjects by %s: patterns of measurements that rise and fall together.", figure.Plural(q, "factor"))
	if explained != "" && !strings.Contains(explained, notMeaningful) {
		says += fmt.Sprintf(" They account for %s of the differences %s, by view"+method.OfFit+".", explained, differences)
	}
	if names := m.Strongest(0, 3); len(names) > 0 {
		says += fmt.Sprintf(" Factor 1 shows most in %s.", strings.Join(names, ", "))
	}
	return says
}

// untried says whether no view of any subject could be predicted from another.
func untried(set options.Setup, sites []Site) bool {
	all := assess.NewSums(set.Layout.Views())
	for _, s := range sites {
		all.Merge(s.LeftOut)
	}
	return !slices.ContainsFunc(all.Cells, func(n float64) bool { return n > 0 })
}

// sure says in words how well the model predicts views that are hidden from it.
func sure(set options.Setup, m *fitted.Model, sites []Site) string {
	all := assess.NewSums(set.Layout.Views())
	for _, s := range sites {
		all.Merge(s.LeftOut)
	}
	gain, held := newReach(), newReach()
	for k, v := range m.Views {
		if h := v.HeldOut; h != nil && !m.Void(v.Name) {
			gain.add(100 * h.Gain)
			held.add(100 * covered(m, all, k)) // nothing of a single view
		}
	}
	switch {
	case gain.empty() && slices.ContainsFunc(m.Views, func(v fitted.ModelView) bool { return m.Void(v.Name) }):
		return "Nothing on this page says how good the model is, for the reasons below."
	case !gain.empty() && len(m.Views) == 1:
		return fmt.Sprintf("For subjects who took no part in the fit, a prediction of every second feature from the others takes away %s of the squared error of their means.", gain)
	case gain.empty() && (len(m.Views) == 1 || !untried(set, sites)):
		return "Nobody could be left out of the fit to see how well others are predicted: how far the model is to be trusted is not known."
	case gain.empty():
		return "Nobody has two views, so that no view could be predicted from another: how far the model is to be trusted is not known."
	}
	says := fmt.Sprintf("For subjects who took no part in the fit, a prediction of a view from the others takes away %s of the squared error of its mean", gain)
	if held.empty() { // no site has said how its subjects lie in their intervals
		return says + "."
	}
	return says + fmt.Sprintf(", and intervals of 90 %% hold %s of its values.", held)
}

// reach is from where to where percentages go.
type reach struct{ low, high float64 }

func newReach() *reach { return &reach{math.Inf(1), math.Inf(-1)} }

func (r *reach) add(x float64) {
	if !math.IsNaN(x) {
		r.low, r.high = min(r.low, math.Round(x)), max(r.high, math.Round(x))
	}
}

func (r *reach) empty() bool { return r.low > r.high }

func (r *reach) String() string {
	text := func(x float64) string { return strings.ReplaceAll(fmt.Sprintf("%.0f", x+0), "-", "−") }
	if r.low == r.high {
		return text(r.low) + " %"
	}
	return text(r.low) + " to " + text(r.high) + " %"
}
