package options

import "parley/methods/regression/glm"

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
