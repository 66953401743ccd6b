// Package options is what a plan says of a regression ([Options], with defaults that depend on each other and on
// privacy), what both halves know from the plan before anything is sent ([New]), and what passes between them: tasks,
// answers, and the Gaussians and scales in them, each with the bounds that whoever reads it demands. Rows are read
// through [Setup], so that all that see them bring them to the same columns. Methods that check return an error, and
// never panic.
package options

import (
	"fmt"
	"slices"

	"parley/methods/regression/glm"
	"parley/problem"
	"parley/study"
)

// Name is the method's.
const Name = "regression"

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

// Likelihoods lists the likelihoods.
var Likelihoods = []string{glm.LikelihoodLogistic, glm.LikelihoodSoftmax, glm.LikelihoodLinear, glm.LikelihoodPoisson,
	glm.LikelihoodHazard}

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

	Splines []spline `json:"splines,omitempty"` // numbers whose effect bends
	// pairs of features whose effects depend on each other
	Interactions []glm.Interaction `json:"interactions,omitempty"`
	// subject column that is added to every activation, such as the logarithm of exposure
	Offset string `json:"offset,omitempty"`
	// OffsetRange, under privacy, is where offsets publicly lie; one beyond counts as the nearest end.
	OffsetRange *[2]float64 `json:"offset_range,omitempty"`
	Weights     *rowWeights `json:"weights,omitempty"` // what a row's log-likelihood is multiplied by
	// Cluster is a subject column with the same cell in rows that go together, such as visits of one person:
	// standard errors are then robust, by clusters.
	Cluster string `json:"cluster,omitempty"`
	// SiteEffects is one of the Effects constants: what sites may differ by beyond their rows; none if left out.
	SiteEffects string `json:"site_effects,omitempty"`

	Scaling   string         `json:"scaling"`             // one of the Scale constants (standard)
	Constants []glm.Constant `json:"constants,omitempty"` // scaling constants: for every number
	// neutral (the default): a missing cell has no effect; refuse: it is an error
	Missing string `json:"missing"`

	Rounds int `json:"rounds"` // exchanges at most (25); under privacy gradients, at least 5 (20)
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

// Predicts says whether a column of the subjects is the outcome, or how a time ended.
func (o *Options) Predicts(column string) bool {
	return column == o.Outcome.Column || column == o.Outcome.Event
}

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

// spline makes a number enter by a restricted cubic spline with public knots, in the feature's unit.
type spline struct {
	Feature string    `json:"feature"`
	Knots   glm.Knots `json:"knots,omitempty"`
}

// Default returns options with the defaults that depend on nothing.
func Default() *Options {
	return &Options{Missing: glm.Neutral}
}

// Fill puts in the defaults that depend on other options and on privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	if missing("likelihood") {
		switch n := len(o.Outcome.Levels); {
		case o.Outcome.Event != "":
			o.Likelihood = glm.LikelihoodHazard
		case n == 2:
			o.Likelihood = glm.LikelihoodLogistic
		case n > 2:
			o.Likelihood = glm.LikelihoodSoftmax
		default:
			o.Likelihood = glm.LikelihoodLinear
		}
	}
	weights, rounds, private := 6.25, 25, p.Privacy.Differential()
	if private {
		weights, rounds = 1, noisedRounds
	}
	if missing("prior_variance") {
		o.PriorVariance = weights
	}
	if missing("intercept_variance") {
		if o.InterceptVariance = 100; private {
			o.InterceptVariance = o.PriorVariance
		}
	}
	if missing("scaling") {
		o.Scaling = glm.ScaleStandard
		if len(o.Constants) > 0 {
			o.Scaling = glm.ScaleConstants
		}
	}
	if missing("rounds") {
		o.Rounds = rounds
	}
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	c := optionCheck{o, p, report, map[string]*study.Feature{}, encodingOf(o, p)}
	for k := range p.Views {
		for j := range p.Views[k].Features {
			c.features[p.Views[k].Features[j].Name] = &p.Views[k].Features[j]
		}
	}
	if c.terms(); c.interactions() {
		classes, most, other := len(c.Classes()), mostJoint, "independent weights: name: dp-pvi with algorithm: exact"
		if p.Privacy.Differential() { // each beside another
			classes, most, other = max(classes-1, 1), mostNoised, "name: dp-pvi, or protection: none"
		}
		n := classes * c.encoding.Width()
		report.If(n > most, "", fmt.Sprintf("a posterior of %d weights together is too large", n),
			fmt.Sprintf("at most %d, or %s", most, other))
	}
	c.offset()
	c.effects()
	c.references()
	c.privacy()
	report.OneOf("missing", o.Missing, glm.Neutral, glm.Refuse)
	c.outcome()
	c.scaling()
	glm.Positive(c.report, "prior_variance", o.PriorVariance)
	glm.Positive(c.report, "intercept_variance", o.InterceptVariance)
	report.AtLeast("rounds", o.Rounds, 1)
}

