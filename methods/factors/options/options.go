// Package options is what a plan says under method where the method is factors ([Options]),
// and what goes before the fit: [Solve] takes out what goes linearly with subject columns, by [Sums] of sites, and
// [Excluded] finds outliers.
package options

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/study"
)

// What becomes of subjects who are far from all others of their site.
const (
	excludeOutliers = "exclude" // they lack the views in which they are, in fit and assessment
	keepOutliers    = "keep"
)

// What the sites' means are taken for.
const (
	MeansAuto     = "auto"     // separate if a test says that they differ
	meansPooled   = "pooled"   // those of samples of one population
	MeansSeparate = "separate" // each site's own: factors are how subjects of one site differ
)

// Factors is a number of factors, or [Select].
type Factors int

// Select leaves the number of factors to the coordinator, who fits models of 1, 2 and so on to the sites' sums and
// takes the smallest that is as likely for subjects left out as the best, within a standard error.
const Select Factors = -1

// FromWord lets a plan say select.
func (f *Factors) FromWord(s string) bool {
	*f = Select
	return s == "select"
}

// String is what a plan says.
func (f Factors) String() string {
	if f == Select {
		return "select"
	}
	return strconv.Itoa(int(f))
}

// MarshalJSON writes a number, or select.
func (f Factors) MarshalJSON() ([]byte, error) {
	if f == Select {
		return []byte(`"select"`), nil
	}
	return []byte(strconv.Itoa(int(f))), nil
}

// Options are what a plan says under method.
type Options struct {
	// Form is [form] in every plan. Plans do not say it, but digests and model files have it under
	// the name that it had when there was a choice.
	Form string `cbor:"variant" json:"-"`

	Latent  Factors `json:"latent"`  // q, the number of factors, or Select; no default
	Scaling string  `json:"scaling"` // one of the Scale constants
	// "view": one noise variance per view, or "feature": one each (the default where each feature is scaled)
	Noise string `json:"noise"`
	// exchanges at most in which what subjects lack is filled by the model of all sites (60)
	Rounds int `json:"rounds"`

	SiteMeans string `json:"site_means,omitempty"` // one of the Means constants
	// "exclude" subjects' views that are far from all others of their site (default), or "keep" them
	Outliers string `json:"outliers,omitempty"`

	// Adjust are what the factors must not be: the model is of what a linear regression on
	// them leaves of the features. Without differential privacy only.
	Adjust []Covariate `json:"adjust,omitempty"`

	// Mechanism is how releases are noised: [MechanismStatistics] where the plan's protection is differential, and
	// empty otherwise. Encodings have it, and plans do not say it.
	Mechanism string          `cbor:"mechanism,omitempty" json:"-"`
	Patterns  method.Patterns `json:"patterns,omitempty"` // of private plans: the sets of views that subjects can have
}

// Covariate is a subject column that features are adjusted for: one of numbers or, with
// levels, a category. A plan may name a column of numbers alone.
type Covariate struct {
	Column string `json:"column,omitempty"`
	// Levels of a category. The others are compared with the first.
	Levels []string `json:"levels,omitempty"`
}

// form is what encodings say of how the model is fitted.
const form = "federated"

func Defaults() *Options { return &Options{Form: form, Scaling: ppca.ScaleStandard, Noise: "view"} }

// Fill puts in the defaults that depend on what the plan says of privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	if p.Privacy.Differential() {
		o.Mechanism = MechanismStatistics
		if missing("scaling") {
			o.Scaling = ppca.ScaleRange
		}
	}
	if missing("noise") && o.ScalesFeatures() {
		o.Noise = "feature"
	}
	if o.Mechanism == MechanismStatistics { // one release, and nothing is iterated at the sites
		return
	}
	if missing("rounds") {
		o.Rounds = 60
	}
	if missing("site_means") {
		o.SiteMeans = MeansAuto
		if p.Privacy.Secure() {
			o.SiteMeans = meansPooled
		}
	}
	if missing("outliers") {
		o.Outliers = excludeOutliers
	}
}

