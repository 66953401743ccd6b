package dppvi

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/regression/glm"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Name is the method's.
const Name = "dp-pvi"

// The algorithms.
const (
	algorithmPVI    = "pvi"    // partitioned variational inference, Algorithm 1; under privacy DP-PVI
	algorithmExact  = "exact"  // the same with the local optimum itself in place of steps towards it; not published
	algorithmGlobal = "global" // the baseline, Global VI
)

// The schedules: which site refines its factor when.
const (
	// scheduleSequential lets one site after the other update, in the plan's order,
	// each from the q that the last one left.
	scheduleSequential = "sequential"
	// scheduleSynchronous lets all sites update from the same q, and multiplies their changes together.
	scheduleSynchronous = "synchronous"
	// scheduleAsynchronous lets every site work all the time, from the q that was newest when it began. How long an
	// update takes is drawn from an exponential distribution whose mean is in proportion to the site's declared rows.
	scheduleAsynchronous = "asynchronous"
	// scheduleRandom is what the paper simulates as asynchronous: one site at a
	// time, drawn with a probability in proportion to 1/rows, from the newest q.
	scheduleRandom = "random"
)

// Options are what a plan says under method.
type Options struct {
	Algorithm string      `json:"algorithm"` // one of the algorithm constants (pvi)
	Outcome   glm.Outcome `json:"outcome"`   // what is to be predicted; no default
	// logistic or linear; follows from the outcome's levels
	Likelihood        string   `json:"likelihood"`
	NoiseVariance     *float64 `json:"noise_variance,omitempty"` // linear: of the outcome around its expectation
	Intercept         bool     `json:"intercept"`                // a column of ones (true)
	PriorVariance     float64  `json:"prior_variance"`           // of every weight around 0 (1)
	InterceptVariance float64  `json:"intercept_variance"`       // (prior_variance)

	// standard, range or constants (standard, or range with privacy)
	Scaling   string         `json:"scaling"`
	Constants []glm.Constant `json:"constants,omitempty"` // scaling constants: for every number
	// neutral (the default): a missing cell has no effect; refuse: it is an error
	Missing string `json:"missing"`

	Schedule string  `json:"schedule"` // one of the schedule constants (random; exact sequential)
	Rounds   int     `json:"rounds"`   // updates of each site; asynchronous and random: on average
	Damping  float64 `json:"damping"`  // share of each change that is applied, in (0, 1]
	// exact: the study ends when no site's update moves q by more, in standard deviations (0.001)
	Tolerance *float64 `json:"tolerance,omitempty"`
	// public numbers of rows, where a schedule or an update goes by them
	Rows []SiteRows `json:"rows,omitempty"`

	// Clip bounds, under differential privacy, the norm of a row's gradient, scaled as in
	// rowGradient (75). It decides nothing about privacy, which the noise is scaled for.
	Clip   *float64        `json:"clip,omitempty"`
	Update *updateSettings `json:"update,omitempty"` // of PVI
	Global *updateSettings `json:"global,omitempty"` // of Global VI
}

// SiteRows is how many rows a site has, which is then public.
type SiteRows struct {
	Site string `json:"site"`
	Rows int    `json:"rows"`
}

// updateSettings are those of an update. Defaults are those of Table 2 of the paper, under privacy of its
// Table 3, for the one step of Global VI of its Table 4, and those of its code.
type updateSettings struct {
	// under privacy: deviation of a sum's noise, in units of clip (5)
	Noise float64 `json:"noise,omitempty"`
	Steps int     `json:"steps,omitempty"` // of the optimiser in each update (25)
	Batch int     `json:"batch,omitempty"` // rows of a minibatch, or all that there are (100)
	// in place of batch: of a site's rows, at least 20 (private 0.02)
	BatchShare   float64 `json:"batch_share,omitempty"`
	Draws        int     `json:"draws"`         // of the activation, shared by a minibatch (50)
	LearningRate float64 `json:"learning_rate"` // of each site's own Adagrad (2; private 0.5; Global VI 0.05)
	// DeltaByRows makes every site spend at the δ that the paper has for its number of rows, the power of ten
	// at or below one over it (Table 1), and the promise that of the plan, which must be no less. By default
	// the plan's δ is everybody's.
	DeltaByRows bool `json:"delta_by_rows,omitempty"`
}

