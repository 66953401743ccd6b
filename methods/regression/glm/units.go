package glm

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/internal/wire"
	"parley/problem"
	"parley/study"
)

// The likelihoods.
const (
	LikelihoodLogistic = "logistic" // two levels
	LikelihoodSoftmax  = "softmax"  // two levels or more, with weights for each
	LikelihoodLinear   = "linear"   // a number, with normal noise of known variance
	LikelihoodPoisson  = "poisson"  // a count, whose rate's logarithm is the activation
	LikelihoodHazard   = "hazard"   // the time until an event, in discrete periods: logistic in person-periods
)

// The ways to bring numbers to common units.
const (
	// by pooled means and standard deviations, which first tasks release; under privacy by what noised histograms tell
	// of them
	ScaleStandard  = "standard"
	ScaleRange     = "range"     // by public ranges in the plan: to −1 … 1
	ScaleConstants = "constants" // by centres and scales that the plan gives
)

// Bounds on numbers that pass between the halves. They lie far outside of what honest studies need, and so that
// whatever keeps them can be calculated with: no product of a few of them overflows.
const (
	Largest       = 1e50 // of a plan's own numbers: those that are positive lie in 1/Largest … Largest
	FactorLargest = 1e60 // of weights
	TaskLargest   = 1e75 // of scales
	// MostRows is a number of subjects that no site has.
	MostRows = 1 << 31
)

// Constant brings a number x to (x − Centre)/Scale. Under privacy it has to be known without looking at the data.
type Constant struct {
	Feature string  `json:"feature"`
	Centre  float64 `json:"centre"`
	Scale   float64 `json:"scale"`
}

// Positive reports a number that is not positive, or cannot be calculated with.
func Positive(report study.Report, key string, x float64) {
	if report.Positive(key, x) && !Inside(x, 1/Largest, Largest) {
		report(key, fmt.Sprintf("%v cannot be calculated with", x),
			fmt.Sprintf("a number from %v to %v", 1/Largest, Largest))
	}
}

// Check reports what no outcome of a plan is, or of a likelihood; false where it is missing.
func (y *Outcome) Check(p *study.Plan, likelihood string, report study.Report) bool {
	if report.If(y.Column == "", "outcome", "what is to be predicted is missing",
		"such as outcome: {column: relapse, levels: [no, yes]}, a column under subjects") {
		return false
	}
	report.If(!slices.Contains(p.Subjects, y.Column), "outcome.column", fmt.Sprintf("%q is not a column under subjects",
		y.Column), problem.DidYouMean(y.Column, p.Subjects, "list it there; it may not be a feature of a view"))
	for i, l := range y.Levels {
		report.If(l == "" || slices.Contains(y.Levels[:i], l), "outcome.levels", fmt.Sprintf("level %q is empty or "+
			"there twice", l), "each class once")
		for _, other := range y.Levels[:i] {
			report.If(problem.Confusable(other, l), "outcome.levels",
				fmt.Sprintf("level %+q looks like %+q and is another", l, other),
				"write it once, and the same way in the data of all sites; a site's mapping.yaml can do that")
		}
	}
	n := len(y.Levels)
	report.If(likelihood == LikelihoodLogistic && n != 2, "outcome.levels", fmt.Sprintf("%d levels, and a logistic "+
		"model has two", n), "two levels, or likelihood: softmax for more")
	report.If(likelihood == LikelihoodSoftmax && (n < 2 || n > maxClasses), "outcome.levels", fmt.Sprintf("%d levels "+
		"for a softmax model", n), fmt.Sprintf("from 2 to %d", maxClasses))
	report.If((likelihood == LikelihoodLinear || likelihood == LikelihoodPoisson) && n > 0, "outcome.levels",
		fmt.Sprintf("a %s model predicts a number, which has no levels", likelihood),
		"leave them out, or likelihood: logistic or softmax")
	if likelihood != LikelihoodHazard {
		report.If(y.Event != "" || len(y.Cuts) > 0, "outcome", "event and cuts belong to likelihood: "+
			LikelihoodHazard, "leave them out, or the likelihood")
		return true
	}
	report.If(!slices.Contains(p.Subjects, y.Event) || y.Event == y.Column, "outcome.event",
		fmt.Sprintf("%q is not a second column under subjects", y.Event),
		"the column that says how the time ended, such as event: died")
	report.If(n != 2, "outcome.levels", fmt.Sprintf("%d levels of the event", n),
		"two: no event until the end of the time, and the event, such as levels: [\"no\", \"yes\"]")
	if err := y.Cuts.Check(); err != nil {
		report("outcome.cuts", err.Error(), "the ends of the periods in the unit of the time, such as cuts: [30, "+
			"60, 90]")
	}
	return true
}

// Predicts says what a plan predicts, from what and how.
func Predicts(p *study.Plan, y *Outcome, likelihood string) string {
	features := 0
	for _, v := range p.Views {
		features += len(v.Features)
	}
	what := fmt.Sprintf("the number in column %s", y.Column)
	if len(y.Levels) > 0 {
		what = fmt.Sprintf("which level of column %s a subject has (%s)", y.Column,
			strings.Join(y.Levels, ", "))
	}
	switch likelihood {
	case LikelihoodPoisson:
		what = fmt.Sprintf("the count in column %s", y.Column)
	case LikelihoodHazard:
		what = fmt.Sprintf("in which of %d periods of the time in column %s the event in column %s happens",
			len(y.Cuts), y.Column, y.Event)
	}
	return fmt.Sprintf("It predicts %s from %d features by a Bayesian %s regression, and says how surely each weight "+
		"is known.", what, features, likelihood)
}

