package options

import (
	"fmt"
	"math"
	"slices"

	"parley/study"
)

// The mechanisms: how releases are noised under differential protection.
const (
	// MechanismStatistics releases noised sufficient statistics of the site's
	// subjects once; all fitting is the coordinator's. It belongs to [federatedVariant].
	MechanismStatistics = "statistics"
	// MechanismJoint keeps the rounds: the change of all parameters of a site,
	// in public units, is clipped once and released under one Gaussian. That is
	// the least noise that hiding a whole site in every round can have, and still
	// far too much: on the paper's synthetic data at three sites nothing stands
	// out of it below a total ε of about 300.
	MechanismJoint = "joint-clipping"
	// MechanismDifference is Algorithm 2 of the paper, for comparison: the change
	// of each parameter of each view is clipped and noised by itself.
	MechanismDifference = "difference-clipping"
)

// The first round of [MechanismDifference].
const (
	// firstFromPrior starts at the plan's public prior: every round is private.
	firstFromPrior = "prior"
	// FirstInClear sends each site's parameters of round 1 as they are, which is
	// how the paper's experiments start: nothing is guaranteed for the study.
	FirstInClear = "clear"
)

// ClippingOptions are those of the mechanisms that clip a site's parameters.
// Both noise a message for everything that the site holds, so the noise does
// not fall with the number of its subjects.
type ClippingOptions struct {
	// NoiseFloor is the least noise variance σ², in scaled units: released ones
	// below it, which noise makes negative too, are raised to it (1e-4).
	NoiseFloor float64            `json:"noise_floor"`
	Difference *DifferenceOptions `json:"difference,omitempty"`
	Joint      *JointOptions      `json:"joint,omitempty"`
}

// DifferenceOptions are those of [MechanismDifference].
type DifferenceOptions struct {
	FirstRound string       `json:"first_round"`    // firstFromPrior or FirstInClear
	Mean       GaussianPart `json:"mean"`           // μ of a view, clipped in the l2 norm
	Loadings   GaussianPart `json:"loadings"`       // W of a view, clipped in the l2 (Frobenius) norm
	Noise      LaplacePart  `json:"noise_variance"` // σ² of a view, clipped in size
}