// The paper's settings beside [updateSettings].
const (
	paperClip    = 75.0
	paperDamping = 0.1
	paperRounds  = 1000 // more updates than any total allows
)

// Former implements [study.Former].
func (*Options) Former(key string) string {
	switch key {
	case "coding", "references", "splines", "interactions", "offset", "weight", "priors", "site_effects":
		return "leave it out, or name: regression"
	}
	return ""
}

// likelihood is that of an outcome given its activation.
func (o *Options) likelihood() glm.Likelihood {
	switch {
	case o.Likelihood != glm.LikelihoodLinear:
		return glm.Logistic{}
	case o.NoiseVariance == nil:
		return glm.Linear{Variance: 1}
	}
	return glm.Linear{Variance: *o.NoiseVariance}
}

// encodingOf makes a column of every number of the plan, and one of every level of its categories.
func encodingOf(o *Options, p *study.Plan) glm.Encoding {
	e := glm.Encoding{Intercept: o.Intercept}
	for _, v := range p.Views {
		for _, f := range v.Features {
			c := glm.Column{Name: f.Name, Scale: 1}
			switch {
			case f.Kind == study.Category:
				c = glm.Column{Name: f.Name, Levels: f.Levels}
			case o.Scaling == glm.ScaleRange:
				c = glm.FromRange(f.Name, f.Range[0], f.Range[1])
			}
			for _, k := range o.Constants {
				if k.Feature == f.Name {
					c.Centre, c.Scale = k.Centre, k.Scale
				}
			}
			c.Missing.Rule = o.Missing
			e.Columns = append(e.Columns, c)
		}
	}
	return e
}

// priorOf is the prior of the weights of the columns of a frame.
func priorOf(o *Options, f *glm.Frame) glm.Gaussian {
	g := glm.Isotropic(f.Weights(), 0, o.PriorVariance)
	for j, group := range f.Encoding.Groups() {
		if group == glm.InterceptGroup {
			g.Lambda[j] = 1 / o.InterceptVariance
		}
	}
	return g
}

// Fill puts in the defaults that depend on other options and on privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	private := p.Privacy.Differential()
	fill := func(key string, field *float64, value float64) {
		if missing(key) {
			*field = value
		}
	}
	if missing("likelihood") {
		o.Likelihood = glm.LikelihoodLogistic
		if len(o.Outcome.Levels) == 0 {
			o.Likelihood = glm.LikelihoodLinear
		}
	}
	fill("intercept_variance", &o.InterceptVariance, o.PriorVariance)
	if missing("scaling") {
		o.Scaling = glm.ScaleStandard
		if private {
			o.Scaling = glm.ScaleRange
		}
		if len(o.Constants) > 0 {
			o.Scaling = glm.ScaleConstants
		}
	}
	schedule, rounds, damping := scheduleRandom, paperRounds, paperDamping
	switch o.Algorithm {
	case algorithmGlobal:
		damping = 1
		if o.Global == nil {
			o.Global = &updateSettings{}
		}
		o.Global.fill("global.", 0.05, false, missing)
	case algorithmExact:
		schedule, rounds, damping = scheduleSequential, 20, 1
		if missing("tolerance") {
			small := 1e-3
			o.Tolerance = &small
		}
		if !missing("schedule") && o.Schedule != scheduleSequential {
			rounds = 60
		}
		// Changes that are made beside each other add up: with as many sites, a full step of each would be that many
		// steps in the direction they share.
		if o.Schedule == scheduleSynchronous || o.Schedule == scheduleAsynchronous {
			damping = 2 / float64(1+max(1, len(p.Sites)))
		}
	default:
		if o.Update == nil {
			o.Update = &updateSettings{}
		}
		rate := 0.5
		if !private {
			rounds, rate = 100, 2 // 1000 updates of the paper's ten clients
		} else {
			fill("update.noise", &o.Update.Noise, 5)
			if missing("clip") {
				bound := paperClip
				o.Clip = &bound
			}
		}
		if missing("update.steps") {
			o.Update.Steps = 25
		}
		o.Update.fill("update.", rate, private, missing)
	}
	if missing("schedule") {
		o.Schedule = schedule
	}
	if missing("rounds") {
		o.Rounds = rounds
	}
	fill("damping", &o.Damping, damping)
}

