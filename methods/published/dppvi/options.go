package dppvi

import (
	"fmt"
	"slices"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Name is the method's.
const Name = "dp-pvi"

// The algorithms.
const (
	algorithmPVI    = "pvi"    // partitioned variational inference, Algorithm 1; under privacy DP-PVI
	algorithmGlobal = "global" // the baseline, Global VI
)

// The schedules: which site refines its factor when.
const (
	// scheduleSequential lets one site after the other update, in the plan's order,
	// each from the q that the last one left.
	scheduleSequential = "sequential"
	// scheduleSynchronous lets all sites update from the same q, and multiplies
	// their changes together.
	scheduleSynchronous = "synchronous"
	// scheduleAsynchronous lets every site work all the time, from the q that was
	// newest when it began. How long an update takes is drawn from an exponential
	// distribution whose mean is in proportion to the site's declared rows.
	scheduleAsynchronous = "asynchronous"
	// scheduleRandom is what the paper simulates as asynchronous: one site at a
	// time, drawn with a probability in proportion to 1/rows, from the newest q.
	scheduleRandom = "random"
)

// Options are what a plan says under method.
type Options struct {
	Algorithm         string      `json:"algorithm"`                // one of the algorithm constants (pvi)
	Outcome           glm.Outcome `json:"outcome"`                  // what is to be predicted; no default
	Likelihood        string      `json:"likelihood"`               // logistic, softmax or linear; follows from the outcome's levels
	NoiseVariance     *float64    `json:"noise_variance,omitempty"` // linear: of the outcome around its expectation
	Intercept         bool        `json:"intercept"`                // a column of ones (true)
	PriorVariance     float64     `json:"prior_variance"`           // of every weight around 0 (1)
	InterceptVariance float64     `json:"intercept_variance"`       // (prior_variance)

	Scaling   string             `json:"scaling"`             // standard, range or constants (standard, or range with privacy)
	Constants []options.Constant `json:"constants,omitempty"` // scaling constants: for every number
	Missing   string             `json:"missing"`             // neutral (the default): a missing cell has no effect; refuse: it is an error

	Schedule  string     `json:"schedule"`            // one of the schedule constants (sequential; Global VI and with privacy random)
	Rounds    int        `json:"rounds"`              // updates of each site; asynchronous and random: on average
	Damping   float64    `json:"damping"`             // share of each change that is applied, in (0, 1]
	Tolerance *float64   `json:"tolerance,omitempty"` // PVI without privacy: the study ends when no site's update moves q by more, in standard deviations (0.001)
	Rows      []SiteRows `json:"rows,omitempty"`      // public numbers of rows, where a schedule or an update goes by them

	// Clip bounds, under differential privacy, the norm of a row's gradient, scaled as in
	// [glm.Gradient] (75). It decides nothing about privacy, which the noise is scaled for.
	Clip   *float64        `json:"clip,omitempty"`
	Update *updateSettings `json:"update,omitempty"` // under differential privacy
	Global *baseline       `json:"global,omitempty"` // of Global VI
}

// SiteRows is how many rows a site has, which is then public.
type SiteRows struct {
	Site string `json:"site"`
	Rows int    `json:"rows"`
}

// updateSettings are those of a private update. Defaults are those of Table 2 of the paper and of its
// code.
type updateSettings struct {
	Noise        float64 `json:"noise"`         // standard deviation of the noise on a sum of gradients, in units of clip (5)
	Steps        int     `json:"steps"`         // of the optimiser in each update (25)
	BatchShare   float64 `json:"batch_share"`   // of a site's rows that a minibatch has on average (0.02; at least 20 rows)
	Draws        int     `json:"draws"`         // of the activation, shared by a minibatch (50)
	LearningRate float64 `json:"learning_rate"` // of Adagrad, whose accumulators each site keeps (0.5)
	// DeltaByRows makes every site spend at the δ that the paper has for its number of rows, the power of ten
	// at or below one over it (Table 1), and the promise that of the plan, which must be no less. By default
	// the plan's δ is everybody's.
	DeltaByRows bool `json:"delta_by_rows,omitempty"`
}

// baseline are the settings of Global VI.
type baseline struct {
	LearningRate float64 `json:"learning_rate"` // of each site's Adagrad (0.5)
	BatchShare   float64 `json:"batch_share"`   // of a site's rows in a minibatch (0.02; at least 20 rows)
}

// The paper's settings beside [updateSettings].
const (
	paperClip    = 75.0
	paperDamping = 0.1
	paperRounds  = 1000 // more updates than any total allows
	paperRate    = 0.5
	paperShare   = 0.02
)

// regression are the options as what a regression is made of reads them.
func (o *Options) regression() *options.Options {
	return options.Options{Form: options.FormIndependent, Outcome: o.Outcome, Likelihood: o.Likelihood, NoiseVariance: o.NoiseVariance,
		Intercept: o.Intercept, PriorVariance: o.PriorVariance, InterceptVariance: o.InterceptVariance, Coding: options.CodingLevels,
		Scaling: o.Scaling, Constants: o.Constants, Missing: o.Missing, Schedule: o.Schedule, Rounds: o.Rounds, Damping: o.Damping,
		Tolerance: o.Tolerance, Clip: o.Clip}.In(o)
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
		switch n := len(o.Outcome.Levels); {
		case n == 2:
			o.Likelihood = options.LikelihoodLogistic
		case n > 2:
			o.Likelihood = options.LikelihoodSoftmax
		default:
			o.Likelihood = options.LikelihoodLinear
		}
	}
	fill("intercept_variance", &o.InterceptVariance, o.PriorVariance)
	if missing("scaling") {
		o.Scaling = options.ScaleStandard
		if private {
			o.Scaling = options.ScaleRange
		}
		if len(o.Constants) > 0 {
			o.Scaling = options.ScaleConstants
		}
	}
	schedule, rounds, damping := scheduleRandom, paperRounds, paperDamping
	switch {
	case o.Algorithm == algorithmGlobal:
		damping = 1
		if o.Global == nil {
			o.Global = &baseline{}
		}
		fill("global.learning_rate", &o.Global.LearningRate, paperRate)
		fill("global.batch_share", &o.Global.BatchShare, paperShare)
	case private:
		o.fillUpdate(missing, fill)
	default:
		schedule, rounds, damping = o.exact(p, missing)
	}
	if missing("schedule") {
		o.Schedule = schedule
	}
	if missing("rounds") {
		o.Rounds = rounds
	}
	fill("damping", &o.Damping, damping)
}

