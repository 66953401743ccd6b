// Package options is what a plan says of a regression ([Options], with defaults that depend
// on each other and on privacy), what both halves know from the plan before anything is sent
// ([New]), and what passes between them: tasks, answers, and the Gaussians and scales in
// them, each with the bounds that whoever reads it demands. Rows are read through [Setup], so
// that all that see them bring them to the same columns. Methods that check return an error,
// and never panic.
package options

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/methods/regression/glm"
	"parley/problem"
	"parley/study"
)

// Name is the method's.
const Name = "regression"

// The likelihoods.
const (
	LikelihoodLogistic = "logistic" // two levels
	LikelihoodSoftmax  = "softmax"  // two levels or more, with weights for each
	LikelihoodLinear   = "linear"   // a number, with normal noise of known variance
	LikelihoodPoisson  = "poisson"  // a count, whose rate's logarithm is the activation
	LikelihoodHazard   = "hazard"   // the time until an event, in discrete periods: logistic in person-periods
)

// mostJoint is the largest number of weights: each exchange sends half as many numbers as its square, which are
// then 16 megabytes. Under privacy it is mostNoised, as the coordinator finds the eigenvalues of a few matrices of
// that size in each round.
const mostJoint, mostNoised = 2000, 500

// noisedRounds is how many gradients a private posterior is made of.
const noisedRounds = 20

// FewestRandom is how many sites tell how much sites differ.
const FewestRandom = 3

// What sites may differ by beyond what the features of their subjects say.
const (
	effectsNone   = "none"
	effectsRandom = "random" // a random intercept for each site, around 0 with a variance that is estimated
)

// The ways to bring numbers to common units.
const (
	// by pooled means and standard deviations, which first tasks release; under privacy by what noised histograms tell
	// of them
	ScaleStandard  = "standard"
	ScaleRange     = "range"     // by public ranges in the plan: to −1 … 1
	ScaleConstants = "constants" // by centres and scales that the plan gives
)

var (
	likelihoods = []string{LikelihoodLogistic, LikelihoodSoftmax, LikelihoodLinear, LikelihoodPoisson, LikelihoodHazard}
	scalings    = []string{ScaleStandard, ScaleRange, ScaleConstants}
)

// Likelihoods lists the likelihoods.
func Likelihoods() []string { return slices.Clone(likelihoods) }

// Largest bounds a plan's own numbers: those that are positive lie in
// 1/Largest … Largest, so that no product of a few of them overflows.
const Largest = 1e50

// Options are what a plan says under method.
type Options struct {
	Outcome glm.Outcome `json:"outcome"` // what is to be predicted; no default
	// one of the Likelihood constants; follows from the outcome's levels
	Likelihood    string   `json:"likelihood"`
	NoiseVariance *float64 `json:"noise_variance,omitempty"` // linear: of the outcome around its expectation
	Link          string   `json:"link,omitempty"`           // logistic and hazard: logit or cloglog (logit)
	// PriorVariance is that of every weight around 0 (6.25, a deviation of 2.5 for one standard deviation of a
	// number; under privacy 1). Of a linear model it is in units of the outcome's variance, whether or
	// not noise_variance is given: a default that says nothing in any unit of the outcome.
	PriorVariance float64 `json:"prior_variance"`
	// the same of the intercept (100; under privacy prior_variance), of a linear model about the outcome's mean
	InterceptVariance float64 `json:"intercept_variance"`

	References []Reference `json:"references,omitempty"` // by default each category's most frequent level

	Splines      []spline   `json:"splines,omitempty"`      // numbers whose effect bends
	Interactions [][]string `json:"interactions,omitempty"` // pairs of features whose effects depend on each other
	// subject column that is added to every activation, such as the logarithm of exposure
	Offset string `json:"offset,omitempty"`
	// OffsetRange, under privacy, is where offsets publicly lie; one beyond counts as the nearest end in sums.
	OffsetRange *[2]float64 `json:"offset_range,omitempty"`
	Weights     *rowWeights `json:"weights,omitempty"` // what a row's log-likelihood is multiplied by
	// Cluster is a subject column with the same cell in rows that go together, such as visits of one person:
	// standard errors are then robust, by clusters.
	Cluster string `json:"cluster,omitempty"`
	// SiteEffects is one of the Effects constants: what sites may differ by beyond their rows; none if left out.
	SiteEffects string `json:"site_effects,omitempty"`

	Scaling   string     `json:"scaling"`             // one of the Scale constants (standard)
	Constants []Constant `json:"constants,omitempty"` // scaling constants: for every number
	// neutral (the default): a missing cell has no effect; refuse: it is an error
	Missing string `json:"missing"`

	Rounds int `json:"rounds"` // exchanges at most (25); under privacy gradients, at least 5 (20)

	// Independent says that weights are independent in the posterior, of all levels of a category, and Through that
	// there is no intercept: of another method's plan.
	Independent bool `json:"-" yaml:"-"`
	Through     bool `json:"-" yaml:"-"`

	own any // see [Options.In]
}

