package pvi

import (
	"fmt"

	"parley/privacy/account"
	"parley/study"
)

// VariantPublished is DP-PVI with the settings of the paper, for comparison: each
// update is 25 steps of DP-Adagrad on minibatches, and the published accountant says
// how many updates a site may make. It needs every site's number of rows.
const VariantPublished = "published"

// PublishedOptions are the settings of variant published. Defaults are those of
// Table 2 of the paper and of its code.
type PublishedOptions struct {
	Noise        float64 `json:"noise"`         // standard deviation of the noise on a sum of gradients, in units of clip (5)
	Steps        int     `json:"steps"`         // of the optimiser in each update (25)
	BatchShare   float64 `json:"batch_share"`   // of a site's rows that a minibatch has on average (0.02; at least 20 rows)
	Draws        int     `json:"draws"`         // of the activation, shared by a minibatch (50)
	LearningRate float64 `json:"learning_rate"` // of Adagrad, whose accumulators each site keeps (0.5)
}

// private says whether updates are noised natural gradients: the default under
// differential privacy.
func (o *Options) private(p *study.Plan) bool {
	return p.Privacy.Differential() && o.Variant == VariantPartitioned
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
		paper := paper()
		if o.Published == nil {
			o.Published = &PublishedOptions{}
		}
		q := o.Published
		set("published.noise", &q.Noise, paper.Noise)
		set("published.batch_share", &q.BatchShare, paper.BatchShare)
		set("published.learning_rate", &q.LearningRate, paper.LearningRate)
		set("damping", &o.Damping, paper.Damping)
		if missing("published.steps") {
			q.Steps = paper.Steps
		}
		if missing("published.draws") {
			q.Draws = paper.Draws
		}
		if missing("schedule") {
			o.Schedule = ScheduleRandom
		}
		if missing("rounds") {
			o.Rounds = 1000 // more than any total allows
		}
		if missing("clip") {
			o.Clip = &paper.Bound
		}
		return
	}
	set("damping", &o.Damping, naturalDamping(o.entries(p)))
	if missing("schedule") {
		o.Schedule = ScheduleSynchronous
	}
	if missing("rounds") {
		o.Rounds = naturalRounds
	}
	if missing("clip") && p.Privacy.Unit == study.UnitSubject {
		bound := naturalBound(o.entries(p))
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
	q := c.Published
	if q == nil {
		c.report("published", "missing", "noise, steps, batch_share, draws and learning_rate")
		return
	}
	if len(c.Rows) == 0 {
		c.report("rows", "missing: minibatches, gradients and the schedule go by every site's number of rows", "the number of rows of each site, which is then public")
	}
	if c.p.Privacy.Unit == study.UnitSite || c.p.Privacy.Adjacency == account.ReplaceOne {
		c.report("variant", "the published accountant knows one subject more or less", "unit: subject and adjacency: add-remove, or variant: partitioned")
	}
	c.positive("published.noise", q.Noise)
	c.positive("published.learning_rate", q.LearningRate)
	if q.Steps < 1 {
		c.report("published.steps", fmt.Sprintf("%d steps", q.Steps), "at least 1")
	}
	if q.Draws < 1 {
		c.report("published.draws", fmt.Sprintf("%d draws", q.Draws), "at least 1")
	}
	if !(q.BatchShare > 0 && q.BatchShare <= 1) {
		c.report("published.batch_share", fmt.Sprintf("%v of the rows cannot be in a minibatch", q.BatchShare), "above 0, to 1")
	}
}