// exact returns the defaults of PVI without privacy.
func (o *Options) exact(p *study.Plan, missing func(key string) bool) (schedule string, rounds int, damping float64) {
	if missing("tolerance") {
		small := 1e-3
		o.Tolerance = &small
	}
	if missing("schedule") || o.Schedule == scheduleSequential {
		return scheduleSequential, 20, 1
	}
	// Changes that are made beside each other add up: with as many sites, a
	// full step of each would be that many steps in the direction they share.
	damping = 1
	if o.Schedule == scheduleSynchronous || o.Schedule == scheduleAsynchronous {
		damping = 2 / float64(1+max(1, len(p.Sites)))
	}
	return o.Schedule, 60, damping
}

func (o *Options) fillUpdate(missing func(key string) bool, fill func(key string, field *float64, value float64)) {
	if missing("clip") {
		bound := paperClip
		o.Clip = &bound
	}
	if o.Update == nil {
		o.Update = &updateSettings{}
	}
	fill("update.noise", &o.Update.Noise, 5)
	fill("update.batch_share", &o.Update.BatchShare, paperShare)
	fill("update.learning_rate", &o.Update.LearningRate, paperRate)
	if missing("update.steps") {
		o.Update.Steps = 25
	}
	if missing("update.draws") {
		o.Update.Draws = 50
	}
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
	report.OneOf("algorithm", o.Algorithm, algorithmPVI, algorithmGlobal)
	report.OneOf("likelihood", o.Likelihood, options.LikelihoodLogistic, options.LikelihoodSoftmax, options.LikelihoodLinear)
	o.regression().CheckModel(p, report)
	report.OneOf("schedule", o.Schedule, scheduleSequential, scheduleSynchronous, scheduleAsynchronous, scheduleRandom)
	report.Share("damping", o.Damping, "of a change cannot be applied")
	o.checkRows(p, report)
	if o.Tolerance != nil && !(*o.Tolerance >= 0 && glm.Finite(*o.Tolerance)) {
		report("tolerance", fmt.Sprintf("%v is negative or not finite", *o.Tolerance), "0 to make all rounds, or a change in standard deviations such as 0.001")
	}
	if o.Tolerance != nil && (o.Algorithm == algorithmGlobal || p.Privacy.Differential()) {
		report("tolerance", "noise and steps of single minibatches never settle", "leave it out")
	}
	o.checkGlobal(p, report)
	o.checkPrivacy(p, report)
}

