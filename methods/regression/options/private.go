package options

import (
	"parley/methods/regression/glm"
	"parley/study"
)

// Private says whether updates are noised natural gradients.
func (o *Options) Private(p *study.Plan) bool {
	return p.Privacy.Differential() && o.Form == FormIndependent
}

// mostNoised is the largest number of weights of a private joint posterior by default: the
// coordinator finds the eigenvalues of a few matrices of their size in each round.
const mostNoised = 500

// Noised says whether the posterior of all weights together is made of noised sums.
func (o *Options) Noised(p *study.Plan) bool { return p.Privacy.Differential() && o.Joint() }

// joint says whether a plan has a joint posterior. Under differential privacy this is so of two
// classes without an offset, with subjects as the unit, where the plan leaves clipping, damping
// and schedule to the method; the others have independent weights.
func (o *Options) joint(p *study.Plan) bool {
	return !p.Privacy.Differential() || o.Likelihood == LikelihoodLogistic && o.Intercept && p.Privacy.Unit == study.UnitSubject && o.columns(p) <= mostNoised &&
		o.Offset == "" && o.Clip == nil && o.Damping == 0 && o.Schedule == ""
}

// noised checks what only a private joint posterior asks for.
func (c *optionCheck) noised() {
	if c.Coding != CodingReference {
		c.report("coding", "a private joint posterior has references", "leave it out, or intercept: false")
	}
	if c.Rounds < 5 {
		c.report("rounds", "too few to find the way and to be sure of it", "leave it out, or 5 and more")
	}
}

// entries returns the largest number of entries of a row that are not zero.
func (o *Options) entries(p *study.Plan) (n int) {
	for _, v := range p.Views {
		n += len(v.Features)
	}
	if o.Intercept {
		n++
	}
	return max(n, 1)
}

// fillPrivate puts in the defaults of a study with differential privacy.
func (o *Options) fillPrivate(p *study.Plan, missing func(key string) bool) {
	set := func(key string, field *float64, value float64) {
		if missing(key) {
			*field = value
		}
	}
	set("damping", &o.Damping, glm.NaturalDamping(o.entries(p)))
	if missing("rounds") {
		o.Rounds = glm.NaturalRounds
	}
	if missing("clip") && p.Privacy.Unit == study.UnitSubject {
		bound := glm.NaturalBound(o.entries(p))
		o.Clip = &bound
	}
}

// privacy checks what belongs to differential privacy, or to none.
func (c *optionCheck) privacy() {
	if !c.p.Privacy.Differential() {
		if c.Clip != nil {
			c.report("clip", "means nothing with protection: none", "leave it out")
		}
		return
	}
	pr := c.p.Privacy
	if pr.Total == nil && pr.PerRelease != nil {
		c.report("", "pvi calibrates its noise to a total, and the plan has none", "privacy.total instead of per_release")
	}
	if pr.Diagnostics > 0 && (c.Likelihood == LikelihoodLinear || pr.Unit == study.UnitSite) {
		c.report("", "privacy.diagnostics buys how well classes of single subjects are predicted", "leave it out for a linear likelihood, and for unit: site")
	}
	switch {
	case c.Joint():
	case c.Clip == nil && pr.Unit == study.UnitSite:
		c.report("clip", "missing: the largest norm of the sum of a whole site's gradients", "about a tenth of the rows of a middling site, a number that is public")
	case c.Clip == nil:
		c.report("clip", "missing: the largest norm of a row's gradient", "leave it out for the default")
	default:
		c.positive("clip", *c.Clip)
	}
}