// In returns the options as those of another method's plan, whose own are what a model file shows.
func (o Options) In(own any) *Options {
	o.own = own
	return &o
}

// MarshalJSON writes the options of a model file.
func (o *Options) MarshalJSON() ([]byte, error) {
	if o.own != nil {
		return json.Marshal(o.own)
	}
	type plain Options
	return json.Marshal((*plain)(o))
}

// rowWeights are a column that describes subjects, and what it means: one of the as constants.
type rowWeights struct {
	Column string `json:"column"`
	As     string `json:"as"`
}

// What weights mean: that a row stands for so many alike, or for so many others of a population, of whom
// it tells nothing. Then their scale means nothing, and standard errors are robust.
const (
	asCounts = "counts"
	asSurvey = "survey"
)

// Counts says whether a row stands for so many people alike.
func (o *Options) Counts() bool { return o.Weights != nil && o.Weights.As == asCounts }

// Survey says whether rows have weights of a sample.
func (o *Options) Survey() bool { return o.Weights != nil && o.Weights.As == asSurvey }

// Robust says whether standard errors are by how scores vary, not by the model.
func (o *Options) Robust() bool { return o.Survey() || o.Cluster != "" }

// Links of two levels and of a time until an event.
const (
	linkLogit   = "logit"
	LinkCloglog = "cloglog" // complementary log-log: of a time until an event hazards are proportional
)

// Reference is the level of a category against which the others are measured.
type Reference struct {
	Feature string `json:"feature"`
	Level   string `json:"level"`
}

// Constant brings a number x to (x − Centre)/Scale. Under privacy it has to be
// known without looking at the data.
type Constant struct {
	Feature string  `json:"feature"`
	Centre  float64 `json:"centre"`
	Scale   float64 `json:"scale"`
}

// spline makes a number enter by a restricted cubic spline with public knots, in the
// feature's unit.
type spline struct {
	Feature string    `json:"feature"`
	Knots   glm.Knots `json:"knots,omitempty"`
}

// Default returns options with the defaults that depend on nothing.
func Default() *Options {
	return &Options{Missing: string(glm.Neutral)}
}

// Fill puts in the defaults that depend on other options and on privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	if missing("likelihood") {
		switch n := len(o.Outcome.Levels); {
		case o.Outcome.Event != "":
			o.Likelihood = LikelihoodHazard
		case n == 2:
			o.Likelihood = LikelihoodLogistic
		case n > 2:
			o.Likelihood = LikelihoodSoftmax
		default:
			o.Likelihood = LikelihoodLinear
		}
	}
	o.fillPrior(p, missing)
	if missing("scaling") {
		o.Scaling = ScaleStandard
		if len(o.Constants) > 0 {
			o.Scaling = ScaleConstants
		}
	}
	if missing("rounds") {
		o.Rounds = 25
		if o.Noised(p) {
			o.Rounds = noisedRounds
		}
	}
}

// Former implements [study.Former].
func (o *Options) Former(key string) string {
	switch key {
	case "variant":
		return "leave it out: all weights have one posterior; partitioned, published and global are name: dp-pvi"
	case "clip", "damping", "schedule":
		return "leave it out: nothing is to be tuned, under privacy or not; partitioned inference, with these keys, " +
			"is name: dp-pvi"
	case "tolerance":
		return "leave it out; independent weights without privacy are name: dp-pvi with algorithm: exact"
	case "weight":
		return "weights: {column: …, as: counts} if a row stands for so many alike, or as: survey"
	case "intercept":
		return "leave it out: there is one, or a coefficient for each period; intercept_variance: 1e-6 holds it at 0"
	case "coding":
		return "leave it out: levels are compared with one of them, which references may name"
	case "priors":
		return "leave it out: prior_variance and intercept_variance are those of all weights"
	case "rows", "published", "global":
		return "name: dp-pvi has rows and the published settings; else leave it out"
	}
	return ""
}

// Joint says whether the posterior is of all weights together.
func (o *Options) Joint() bool { return !o.Independent }

// Noised says whether that is made of noised sums.
func (o *Options) Noised(p *study.Plan) bool { return p.Privacy.Differential() && o.Joint() }

// intercept says whether there is one: else every period has one, or nothing has.
func (o *Options) intercept() bool { return o.Likelihood != LikelihoodHazard && !o.Through }

