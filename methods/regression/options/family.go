package options

import (
	"fmt"
	"strings"

	"parley/methods/regression/glm"
	"parley/study"
)

// Family returns the likelihood.
func (o *Options) Family() glm.Likelihood {
	switch o.Likelihood {
	case LikelihoodSoftmax:
		return glm.Softmax{Classes: len(o.Outcome.Levels)}
	case LikelihoodLinear:
		if o.NoiseVariance == nil { // to be estimated
			return glm.Linear{Variance: 1}
		}
		return glm.Linear{Variance: *o.NoiseVariance}
	case LikelihoodPoisson:
		return glm.Poisson{}
	}
	if o.Link == LinkCloglog {
		return glm.Cloglog{}
	}
	return glm.Logistic{} // of subjects, or of person-periods
}

// Unit names what rows of the design matrix are: subject, or person-period.
func (o *Options) Unit() string {
	if o.Likelihood == LikelihoodHazard {
		return "person-period"
	}
	return "subject"
}

// Numeric says whether the outcome is a number, and not a class or the time until an event.
func (o *Options) Numeric() bool {
	return o.Likelihood == LikelihoodLinear || o.Likelihood == LikelihoodPoisson
}

// Classes names the activations: the levels of a softmax likelihood, and else one
// without a name.
func (o *Options) Classes() []string {
	if o.Likelihood == LikelihoodSoftmax {
		return o.Outcome.Levels
	}
	return []string{""}
}

// Random says whether every site has a random intercept.
func (o *Options) Random() bool { return o.SiteEffects == effectsRandom }

// Predicts says what a plan predicts, from what and how.
func (o *Options) Predicts(p *study.Plan) string {
	features := 0
	for _, v := range p.Views {
		features += len(v.Features)
	}
	what := fmt.Sprintf("the number in column %s", o.Outcome.Column)
	if len(o.Outcome.Levels) > 0 {
		what = fmt.Sprintf("which level of column %s a subject has (%s)", o.Outcome.Column, strings.Join(o.Outcome.Levels, ", "))
	}
	switch o.Likelihood {
	case LikelihoodPoisson:
		what = fmt.Sprintf("the count in column %s", o.Outcome.Column)
	case LikelihoodHazard:
		what = fmt.Sprintf("in which of %d periods of the time in column %s the event in column %s happens", len(o.Outcome.Cuts), o.Outcome.Column, o.Outcome.Event)
	}
	return fmt.Sprintf("It predicts %s from %d features by a Bayesian %s regression, and says how surely each weight is known.", what, features, o.Likelihood)
}
