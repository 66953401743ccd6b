// Package options is what a plan says under method where the method is mvppca ([Options]),
// and how a site's rows become what the model is fitted to: [Read] reads them once, [Common]
// is the scale that all sites' rows have together, [Solve] takes out what goes linearly with
// subject columns, and the forms in which scales, parameters and laws travel are here. Each
// form packs a value, and its Unpack refuses whatever could not have been packed; their
// encoding is what docs/reference/messages.md lists, and a change of it is a new revision.
package options

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// The variants of the method.
const (
	// federatedVariant is one shot, then a few hierarchical rounds with prior-free
	// messages: the default.
	federatedVariant = "federated"
	// PublishedVariant is the iteration of the paper, for comparison.
	PublishedVariant = "published"
)

// The ways to bring features to common units. All but the last two use one
// scale at all sites, which is kept with the model.
const (
	ScaleStandard  = "standard"     // each feature by its pooled mean and standard deviation
	ScaleView      = "view"         // each feature by its pooled mean, each view by one factor
	ScaleMinMax    = "min-max"      // each feature to [0, 1] by its pooled minimum and maximum
	ScaleRange     = "range"        // each feature to [0, 1] by its public range in the plan: nothing is sent
	ScaleNone      = "none"         // values as they are
	ScaleSiteRange = "site-min-max" // each site by its own minimum and maximum: as published, only to compare
)

// What becomes of subjects who are far from all others of their site.
const (
	ExcludeOutliers = "exclude" // they lack the views in which they are, in fit and assessment
	keepOutliers    = "keep"
)

// Scalings are all of them.
var Scalings = []string{ScaleStandard, ScaleView, ScaleMinMax, ScaleRange, ScaleNone, ScaleSiteRange}

// What the sites' means are taken for.
const (
	MeansAuto     = "auto"     // separate if a test says that they differ
	meansPooled   = "pooled"   // those of samples of one population
	MeansSeparate = "separate" // each site's own: factors are how subjects of one site differ
)

// Options are what a plan says under method.
type Options struct {
	Variant    string `json:"variant"`    // federatedVariant or PublishedVariant
	Latent     int    `json:"latent"`     // q, the number of factors; no default
	Scaling    string `json:"scaling"`    // one of the Scale constants
	Noise      string `json:"noise"`      // "view": one noise variance per view, or "feature": one each (the default of unprotected one shots that scale each feature)
	Rounds     int    `json:"rounds"`     // hierarchical rounds at most (10; 0 stops after the one shot), or published rounds (100)
	Iterations int    `json:"iterations"` // at each site in each round (20 at most, or 15 as published)

	SiteMeans string   `json:"site_means,omitempty"` // federated: one of the Means constants
	LocalRank int      `json:"local_rank,omitempty"` // federated: factors of each site's own fit (4q); fewer where its subjects carry fewer
	Minimum   int      `json:"minimum,omitempty"`    // federated: subjects of a set of views that a site says something of in the one shot (any number)
	Tolerance *float64 `json:"tolerance,omitempty"`  // federated: rounds end when no spread between sites changes by a larger share (0.1); 0: never
	Outliers  string   `json:"outliers,omitempty"`   // federated: "exclude" subjects' views that are far from all others of their site (default), or "keep" them

	// Adjust are what the factors must not be: the model is of what a linear regression on
	// them leaves of the features. Federated only, without differential privacy.
	Adjust []Covariate `json:"adjust,omitempty"`

	Published *PublishedOptions `json:"published,omitempty"`

	// Mechanism is how releases are noised: one of the Mechanism constants where
	// the plan's protection is differential, empty otherwise.
	Mechanism string           `json:"mechanism,omitempty"`
	Clipping  *ClippingOptions `json:"clipping,omitempty"` // of both clipping mechanisms
	Patterns  Patterns         `json:"patterns,omitempty"` // of private plans: the sets of views that subjects can have
}

// Covariate is a subject column that features are adjusted for: one of numbers or, with
// levels, a category. A plan may name a column of numbers alone.
type Covariate struct {
	Column string `json:"column,omitempty"`
	// Levels of a category. The others are compared with the first.
	Levels []string `json:"levels,omitempty"`
}