// optionCheck is a check of options on its way.
type optionCheck struct {
	*Options
	p        *study.Plan
	report   study.Report
	features map[string]*study.Feature // of the plan
	encoding glm.Encoding
}

// references checks those that the plan names.
func (c *optionCheck) references() {
	seen := map[string]bool{}
	for i, r := range c.References {
		at := fmt.Sprintf("references[%d]", i)
		switch f := c.features[r.Feature]; {
		case f == nil || len(f.Levels) == 0:
			c.report(at+".feature", fmt.Sprintf("%q is no category of the plan", r.Feature),
				"the name of a category under views")
		case seen[r.Feature]:
			c.report(at+".feature", fmt.Sprintf("%q is there twice", r.Feature), "each feature once")
		case !slices.Contains(f.Levels, r.Level):
			c.report(at+".level", fmt.Sprintf("%q is no level of %s", r.Level, r.Feature),
				"one of "+problem.Names(f.Levels))
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

// outcome checks the outcome, and the likelihood that fits it.
func (c *optionCheck) outcome() {
	if !c.Outcome.Check(c.p, c.Likelihood, c.report) {
		return
	}
	c.report.OneOf("likelihood", c.Likelihood, Likelihoods...)
	switch {
	case c.Likelihood != glm.LikelihoodLinear && c.NoiseVariance != nil:
		c.report("noise_variance", "belongs to likelihood: linear", "leave it out")
	case c.NoiseVariance != nil:
		glm.Positive(c.report, "noise_variance", *c.NoiseVariance)
	}
}

// scaling checks that every number is brought to common units.
func (c *optionCheck) scaling() {
	noised := c.p.Privacy.Differential()
	c.report.If(c.Scaling == glm.ScaleRange && noised, "scaling", "a range is no unit: where it is many standard "+
		"deviations wide, the prior and the noise hide effects", "leave it out, so that noised histograms over the "+
		"ranges tell the units, or constants that are publicly known")
	ranged := c.Scaling == glm.ScaleRange || c.Scaling == glm.ScaleStandard && noised
	glm.CheckScaling(c.p, c.Scaling, ranged, c.Constants, c.report)
}

// BeyondRange implements [study.RangeTeller].
func (o *Options) BeyondRange(p *study.Plan) string {
	switch {
	case o.Scaling == glm.ScaleRange:
		return study.RangeEnds
	case p.Privacy.Differential():
		return fmt.Sprintf("and count within %v scales of the centre, as all values", o.Limit())
	}
	return study.RangeAsIs
}

// Farthest is how many scales a number of a private fit is from its centre, at most, so that no row weighs so
// much that gradients must be clipped to a few of them.
const Farthest = 4

// Limit is how many scales that is: with a number as the outcome twice as many, as there clipped gradients have no
// bias, and what a limit cuts has one.
func (o *Options) Limit() float64 {
	if o.Likelihood == glm.LikelihoodLinear {
		return 2 * Farthest
	}
	return Farthest
}