// GaussianPart says how one parameter is clipped and noised.
type GaussianPart struct {
	Constant float64 `json:"constant"` // clip, in standard deviations of the parameter's prior (1)
	// Epsilon and Delta, where the plan has a budget per release, are the budget
	// of this parameter's releases (the plan's), by Theorem 5.
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`
}

// LaplacePart is GaussianPart for Laplace noise, which has no δ (Theorem 3).
type LaplacePart struct {
	Constant float64 `json:"constant"`
	Epsilon  float64 `json:"epsilon,omitempty"`
}

// JointOptions are those of [MechanismJoint]. All lengths are in scaled units
// (that of ln σ² has none): they say what change of a parameter is large.
type JointOptions struct {
	Bound    float64 `json:"bound"`          // l2 clip of the change of all parameters, each in units of its scale below (2)
	Mean     float64 `json:"mean_scale"`     // of an entry of μ (1)
	Loadings float64 `json:"loading_scale"`  // of an entry of W (1)
	Noise    float64 `json:"variance_scale"` // of ln σ² (4)
}

// Clips says whether one of the clipping mechanisms is in use.
func (o *Options) Clips() bool {
	return o.Mechanism == MechanismJoint || o.Mechanism == MechanismDifference
}

// FirstInClear says whether round 1 is not protected.
func (o *Options) FirstInClear() bool {
	return o.Mechanism == MechanismDifference && o.Clipping != nil && o.Clipping.Difference != nil && o.Clipping.Difference.FirstRound == FirstInClear
}

// privateFromStart says whether rounds run that are all protected.
func (o *Options) privateFromStart() bool { return o.Clips() && !o.FirstInClear() }

// unitInterval says whether scaled values lie in [0, 1], or are meant to.
func (o *Options) unitInterval() bool { return o.Scaling == ScaleRange || o.Scaling == ScaleSiteRange }

// fillMechanism puts in what the others depend on.
func (o *Options) fillMechanism(p *study.Plan, missing func(key string) bool) {
	if !p.Privacy.Differential() {
		return
	}
	if missing("mechanism") {
		o.Mechanism = MechanismStatistics
		if o.Variant == PublishedVariant {
			o.Mechanism = MechanismDifference
		}
	}
	if missing("scaling") {
		o.Scaling = ScaleRange
	}
	if !o.Clips() {
		return
	}
	if o.Clipping == nil {
		o.Clipping = &ClippingOptions{}
	}
	set := func(key string, field *float64, value float64) {
		if missing("clipping." + key) {
			*field = value
		}
	}
	c := o.Clipping
	set("noise_floor", &c.NoiseFloor, 1e-4)
	if o.Mechanism == MechanismJoint {
		if c.Joint == nil {
			c.Joint = &JointOptions{}
		}
		j := c.Joint
		set("joint.bound", &j.Bound, 2)
		set("joint.mean_scale", &j.Mean, 1)
		set("joint.loading_scale", &j.Loadings, 1)
		set("joint.variance_scale", &j.Noise, 4)
		return
	}
	if c.Difference == nil {
		c.Difference = &DifferenceOptions{}
	}
	d := c.Difference
	if missing("clipping.difference.first_round") {
		d.FirstRound = firstFromPrior
	}
	set("difference.mean.constant", &d.Mean.Constant, 1)
	set("difference.loadings.constant", &d.Loadings.Constant, 1)
	set("difference.noise_variance.constant", &d.Noise.Constant, 1)
	if b := p.Privacy.PerRelease; b != nil {
		set("difference.mean.epsilon", &d.Mean.Epsilon, b.Epsilon)
		set("difference.mean.delta", &d.Mean.Delta, b.Delta)
		set("difference.loadings.epsilon", &d.Loadings.Epsilon, b.Epsilon)
		set("difference.loadings.delta", &d.Loadings.Delta, b.Delta)
		set("difference.noise_variance.epsilon", &d.Noise.Epsilon, b.Epsilon)
	}
}

// publishedRounds is the default number of rounds of the published variant. A
// total has to be split over them, and noise grows with their square root.
func (o *Options) publishedRounds(p *study.Plan) int {
	switch {
	case o.Mechanism == MechanismJoint:
		return 2
	case o.Mechanism == MechanismDifference && p.Privacy.Total != nil:
		return 2
	}
	return 100
}

// defaultPrior is what the plan's prior is if it does not say.
func (o *Options) defaultPrior() InitialPrior {
	if o.Clips() && o.unitInterval() {
		return InitialPrior{LoadingSD: 0.1, Mean: 0.5, MeanSD: 0.25, NoiseAlpha: 3, NoiseBeta: 0.08}
	}
	return InitialPrior{LoadingSD: 1, MeanSD: 1, NoiseAlpha: 2.25, NoiseBeta: 0.625}
}

// checkMechanism holds the mechanism against the plan's privacy and the other options.
func (o *Options) checkMechanism(p *study.Plan, report study.Report) {
	if !p.Privacy.Differential() {
		if o.Mechanism != "" {
			report("mechanism", "noises releases, and the plan has no differential protection", "privacy: {protection: differential, …}, or leave it out")
		}
		report.Absent("belongs to the private mechanisms, and the plan has no differential protection", "privacy: {protection: differential, …}, or leave it out",
			map[string]bool{"clipping": o.Clipping != nil, "patterns": o.Patterns != nil})
		return
	}
	if !report.OneOf("mechanism", o.Mechanism, MechanismStatistics, MechanismJoint, MechanismDifference) {
		return
	}
	if needs := map[bool]string{true: PublishedVariant, false: federatedVariant}[o.Clips()]; o.Variant != needs && slices.Contains([]string{federatedVariant, PublishedVariant}, o.Variant) {
		hint := "variant: " + needs + ", or mechanism: " + MechanismStatistics
		if o.Variant == PublishedVariant {
			hint = "variant: " + needs + ", or mechanism: " + MechanismDifference + " or " + MechanismJoint
		}
		report("mechanism", fmt.Sprintf("%q does not go with variant %q", o.Mechanism, o.Variant), hint)
	}
	o.Patterns.Check(p, report)
	if private := []string{ScaleRange, ScaleNone}; slices.Contains(Scalings, o.Scaling) && !slices.Contains(private, o.Scaling) &&
		!(o.Scaling == ScaleSiteRange && o.Mechanism == MechanismDifference) {
		report("scaling", fmt.Sprintf("%q takes the scale from the subjects' values, which mechanism %q does not protect", o.Scaling, o.Mechanism),
			"range, with the range of every feature in the plan, or none")
	}
	if !o.Clips() {
		if o.Clipping != nil {
			report("clipping", fmt.Sprintf("belongs to mechanisms %s and %s", MechanismJoint, MechanismDifference), "one of them, or leave it out")
		}
		return
	}
	if p.Privacy.Diagnostics > 0 {
		report("mechanism", fmt.Sprintf("%q has no diagnostics to spend a share of the total on", o.Mechanism), "leave privacy.diagnostics out")
	}
	if o.privateFromStart() && o.Published != nil && (o.Published.Initial != "prior" || o.Published.Prior == nil) {
		report("published.initial", "a private first round starts at a public prior", "prior, which published.prior describes")
	}
	if o.Clipping == nil {
		report("clipping", "missing", "noise_floor, and the options of the mechanism")
		return
	}
	o.Clipping.check(o.Mechanism, p, report.Within("clipping"))
}

func (c *ClippingOptions) check(mechanism string, p *study.Plan, report study.Report) {
	report.Positive("noise_floor", c.NoiseFloor)
	if c.Joint != nil && mechanism != MechanismJoint {
		report("joint", "belongs to mechanism "+MechanismJoint, "leave it out")
	}
	if c.Difference != nil && mechanism != MechanismDifference {
		report("difference", "belongs to mechanism "+MechanismDifference, "leave it out")
	}
	switch {
	case mechanism == MechanismJoint && c.Joint == nil:
		report("joint", "missing", "bound, mean_scale, loading_scale and variance_scale")
	case mechanism == MechanismDifference && c.Difference == nil:
		report("difference", "missing", "first_round, mean, loadings and noise_variance")
	case mechanism == MechanismJoint:
		j := c.Joint
		report.Positive("joint.bound", j.Bound)
		report.Positive("joint.mean_scale", j.Mean)
		report.Positive("joint.loading_scale", j.Loadings)
		report.Positive("joint.variance_scale", j.Noise)
		if p.Privacy.Total == nil && p.Privacy.PerRelease != nil && !(p.Privacy.PerRelease.Delta < 0.5) {
			report("joint", fmt.Sprintf("Theorem 5 has no noise for δ = %v", p.Privacy.PerRelease.Delta), "privacy.per_release with δ below 0.5")
		}
	default:
		c.Difference.check(p, report.Within("difference"))
	}
}

func (d *DifferenceOptions) check(p *study.Plan, report study.Report) {
	switch d.FirstRound {
	case firstFromPrior:
	case FirstInClear:
		if p.Privacy.Total != nil {
			report("first_round", "in clear breaks any total that a plan promises", "first_round: prior; or privacy.per_release, the published way, instead of a total")
		}
	default:
		report("first_round", fmt.Sprintf("%q is not known", d.FirstRound), firstFromPrior+", or "+FirstInClear+" to repeat the paper, without any guarantee")
	}
	report.Positive("mean.constant", d.Mean.Constant)
	report.Positive("loadings.constant", d.Loadings.Constant)
	report.Positive("noise_variance.constant", d.Noise.Constant)
	budgets := []struct {
		key   string
		value float64
		limit float64
	}{
		{"mean.epsilon", d.Mean.Epsilon, math.Inf(1)}, {"mean.delta", d.Mean.Delta, 0.5},
		{"loadings.epsilon", d.Loadings.Epsilon, math.Inf(1)}, {"loadings.delta", d.Loadings.Delta, 0.5},
		{"noise_variance.epsilon", d.Noise.Epsilon, math.Inf(1)},
	}
	for _, b := range budgets {
		switch {
		case p.Privacy.Total != nil && b.value != 0:
			report(b.key, "is the budget of single releases, and the plan has a total, which is split", "leave it out: all releases then have noise in the same proportion to their clip")
		case p.Privacy.PerRelease != nil && !(b.value > 0 && b.value < b.limit):
			report(b.key, fmt.Sprintf("%v cannot be the budget of a release", b.value), "a positive ε, and δ between 0 and 0.5 (Theorem 5)")
		}
	}
}

// checkStatistics holds the options against one release and no rounds.
func (o *Options) checkStatistics(p *study.Plan, report study.Report) {
	report.Absent(fmt.Sprintf("has no meaning for mechanism %q: sites release once, and all fitting is the coordinator's", MechanismStatistics), "leave it out",
		map[string]bool{"rounds": o.Rounds != 0, "iterations": o.Iterations != 0, "local_rank": o.LocalRank != 0, "minimum": o.Minimum != 0, "tolerance": o.Tolerance != nil, "site_means": o.SiteMeans != "", "outliers": o.Outliers != ""})
	if o.Scaling == ScaleNone {
		report("scaling", fmt.Sprintf("mechanism %q clips values to their public ranges", MechanismStatistics), "range, with the range of every feature in the plan")
	}
	if p.Privacy.Total == nil && p.Privacy.PerRelease != nil {
		report("mechanism", fmt.Sprintf("%q splits a total over what it releases", MechanismStatistics), "privacy.total instead of privacy.per_release")
	}
	if p.Privacy.Diagnostics > 0 && len(p.Views) < 2 {
		report("mechanism", "diagnostics predict views from each other, and the plan has one view", "leave privacy.diagnostics out")
	}
	if p.Privacy.Unit == study.UnitSite {
		report("mechanism", fmt.Sprintf("%q protects single subjects, not a site as a whole", MechanismStatistics), "privacy.unit: subject, or mechanism: "+MechanismJoint+" with variant: "+PublishedVariant)
	}
}

// BeyondRange implements [study.RangeTeller]: noised statistics are of values within the ranges. A
// scaling by ranges alone moves nothing to their ends.
func (o *Options) BeyondRange(*study.Plan) string {
	if o.Mechanism == MechanismStatistics {
		return study.RangeEnds
	}
	return study.RangeAsIs
}