// PublishedOptions are the options that only the published variant has.
type PublishedOptions struct {
	FirstIterations int              `json:"first_iterations"`          // of EM in round 1 (30)
	Initial         string           `json:"initial"`                   // "random": each site starts by itself; "prior": from the plan's prior
	Restart         string           `json:"restart"`                   // later rounds start at a "draw" from the prior, or at its "mean"
	Prior           *InitialPrior    `json:"prior,omitempty"`           // with initial: prior
	SiteIterations  []SiteIterations `json:"site_iterations,omitempty"` // sites with another number of iterations
}

// InitialPrior is the prior of round 1, in scaled units. Its loadings have no
// mean that anybody could know, so each is drawn from the plan's seed. The
// defaults in brackets are the paper's code; the second are those of the private
// mechanisms where values lie in [0, 1], which must learn little to be right.
type InitialPrior struct {
	LoadingSD  float64 `json:"loading_sd"`  // of the entries of W, around the drawn mean and between sites (1; 0.1)
	Mean       float64 `json:"mean"`        // of every feature (0; 0.5)
	MeanSD     float64 `json:"mean_sd"`     // between sites (1; 0.25)
	NoiseAlpha float64 `json:"noise_alpha"` // inverse-gamma prior of the noise variance (2.25; 3)
	NoiseBeta  float64 `json:"noise_beta"`  // (0.625; 0.08)
}

// SiteIterations gives one site its own number of iterations a round.
type SiteIterations struct {
	Site       string `json:"site"`
	Iterations int    `json:"iterations"`
}

// LocalRank is the default number of factors of a site's own fit: what a fit of q factors
// to all sites loses by it is hundredths of a nat, and thousandths with noise per feature.
func LocalRank(q int) int { return 4 * q }

func Defaults() *Options {
	return &Options{Variant: federatedVariant, Scaling: ScaleStandard, Noise: "view"}
}

// Fill puts in the defaults that depend on the variant, and on what the plan
// says of privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	o.fillMechanism(p, missing)
	if missing("noise") && o.OneShot() && o.Mechanism == "" && o.ScalesFeatures() {
		o.Noise = "feature"
	}
	o.fillVariant(p, missing)
}

// ScalesFeatures says whether each feature is scaled by itself: then features of a view
// differ in how much of them is noise, whatever they were before.
func (o *Options) ScalesFeatures() bool {
	return o.Scaling != ScaleView && o.Scaling != ScaleNone
}

func (o *Options) fillVariant(p *study.Plan, missing func(key string) bool) {
	set := func(key string, field *int, value int) {
		if missing(key) {
			*field = value
		}
	}
	if o.Mechanism == MechanismStatistics { // one release, and nothing is iterated at the sites
		return
	}
	if o.Variant != PublishedVariant {
		set("rounds", &o.Rounds, 10)
		set("iterations", &o.Iterations, 20)
		set("local_rank", &o.LocalRank, LocalRank(o.Latent))
		if missing("site_means") {
			o.SiteMeans = MeansAuto
		}
		if missing("tolerance") {
			change := 0.1
			o.Tolerance = &change
		}
		if missing("outliers") {
			o.Outliers = ExcludeOutliers
		}
		return
	}
	set("rounds", &o.Rounds, o.publishedRounds(p))
	set("iterations", &o.Iterations, 15)
	if o.Published == nil {
		o.Published = &PublishedOptions{}
	}
	q := o.Published
	set("published.first_iterations", &q.FirstIterations, 30)
	if missing("published.initial") {
		q.Initial = "random"
		if o.privateFromStart() {
			q.Initial = "prior"
		}
	}
	if missing("published.restart") {
		q.Restart = "draw"
		if o.Mechanism == MechanismJoint { // what a draw adds by chance would take up the clip
			q.Restart = "mean"
		}
	}
	if q.Initial == "prior" && q.Prior == nil {
		q.Prior = &InitialPrior{}
	}
	if q.Prior != nil {
		q.Prior.fill(o.defaultPrior(), func(key string) bool { return missing("published.prior." + key) })
	}
}