func (o *Options) fillPrior(p *study.Plan, missing func(key string) bool) {
	weights, intercept := 6.25, 100.0
	if o.Noised(p) {
		weights = 1
	}
	if missing("prior_variance") {
		o.PriorVariance = weights
	}
	if o.Noised(p) {
		intercept = o.PriorVariance
	}
	if missing("intercept_variance") {
		o.InterceptVariance = intercept
	}
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	c := optionCheck{o, p, report}
	c.size()
	c.terms()
	c.offset()
	c.plain()
	c.references()
	c.privacy()
	o.CheckModel(p, report)
}

// CheckModel reports what is wrong with the outcome and how it depends on the features, whatever
// the posterior is.
func (o *Options) CheckModel(p *study.Plan, report study.Report) {
	c := optionCheck{o, p, report}
	report.OneOf("missing", o.Missing, string(glm.Neutral), string(glm.Refuse))
	c.outcome()
	c.event()
	c.scaling()
	c.positive("prior_variance", o.PriorVariance)
	c.positive("intercept_variance", o.InterceptVariance)
	report.AtLeast("rounds", o.Rounds, 1)
}

// optionCheck is a check of options on its way.
type optionCheck struct {
	*Options
	p      *study.Plan
	report study.Report
}

// size checks how many weights there are.
func (c *optionCheck) size() {
	if n := len(c.Classes()) * c.columns(c.p); n > mostJoint && !c.p.Privacy.Differential() {
		c.report("", fmt.Sprintf("a posterior of %d weights together is too large to be sent", n),
			fmt.Sprintf("at most %d, or independent weights: name: dp-pvi with algorithm: exact", mostJoint))
	}
}

// references checks those that the plan names.
func (c *optionCheck) references() {
	levels := map[string][]string{}
	for _, v := range c.p.Views {
		for _, f := range v.Features {
			levels[f.Name] = f.Levels
		}
	}
	seen := map[string]bool{}
	for i, r := range c.References {
		at := fmt.Sprintf("references[%d]", i)
		switch {
		case len(levels[r.Feature]) == 0:
			c.report(at+".feature", fmt.Sprintf("%q is no category of the plan", r.Feature),
				"the name of a category under views")
		case seen[r.Feature]:
			c.report(at+".feature", fmt.Sprintf("%q is there twice", r.Feature), "each feature once")
		case !slices.Contains(levels[r.Feature], r.Level):
			c.report(at+".level", fmt.Sprintf("%q is no level of %s", r.Level, r.Feature),
				"one of "+problem.Names(levels[r.Feature]))
		}
		seen[r.Feature] = true
	}
}

// Reference is the level that the plan names for a category; "" if it names none.
func (o *Options) Reference(feature string) string {
	for _, r := range o.References {
		if r.Feature == feature {
			return r.Level
		}
	}
	return ""
}

func (c *optionCheck) positive(key string, x float64) { Positive(c.report, key, x) }

// Positive reports a number that is not positive, or cannot be calculated with.
func Positive(report study.Report, key string, x float64) {
	if report.Positive(key, x) && !glm.Inside(x, 1/Largest, Largest) {
		report(key, fmt.Sprintf("%v cannot be calculated with", x),
			fmt.Sprintf("a number from %v to %v", 1/Largest, Largest))
	}
}

// outcome checks the outcome, and the likelihood that fits it.
func (c *optionCheck) outcome() {
	y := c.Outcome
	if y.Column == "" {
		c.report("outcome", "what is to be predicted is missing",
			"such as outcome: {column: relapse, levels: [no, yes]}, a column under subjects")
		return
	}
	if !slices.Contains(c.p.Subjects, y.Column) {
		c.report("outcome.column", fmt.Sprintf("%q is not a column under subjects", y.Column),
			problem.DidYouMean(y.Column, c.p.Subjects, "list it there; it may not be a feature of a view"))
	}
	for i, l := range y.Levels {
		if l == "" || slices.Contains(y.Levels[:i], l) {
			c.report("outcome.levels", fmt.Sprintf("level %q is empty or there twice", l), "each class once")
		}
		for _, other := range y.Levels[:i] {
			if problem.Confusable(other, l) {
				c.report("outcome.levels", fmt.Sprintf("level %+q looks like %+q and is another", l, other),
					"write it once, and the same way in the data of all sites; a site's mapping.yaml can do that")
			}
		}
	}
	c.report.OneOf("likelihood", c.Likelihood, likelihoods...)
	n := len(y.Levels)
	switch {
	case c.Likelihood == LikelihoodLogistic && n != 2:
		c.report("outcome.levels", fmt.Sprintf("%d levels, and a logistic model has two", n),
			"two levels, or likelihood: softmax for more")
	case c.Likelihood == LikelihoodSoftmax && (n < 2 || n > glm.MaxClasses):
		c.report("outcome.levels", fmt.Sprintf("%d levels for a softmax model", n),
			fmt.Sprintf("from 2 to %d", glm.MaxClasses))
	case (c.Likelihood == LikelihoodLinear || c.Likelihood == LikelihoodPoisson) && n > 0:
		c.report("outcome.levels", fmt.Sprintf("a %s model predicts a number, which has no levels", c.Likelihood),
			"leave them out, or likelihood: logistic or softmax")
	}
	switch {
	case c.Likelihood != LikelihoodLinear && c.NoiseVariance != nil:
		c.report("noise_variance", "belongs to likelihood: linear", "leave it out")
	case c.Likelihood == LikelihoodLinear && c.NoiseVariance == nil && c.Joint(): // it is estimated
	case c.Likelihood == LikelihoodLinear && c.NoiseVariance == nil:
		c.report("noise_variance", "missing: a linear model needs the variance of the outcome around its expectation",
			"such as noise_variance: 1, in the outcome's unit squared")
	case c.NoiseVariance != nil:
		c.positive("noise_variance", *c.NoiseVariance)
	}
}