// checkRows checks the declared numbers of rows.
func (o *Options) checkRows(p *study.Plan, report study.Report) {
	seen := map[string]bool{}
	for i, r := range o.Rows {
		at := fmt.Sprintf("rows[%d]", i)
		switch {
		case !slices.Contains(p.Sites, r.Site):
			report(at+".site", fmt.Sprintf("%q is not a site of the plan", r.Site), "one of "+problem.Names(p.Sites))
		case seen[r.Site]:
			report(at+".site", fmt.Sprintf("site %s is named twice", r.Site), "one entry for each site")
		case r.Rows < 1:
			report(at+".rows", fmt.Sprintf("%d rows", r.Rows), "at least 1")
		}
		seen[r.Site] = true
	}
	if len(o.Rows) == 0 && (o.Algorithm == algorithmGlobal || p.Privacy.Differential()) {
		report("rows", "missing: minibatches, gradients and the schedule go by every site's number of rows", "the number of rows of each site, which is then public")
	}
	for _, site := range p.Sites {
		if len(o.Rows) > 0 && !seen[site] {
			report("rows", fmt.Sprintf("site %s has no entry", site), "one entry for each site, or none at all")
		}
	}
}

// checkGlobal checks what belongs to Global VI alone.
func (o *Options) checkGlobal(p *study.Plan, report study.Report) {
	if o.Algorithm != algorithmGlobal {
		if o.Global != nil {
			report("global", "these options belong to algorithm: global", "leave them out")
		}
		return
	}
	if p.Privacy.Differential() {
		report("algorithm", "the baseline has no differentially private form", "algorithm: pvi")
	}
	if !o.byTotal() {
		report("schedule", fmt.Sprintf("%q is not one of algorithm: global", o.Schedule), "random, as published, or asynchronous")
	}
	if o.Damping != 1 {
		report("damping", "the steps of algorithm: global are not damped", "leave it out")
	}
	if o.Global == nil {
		report("global", "missing", "learning_rate and batch_share")
		return
	}
	options.Positive(report, "global.learning_rate", o.Global.LearningRate)
	report.Share("global.batch_share", o.Global.BatchShare, "of the rows cannot be in a minibatch")
}

// checkPrivacy checks what belongs to differential privacy, or to none.
func (o *Options) checkPrivacy(p *study.Plan, report study.Report) {
	pr := p.Privacy
	if !pr.Differential() {
		for key, there := range map[string]bool{"clip": o.Clip != nil, "update": o.Update != nil} {
			if there {
				report(key, "means nothing with protection: none", "leave it out")
			}
		}
		return
	}
	if pr.Total == nil && pr.PerRelease != nil {
		report("", Name+" makes as many updates as a total allows, and the plan has none", "privacy.total instead of per_release")
	}
	if pr.Unit == study.UnitSite || pr.Adjacency == account.ReplaceOne {
		report("", "the published accountant knows one subject more or less", "privacy.unit: subject and adjacency: add-remove, or name: pvi")
	}
	if pr.Diagnostics > 0 && o.Likelihood == options.LikelihoodLinear {
		report("", "privacy.diagnostics buys how well classes of single subjects are predicted", "leave it out for a linear likelihood")
	}
	if o.Algorithm == algorithmGlobal {
		return
	}
	if o.Clip == nil {
		report("clip", "missing: the largest norm of a row's gradient", "leave it out for the default")
	} else {
		options.Positive(report, "clip", *o.Clip)
	}
	if o.Update == nil {
		report("update", "missing", "noise, steps, batch_share, draws and learning_rate")
		return
	}
	options.Positive(report, "update.noise", o.Update.Noise)
	options.Positive(report, "update.learning_rate", o.Update.LearningRate)
	report.AtLeast("update.steps", o.Update.Steps, 1)
	report.AtLeast("update.draws", o.Update.Draws, 1)
	report.Share("update.batch_share", o.Update.BatchShare, "of the rows cannot be in a minibatch")
}

// BeyondRange implements [study.RangeTeller].
func (o *Options) BeyondRange(*study.Plan) string {
	if o.Scaling == options.ScaleRange {
		return study.RangeEnds
	}
	return study.RangeAsIs
}