// fill takes over what was not written.
func (p *InitialPrior) fill(from InitialPrior, missing func(key string) bool) {
	for key, f := range map[string]struct {
		field *float64
		value float64
	}{
		"loading_sd": {&p.LoadingSD, from.LoadingSD}, "mean": {&p.Mean, from.Mean}, "mean_sd": {&p.MeanSD, from.MeanSD},
		"noise_alpha": {&p.NoiseAlpha, from.NoiseAlpha}, "noise_beta": {&p.NoiseBeta, from.NoiseBeta},
	} {
		if missing(key) {
			*f.field = f.value
		}
	}
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	report.OneOf("variant", o.Variant, federatedVariant, PublishedVariant)
	report.OneOf("scaling", o.Scaling, Scalings...)
	report.OneOf("noise", o.Noise, "view", "feature")
	o.checkMechanism(p, report)
	o.checkAdjust(p, report)
	features := 0
	for _, v := range p.Views {
		features += len(v.Features)
	}
	switch {
	case o.Latent < 1:
		report("latent", "the number of factors is missing", "a whole number from 1; try 5 and look at the variance explained")
	case features > 0 && o.Latent >= features:
		report("latent", fmt.Sprintf("%d factors for %d features", o.Latent, features), "fewer factors than features")
	}
	if o.Mechanism != MechanismStatistics {
		report.AtLeast("iterations", o.Iterations, 1)
	}
	for k, v := range p.Views {
		for j, f := range v.Features {
			at := fmt.Sprintf("views[%d].features[%d]", k, j)
			if f.Kind == study.Category {
				report(at, f.Name+" is a category, and mvppca models numbers", "leave it out, or list it under subjects")
			}
			if o.Scaling == ScaleRange && f.Range == nil {
				report("scaling", fmt.Sprintf("%q needs the range of every feature, and %s (%s) has none", ScaleRange, at, f.Name),
					fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known, or another scaling", f.Name))
			}
		}
	}
	if o.Variant == PublishedVariant {
		o.checkPublished(p, report)
		return
	}
	if o.Published != nil {
		report("published", "these options belong to the published variant", "variant: published, or leave them out")
	}
	if o.Mechanism == MechanismStatistics {
		o.checkStatistics(p, report)
		return
	}
	report.AtLeast("rounds", o.Rounds, 0)
	report.OneOf("site_means", o.SiteMeans, MeansAuto, meansPooled, MeansSeparate)
	report.AtLeast("minimum", o.Minimum, 0)
	report.OneOf("outliers", o.Outliers, ExcludeOutliers, keepOutliers)
	if o.Latent > 0 { // else its default is wrong too
		report.AtLeast("local_rank", o.LocalRank, 1)
	}
	if o.Scaling == ScaleSiteRange {
		report("scaling", fmt.Sprintf("%q gives every site other units, which only the published variant puts up with", ScaleSiteRange), "one of "+strings.Join(Scalings[:4], ", "))
	}
	switch {
	case o.Tolerance == nil:
		report("tolerance", "missing", "0 to run all rounds, or a share of the spread between sites such as 0.1")
	case *o.Tolerance < 0:
		report("tolerance", fmt.Sprintf("%v is negative", *o.Tolerance), "0 to run all rounds, or a share of the spread between sites such as 0.1")
	}
}

func (o *Options) checkPublished(p *study.Plan, report study.Report) {
	report.AtLeast("rounds", o.Rounds, 1)
	if o.Noise == "feature" {
		report("noise", "the published variant has one noise variance per view", "noise: view, or variant: federated")
	}
	if o.Minimum != 0 {
		report("minimum", "this option belongs to the federated variant", "leave it out")
	}
	if o.LocalRank != 0 {
		report("local_rank", "this option belongs to the federated variant", "leave it out")
	}
	if o.Tolerance != nil {
		report("tolerance", "this option belongs to the federated variant", "leave it out")
	}
	if o.SiteMeans != "" {
		report("site_means", "this option belongs to the federated variant", "leave it out")
	}
	if o.Outliers != "" {
		report("outliers", "this option belongs to the federated variant", "leave it out")
	}
	q := o.Published
	if q == nil {
		report("published", "missing", "first_iterations, initial and restart")
		return
	}
	report.AtLeast("published.first_iterations", q.FirstIterations, 1)
	report.OneOf("published.initial", q.Initial, "random", "prior")
	report.OneOf("published.restart", q.Restart, "draw", "mean")
	if q.Prior != nil {
		if q.Initial != "prior" {
			report("published.prior", "is used only with initial: prior", "initial: prior, or leave it out")
		}
		prior := report.Within("published.prior")
		prior.Positive("loading_sd", q.Prior.LoadingSD)
		prior.Positive("mean_sd", q.Prior.MeanSD)
		prior.Positive("noise_alpha", q.Prior.NoiseAlpha)
		prior.Positive("noise_beta", q.Prior.NoiseBeta)
	}
	for i, s := range q.SiteIterations {
		at := fmt.Sprintf("published.site_iterations[%d]", i)
		if !slices.Contains(p.Sites, s.Site) {
			report(at+".site", fmt.Sprintf("%q is not a site of the plan", s.Site), "one of "+problem.Names(p.Sites))
		}
		if slices.ContainsFunc(q.SiteIterations[:i], func(o SiteIterations) bool { return o.Site == s.Site }) {
			report(at+".site", fmt.Sprintf("site %s is named twice", s.Site), "one entry for each site")
		}
		report.AtLeast(at+".iterations", s.Iterations, 1)
	}
}

// IterationsIn returns the number of iterations of a site in a published round.
func (o *Options) IterationsIn(round int, site string) int {
	if round == 1 {
		return o.Published.FirstIterations
	}
	for _, s := range o.Published.SiteIterations {
		if s.Site == site {
			return s.Iterations
		}
	}
	return o.Iterations
}

// NoiseGroups returns which features share a noise variance.
func (o *Options) NoiseGroups() ppca.Noise {
	if o.Noise == "feature" {
		return ppca.NoisePerFeature
	}
	return ppca.NoisePerView
}

// OneShot says whether sites describe their subjects once, and the model is fitted to that.
func (o *Options) OneShot() bool { return o.Variant == federatedVariant }

// MaximumLikelihood says whether the model is the likeliest for the subjects of all sites.
func (o *Options) MaximumLikelihood() bool { return o.OneShot() && o.Mechanism == "" }

// TypicalSite says whether the model is that of a typical site; otherwise it describes the
// pooled population.
func (o *Options) TypicalSite() bool { return o.Variant == PublishedVariant }

// Pools says whether the scale comes from the sites.
func (o *Options) Pools() bool {
	return slices.Contains([]string{ScaleStandard, ScaleView, ScaleMinMax}, o.Scaling)
}

// Schedule yields the kinds of task of a study in order, and how often each
// comes up at most.
func (o *Options) Schedule(p *study.Plan) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, kind := range []string{TaskAdjust, TaskScale, TaskFit, TaskRefill, TaskRefine, TaskIterate, TaskClip, TaskStatistics, TaskCheck, TaskAssess} {
			times := 1
			switch {
			case !o.Asks(p, kind):
				continue
			case kind == TaskClip && o.FirstInClear():
				times = o.Rounds - 1
			case kind == TaskClip, kind == TaskRefine, kind == TaskIterate && !o.FirstInClear():
				times = o.Rounds
			}
			if !yield(kind, times) {
				return
			}
		}
	}
}

// Asks says whether a task of this kind can come up in the plan's study.
func (o *Options) Asks(p *study.Plan, kind string) bool {
	switch kind {
	case TaskAdjust:
		return len(o.Adjust) > 0
	case TaskScale:
		return o.Pools() && o.Mechanism == ""
	case TaskFit, TaskRefill:
		return o.Variant == federatedVariant && o.Mechanism == ""
	case TaskRefine:
		return o.Variant == federatedVariant && o.Rounds > 0 && o.Mechanism == ""
	case TaskIterate:
		return o.Variant == PublishedVariant && (o.Mechanism == "" || o.FirstInClear())
	case TaskClip:
		return o.Clips()
	case TaskStatistics:
		return o.Mechanism == MechanismStatistics
	case TaskCheck:
		return o.Mechanism == MechanismStatistics && p.Privacy.Diagnostics > 0
	}
	return kind == TaskAssess && o.Mechanism == ""
}