// scaling checks that every number is brought to common units.
func (c *optionCheck) scaling() {
	c.report.OneOf("scaling", c.Scaling, scalings...)
	noised := c.Noised(c.p)
	switch {
	case c.Scaling == ScaleStandard && c.p.Privacy.Differential() && !noised:
		c.report("scaling", "pooled means and standard deviations would leave the sites without noise",
			"scaling: range, or constants that are publicly known")
	case c.Scaling == ScaleRange && noised:
		c.report("scaling", "a range is no unit: where it is many standard deviations wide, the prior and the noise "+
			"hide effects", "leave it out, so that noised histograms over the ranges tell the units, or constants "+
			"that are publicly known")
	}
	ranged := c.Scaling == ScaleRange || c.Scaling == ScaleStandard && noised
	if len(c.Constants) > 0 && c.Scaling != ScaleConstants {
		c.report("constants", fmt.Sprintf("mean nothing with scaling: %s", c.Scaling),
			"scaling: constants, or leave them out")
	}
	given := map[string]bool{}
	for i, k := range c.Constants {
		at := fmt.Sprintf("constants[%d]", i)
		if given[k.Feature] {
			c.report(at+".feature", fmt.Sprintf("%q is there twice", k.Feature), "each feature once")
		}
		given[k.Feature] = true
		c.positive(at+".scale", k.Scale)
		if !glm.Inside(k.Centre, -Largest, Largest) {
			c.report(at+".centre", fmt.Sprintf("%v is not finite, or cannot be calculated with", k.Centre),
				fmt.Sprintf("a number within ±%v", Largest))
		}
	}
	for k, v := range c.p.Views {
		for j, f := range v.Features {
			at := fmt.Sprintf("views[%d].features[%d]", k, j)
			known := given[f.Name]
			delete(given, f.Name)
			switch {
			case f.Kind == study.Category && known:
				c.report("constants", fmt.Sprintf("%s (%s) is a category, which has no scale", at, f.Name),
					"leave it out")
			case f.Kind == study.Category:
			case ranged && f.Range == nil:
				c.report("scaling", fmt.Sprintf("%q needs the range of every number, and %s (%s) has none",
					c.Scaling, at, f.Name),
					fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known, or another scaling",
						f.Name))
			case ranged && !(glm.Inside((f.Range[1]-f.Range[0])/2, 1/Largest, Largest) &&
				glm.Inside(f.Range[0], -Largest, Largest)):
				c.report("scaling", fmt.Sprintf("the range of %s (%s) cannot be calculated with", at, f.Name),
					fmt.Sprintf("a range that is from %v to %v wide", 1/Largest, Largest))
			case c.Scaling == ScaleConstants && !known:
				c.report("constants", fmt.Sprintf("%s (%s) has none", at, f.Name),
					fmt.Sprintf("{feature: %s, centre: …, scale: …}", f.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		c.report("constants", fmt.Sprintf("%q is not a feature of the plan", name), "the name of a number under views")
	}
}

// BeyondRange implements [study.RangeTeller].
func (o *Options) BeyondRange(p *study.Plan) string {
	switch {
	case o.Scaling == ScaleRange:
		return study.RangeEnds
	case o.Noised(p):
		return fmt.Sprintf("and count within %d scales of the centre, as all values", Farthest)
	}
	return study.RangeAsIs
}

// Farthest is how many scales a number of a private fit is from its centre, at most, so that no row weighs so
// much that gradients must be clipped to a few of them.
const Farthest = 4
