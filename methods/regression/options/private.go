package options

import (
	"parley/methods/regression/glm"
	"parley/privacy/account"
	"parley/study"
)

// Private says whether updates are noised natural gradients: the default under
// differential privacy.
func (o *Options) Private(p *study.Plan) bool {
	return p.Privacy.Differential() && o.Variant == VariantPartitioned
}

// mostNoised is the largest number of weights of a private joint posterior by default: the
// coordinator finds the eigenvalues of a few matrices of their size in each round.
const mostNoised = 500

// Noised says whether the posterior of all weights together is made of noised sums.
func (o *Options) Noised(p *study.Plan) bool { return p.Privacy.Differential() && o.Joint() }

// jointByDefault says whether a plan without a variant has a joint posterior. Under
// differential privacy this is so of two classes without an offset, with subjects as the unit, where
// the plan leaves clipping, damping and schedule to the method; the others are partitioned.
func (o *Options) jointByDefault(p *study.Plan) bool {
	if !p.Privacy.Differential() {
		return len(o.Classes())*o.columns(p) <= mostJoint
	}
	return o.Likelihood == LikelihoodLogistic && o.Intercept && p.Privacy.Unit == study.UnitSubject && o.columns(p) <= mostNoised &&
		o.Offset == "" && o.Clip == nil && o.Damping == 0 && o.Schedule == ""
}

// noised checks what only a private joint posterior asks for.
func (c *optionCheck) noised() {
	if c.Likelihood != LikelihoodLogistic {
		c.report("variant", "a joint posterior has a differentially private form for two classes alone", "variant: partitioned")
	}
	if c.p.Privacy.Unit == study.UnitSite {
		c.report("variant", "a private joint posterior is made of sums over subjects", "privacy.unit: subject, or variant: partitioned")
	}
	if !c.Intercept || c.Coding != CodingReference {
		c.report("coding", "a private joint posterior has an intercept, and references", "leave out intercept and coding, or variant: partitioned")
	}
	if c.Offset != "" {
		c.report("offset", "what noise and clipping hide is worked out for a private joint posterior as if there were none", "variant: partitioned, or leave it out")
	}
	if c.Rounds < 5 {
		c.report("rounds", "too few to find the way and to be sure of it", "leave it out, or 5 and more")
	}
	if c.Clip != nil {
		c.report("clip", "means nothing for a private joint posterior, which chooses it by the way and pays for that", "leave it out, or variant: partitioned")
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
	if o.Variant == VariantPublished {
		if o.Published == nil {
			o.Published = &Published{}
		}
		o.Published.Fill(missing)
		set("damping", &o.Damping, publishedDamping)
		if missing("schedule") {
			o.Schedule = ScheduleRandom
		}
		if missing("rounds") {
			o.Rounds = publishedRounds
		}
		if missing("clip") {
			bound := publishedClip
			o.Clip = &bound
		}
		return
	}
	set("damping", &o.Damping, glm.NaturalDamping(o.entries(p)))
	if missing("schedule") {
		o.Schedule = ScheduleSynchronous
	}
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
		if c.Variant == VariantPublished {
			c.report("variant", "the published settings are those of differential privacy", "protection: differential, or variant: partitioned")
		}
		if c.Clip != nil {
			c.report("clip", "means nothing with protection: none", "leave it out")
		}
		return
	}
	pr := c.p.Privacy
	if c.Variant == VariantGlobal {
		c.report("variant", "the baseline has no differentially private form", "variant: partitioned, or published")
	}
	if pr.Total == nil && pr.PerRelease != nil {
		c.report("", "pvi calibrates its noise to a total, and the plan has none", "privacy.total instead of per_release")
	}
	if c.Tolerance != nil {
		c.report("tolerance", "a private study ends when its updates are made", "leave it out")
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
	if c.Variant == VariantPublished {
		c.published()
	}
}

func (c *optionCheck) published() {
	if c.Published == nil {
		c.report("published", "missing", "noise, steps, batch_share, draws and learning_rate")
		return
	}
	if len(c.Rows) == 0 {
		c.report("rows", "missing: minibatches, gradients and the schedule go by every site's number of rows", "the number of rows of each site, which is then public")
	}
	if c.p.Privacy.Unit == study.UnitSite || c.p.Privacy.Adjacency == account.ReplaceOne {
		c.report("variant", "the published accountant knows one subject more or less", "unit: subject and adjacency: add-remove, or variant: partitioned")
	}
	c.Published.Check(c.positive, c.report)
}