// fill puts in the defaults of a step, whose keys begin with at.
func (s *updateSettings) fill(at string, rate float64, byShare bool, missing func(key string) bool) {
	if missing(at + "learning_rate") {
		s.LearningRate = rate
	}
	if missing(at + "draws") {
		s.Draws = 50
	}
	switch {
	case !missing(at+"batch") || !missing(at+"batch_share"):
	case byShare:
		s.BatchShare = 0.02
	default:
		s.Batch = 100
	}
}

// check checks a step.
func (s *updateSettings) check(at string, private bool, report study.Report) {
	glm.Positive(report, at+"learning_rate", s.LearningRate)
	report.AtLeast(at+"draws", s.Draws, 1)
	if s.BatchShare == 0 {
		report.AtLeast(at+"batch", s.Batch, 1)
	} else if !report.If(s.Batch != 0, at+"batch", "the minibatch has a share of the rows already",
		"one of batch and batch_share") {
		report.Share(at+"batch_share", s.BatchShare, "of the rows cannot be in a minibatch")
	}
	if private {
		glm.Positive(report, at+"noise", s.Noise)
		return
	}
	report.If(s.Noise != 0 || s.DeltaByRows, at+"noise", "noise and delta_by_rows mean nothing with protection: none",
		"leave them out")
}

// byTotal says whether the schedule counts updates of all sites together.
func (o *Options) byTotal() bool {
	return o.Schedule == scheduleRandom || o.Schedule == scheduleAsynchronous
}

// rowsOf returns the declared number of rows of a site; 1 if none are.
func (o *Options) rowsOf(site string) int {
	for _, r := range o.Rows {
		if r.Site == site {
			return r.Rows
		}
	}
	return 1
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	report.OneOf("algorithm", o.Algorithm, algorithmPVI, algorithmExact, algorithmGlobal)
	report.OneOf("likelihood", o.Likelihood, glm.LikelihoodLogistic, glm.LikelihoodLinear)
	o.checkModel(p, report)
	report.OneOf("schedule", o.Schedule, scheduleSequential, scheduleSynchronous, scheduleAsynchronous, scheduleRandom)
	report.Share("damping", o.Damping, "of a change cannot be applied")
	o.checkRows(p, report)
	if o.Tolerance != nil {
		report.If(!glm.Inside(*o.Tolerance, 0, math.MaxFloat64), "tolerance",
			fmt.Sprintf("%v is negative or not finite", *o.Tolerance),
			"0 to make all rounds, or a change in standard deviations such as 0.001")
		report.If(o.Algorithm != algorithmExact, "tolerance", "noise and steps of single minibatches never settle",
			"leave it out, or without privacy algorithm: exact")
	}
	private := p.Privacy.Differential()
	report.If(o.Algorithm != algorithmPVI && private, "algorithm", fmt.Sprintf("%q has no differentially private form",
		o.Algorithm), "algorithm: pvi")
	for _, of := range []struct {
		key, algorithm, has string
		settings            *updateSettings
	}{{"global", algorithmGlobal, "learning_rate, batch and draws", o.Global},
		{"update", algorithmPVI, "steps, batch, draws and learning_rate, with privacy also noise", o.Update}} {
		if o.Algorithm != of.algorithm {
			report.If(of.settings != nil, of.key, "these options belong to algorithm: "+of.algorithm, "leave them out")
		} else if !report.If(of.settings == nil, of.key, "missing", of.has) {
			of.settings.check(of.key+".", private, report)
		}
	}
	if o.Algorithm == algorithmGlobal {
		report.If(!o.byTotal(), "schedule", fmt.Sprintf("%q is not one of algorithm: global", o.Schedule),
			"random, as published, or asynchronous")
		report.If(o.Damping != 1, "damping", "the steps of algorithm: global are not damped", "leave it out")
		report.If(o.Global != nil && o.Global.Steps != 0, "global.steps", "a site of algorithm: global takes one step",
			"leave it out")
	} else if o.Algorithm == algorithmPVI && o.Update != nil {
		report.AtLeast("update.steps", o.Update.Steps, 1)
	}
	if private {
		o.checkPrivacy(p, report)
		return
	}
	report.If(o.Clip != nil, "clip", "means nothing with protection: none", "leave it out")
}