// CheckScaling holds a way to bring numbers to common units, and its constants, against the plan; ranged says that it
// goes by public ranges.
func CheckScaling(p *study.Plan, scaling string, ranged bool, constants []Constant, report study.Report) {
	report.OneOf("scaling", scaling, ScaleStandard, ScaleRange, ScaleConstants)
	report.If(len(constants) > 0 && scaling != ScaleConstants, "constants", "mean nothing with scaling: "+scaling,
		"scaling: constants, or leave them out")
	given := map[string]bool{}
	for i, k := range constants {
		at := fmt.Sprintf("constants[%d]", i)
		report.If(given[k.Feature], at+".feature", fmt.Sprintf("%q is there twice", k.Feature), "each feature once")
		given[k.Feature] = true
		Positive(report, at+".scale", k.Scale)
		report.If(!Inside(k.Centre, -Largest, Largest), at+".centre", fmt.Sprintf("%v is not finite, or cannot be "+
			"calculated with", k.Centre), fmt.Sprintf("a number within ±%v", Largest))
	}
	for k, v := range p.Views {
		for j, f := range v.Features {
			at := fmt.Sprintf("views[%d].features[%d]", k, j)
			known := given[f.Name]
			delete(given, f.Name)
			switch {
			case f.Kind == study.Category && known:
				report("constants", fmt.Sprintf("%s (%s) is a category, which has no scale", at, f.Name),
					"leave it out")
			case f.Kind == study.Category:
			case ranged && f.Range == nil:
				report("scaling", fmt.Sprintf("%q needs the range of every number, and %s (%s) has none",
					scaling, at, f.Name),
					fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known, or another scaling",
						f.Name))
			case ranged && !(Inside((f.Range[1]-f.Range[0])/2, 1/Largest, Largest) &&
				Inside(f.Range[0], -Largest, Largest)):
				report("scaling", fmt.Sprintf("the range of %s (%s) cannot be calculated with", at, f.Name),
					fmt.Sprintf("a range that is from %v to %v wide", 1/Largest, Largest))
			case scaling == ScaleConstants && !known:
				report("constants", fmt.Sprintf("%s (%s) has none", at, f.Name),
					fmt.Sprintf("{feature: %s, centre: …, scale: …}", f.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		report("constants", fmt.Sprintf("%q is not a feature of the plan", name), "the name of a number under views")
	}
}

// Moments are, of several numbers, how often each was observed, its mean and the sum of squared deviations from it.
type Moments struct {
	N       wire.Vector `cbor:"n"`
	Mean    wire.Vector `cbor:"mean" sums:"signed"`
	Squares wire.Vector `cbor:"squares"`
}

// NewMoments are those of n numbers of which nothing was observed.
func NewMoments(n int) Moments {
	return Moments{make(wire.Vector, n), make(wire.Vector, n), make(wire.Vector, n)}
}

// Add takes in a value of number i (Welford 1962), but for NaN.
func (a *Moments) Add(i int, x float64) {
	if math.IsNaN(x) {
		return
	}
	a.N[i]++
	d := x - a.Mean[i]
	a.Mean[i] += d / a.N[i]
	a.Squares[i] += d * (x - a.Mean[i])
}

// Check refuses what no rows can give; numbers are the names of those that have moments.
func (a *Moments) Check(numbers []string) error {
	if n := len(numbers); len(a.N) != n || len(a.Mean) != n || len(a.Squares) != n {
		return fmt.Errorf("sums of %d, %d and %d numbers where the plan has %d", len(a.N), len(a.Mean),
			len(a.Squares), n)
	}
	for i, n := range a.N {
		if n != math.Trunc(n) || !Inside(n, 0, MostRows) || !Inside(a.Squares[i], 0, n*Largest*Largest) ||
			!Inside(a.Mean[i], -Largest, Largest) {
			return fmt.Errorf("%s: a count of %v, a mean of %v and squares of %v", numbers[i], n, a.Mean[i],
				a.Squares[i])
		}
	}
	return nil
}

// Merge takes in those of other rows (Chan, Golub and LeVeque 1979): nothing cancels.
func (a *Moments) Merge(b *Moments) {
	for i, n := range b.N {
		if n == 0 {
			continue
		}
		d, all := b.Mean[i]-a.Mean[i], a.N[i]+n
		a.Squares[i] += b.Squares[i] + d*d*a.N[i]*n/all
		a.Mean[i] += d * n / all
		a.N[i] = all
	}
}

// Scale is mean and standard deviation of each of the first numbers, which have these names.
func (a *Moments) Scale(names []string) (centre, scale []float64, err error) {
	for i, name := range names {
		mean, sd := a.Mean[i], math.Sqrt(a.Squares[i]/a.N[i])
		switch {
		case a.N[i] == 0:
			return nil, nil, fmt.Errorf("feature %s: no site has a single value of it; leave it out of the plan", name)
		case !(sd >= 1/FactorLargest) || !Finite(sd) || !Finite(mean):
			return nil, nil, fmt.Errorf("feature %s: of %v values the mean is %v and the standard deviation %v, so "+
				"that it cannot be scaled; if it is constant, leave it out of the plan", name, a.N[i], mean, sd)
		}
		centre, scale = append(centre, mean), append(scale, sd)
	}
	return centre, scale, nil
}