// ScalesFeatures says whether each feature is scaled by itself: then features of a view
// differ in how much of them is noise, whatever they were before.
func (o *Options) ScalesFeatures() bool {
	return o.Scaling != ppca.ScaleView && o.Scaling != ppca.ScaleNone
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	if o.Form != form {
		report("", fmt.Sprintf("its encoding is of form %q", o.Form), "the plan in the words of this version")
	}
	if o.Scaling == ppca.ScaleSiteRange {
		report("scaling", o.Scaling+" leaves the sites no common unit", "min-max, by the minimum and maximum of all "+
			"sites; name: fed-mv-ppca has it to repeat the paper")
	} else {
		report.OneOf("scaling", o.Scaling, ppca.Scalings...)
	}
	report.OneOf("noise", o.Noise, "view", "feature")
	o.checkPrivate(p, report)
	o.checkAdjust(p, report)
	if o.Latent < 1 && (o.Latent != Select || p.Privacy.Differential()) {
		hint := "select, or a whole number from 1"
		if p.Privacy.Differential() {
			hint = "a whole number from 1; parley select chooses one from what the sites of a private study have " +
				"released"
		}
		report("latent", "the number of factors is missing", hint)
	}
	ppca.CheckFeatures(p, int(o.Latent), o.Scaling, report)
	if o.Mechanism != "" {
		return
	}
	report.AtLeast("rounds", o.Rounds, 0)
	report.OneOf("site_means", o.SiteMeans, MeansAuto, meansPooled, MeansSeparate)
	report.OneOf("outliers", o.Outliers, excludeOutliers, keepOutliers)
}

// NoiseGroups returns which features share a noise variance.
func (o *Options) NoiseGroups() ppca.Noise {
	if o.Noise == "feature" {
		return ppca.NoisePerFeature
	}
	return ppca.NoisePerView
}

// Schedule yields the kinds of task of a study in order, and how often each
// comes up at most.
func (o *Options) Schedule(p *study.Plan) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, kind := range []string{TaskAdjust, TaskScale, TaskFit, TaskOverview, TaskCoarse, TaskFine, TaskAssess} {
			times := 1
			if kind == TaskFit {
				times += o.Exchanges(p)
			}
			if o.Asks(p, kind) && !yield(kind, times) {
				return
			}
		}
	}
}

// Exchanges is how often sites fill cells by a model at most: with a secure sum once more, for how well the final model
// describes the subjects.
func (o *Options) Exchanges(p *study.Plan) int {
	if p.Privacy.Secure() {
		return o.Rounds + 1
	}
	return o.Rounds
}

// Asks says whether a task of this kind can come up in the plan's study.
func (o *Options) Asks(p *study.Plan, kind string) bool {
	switch kind {
	case TaskAdjust:
		return len(o.Adjust) > 0
	case TaskScale:
		return ppca.Pools(o.Scaling) && o.Mechanism == ""
	case TaskFit:
		return o.Mechanism == ""
	case TaskOverview, TaskCoarse, TaskFine:
		return o.Mechanism == MechanismStatistics
	}
	return kind == TaskAssess && o.Mechanism == "" && !p.Privacy.Secure()
}

// OnePopulation says whether features have a common scale, and sites' subjects the same means.
func (o *Options) OnePopulation() bool {
	return o.SiteMeans == meansPooled && (o.Scaling == ppca.ScaleStandard || o.Scaling == ppca.ScaleView)
}

// mostSecure is how many numbers masked sums may have: they take 32 bytes each, and a vector 192 MiB.
const mostSecure = 6_200_000

// fewestSecure is how many sites have to share an exact total: of two, each knows the other's part.
const fewestSecure = 3

// Summable implements [study.Summable].
func (o *Options) Summable(p *study.Plan, report study.Report) {
	const own = "leave it out: with sum: secure the coordinator does not learn what one site's subjects are like"
	if o.Mechanism != "" {
		return
	}
	if o.SiteMeans != meansPooled {
		report("site_means", o.SiteMeans+" needs the sums of each site", "pooled, which is the default here")
	}
	if o.Scaling != ppca.ScaleStandard && o.Scaling != ppca.ScaleView {
		report("scaling", fmt.Sprintf("%q is not learned from sums", o.Scaling), "standard, or view")
	}
	if len(o.Adjust) > 0 {
		report("adjust", "needs products about the means of each site", own)
	}
	for _, one := range o.Patterns {
		if n := o.Patterns.Sites(p, one.Views); n < fewestSecure {
			report("patterns", fmt.Sprintf("of %d sites, %d can have subjects with %s alone, and the exact total of "+
				"these would tell a site's own sums", len(p.Sites), n, strings.Join(one.Views, ", ")),
				fmt.Sprintf("a set that %d sites or more can have: subjects with another count as ones of all views "+
					"with gaps", fewestSecure))
		}
	}
	set, err := SetUp(p)
	if err != nil || set.Factors < 1 {
		return // as is said elsewhere
	}
	if numbers := set.SumNumbers(); numbers > mostSecure {
		report("", fmt.Sprintf("the sums have %d numbers, more than a masked release holds", numbers),
			fmt.Sprintf("fewer features, patterns or factors: at most %d numbers; or sum: plain", mostSecure))
	}
}