// checkModel checks the outcome, and how it depends on the features.
func (o *Options) checkModel(p *study.Plan, report study.Report) {
	report.OneOf("missing", o.Missing, glm.Neutral, glm.Refuse)
	linear := o.Likelihood == glm.LikelihoodLinear
	switch {
	case !o.Outcome.Check(p, o.Likelihood, report):
	case report.If(!linear && o.NoiseVariance != nil, "noise_variance", "belongs to likelihood: linear",
		"leave it out"):
	case !linear || report.If(o.NoiseVariance == nil, "noise_variance",
		"missing: a linear model needs the variance of the outcome around its expectation",
		"such as noise_variance: 1, in the outcome's unit squared"):
	default:
		glm.Positive(report, "noise_variance", *o.NoiseVariance)
	}
	report.If(o.Outcome.Range != nil, "outcome", "a number's range means nothing to "+Name,
		"leave it out, or name: regression")
	report.If(o.Scaling == glm.ScaleStandard && p.Privacy.Differential(), "scaling", "pooled means and standard "+
		"deviations would leave the sites without noise", "scaling: range, or constants that are publicly known")
	glm.CheckScaling(p, o.Scaling, o.Scaling == glm.ScaleRange, o.Constants, report)
	glm.Positive(report, "prior_variance", o.PriorVariance)
	glm.Positive(report, "intercept_variance", o.InterceptVariance)
	report.AtLeast("rounds", o.Rounds, 1)
}

// checkRows checks the declared numbers of rows.
func (o *Options) checkRows(p *study.Plan, report study.Report) {
	seen := map[string]bool{}
	for i, r := range o.Rows {
		at := fmt.Sprintf("rows[%d]", i)
		report.If(!slices.Contains(p.Sites, r.Site), at+".site", fmt.Sprintf("%q is not a site of the plan", r.Site),
			"one of "+problem.Names(p.Sites))
		report.If(seen[r.Site], at+".site", fmt.Sprintf("site %s is named twice", r.Site), "one entry for each site")
		report.If(r.Rows < 1, at+".rows", fmt.Sprintf("%d rows", r.Rows), "at least 1")
		seen[r.Site] = true
	}
	report.If(len(o.Rows) == 0 && (o.Algorithm == algorithmGlobal || p.Privacy.Differential()), "rows",
		"missing: minibatches, gradients and the schedule go by every site's number of rows",
		"the number of rows of each site, which is then public")
	for _, site := range p.Sites {
		report.If(len(o.Rows) > 0 && !seen[site], "rows", fmt.Sprintf("site %s has no entry", site),
			"one entry for each site, or none at all")
	}
}

// checkPrivacy checks what belongs to differential privacy.
func (o *Options) checkPrivacy(p *study.Plan, report study.Report) {
	pr := p.Privacy
	report.If(pr.Total == nil && pr.PerRelease != nil, "", Name+" makes as many updates as a total allows, and the "+
		"plan has none", "privacy.total instead of per_release")
	report.If(pr.Unit == study.UnitSite || pr.Adjacency == account.ReplaceOne, "",
		"the published accountant knows one subject more or less", "privacy.unit: subject and adjacency: add-remove, "+
			"or of two classes name: regression, which has both adjacencies")
	report.If(pr.Diagnostics > 0 && o.Likelihood == glm.LikelihoodLinear, "", "privacy.diagnostics buys how well "+
		"classes of single subjects are predicted", "leave it out for a linear likelihood")
	if o.Algorithm == algorithmPVI && !report.If(o.Clip == nil, "clip", "missing: the largest norm of a row's gradient",
		"leave it out for the default") {
		glm.Positive(report, "clip", *o.Clip)
	}
}

// BeyondRange implements [study.RangeTeller].
func (o *Options) BeyondRange(*study.Plan) string {
	if o.Scaling == glm.ScaleRange {
		return study.RangeEnds
	}
	return study.RangeAsIs
}
