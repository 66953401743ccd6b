package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/methods/regression/glm"
	"parley/study"
)

// terms checks what the plan says of terms beyond one for each feature.
func (c *optionCheck) terms() {
	for i, s := range c.Splines {
		at := fmt.Sprintf("splines[%d]", i)
		f := c.features[s.Feature]
		if !c.report.If(f == nil || f.Kind == study.Category, at+".feature",
			fmt.Sprintf("%q is not a number of the plan", s.Feature), "the name of a number under views") {
			c.report.If(slices.ContainsFunc(c.Splines[:i], func(o spline) bool { return o.Feature == s.Feature }),
				at+".feature", fmt.Sprintf("%q is there twice", s.Feature), "each feature once")
		}
		if err := s.Knots.Check(); err != nil {
			c.report(at+".knots", err.Error(), "public knots in the feature's unit, such as quantiles of the "+
				"literature: [35, 50, 65, 80]")
		}
	}
	columns := map[string]string{"offset": c.Offset, "cluster": c.Cluster}
	if w := c.Weights; w != nil {
		columns["weights.column"] = w.Column
		c.report.OneOf("weights.as", w.As, asCounts, asSurvey)
		c.report.If(w.Column == "", "weights.column", "missing", "a column under subjects")
	}
	if c.Link != "" {
		c.report.OneOf("link", c.Link, linkLogit, LinkCloglog)
		c.report.If(c.Likelihood != glm.LikelihoodLogistic && c.Likelihood != glm.LikelihoodHazard, "link",
			fmt.Sprintf("a %s model has one of its own", c.Likelihood), "leave it out")
	}
	for key, column := range columns {
		c.report.If(column != "" && (!slices.Contains(c.p.Subjects, column) || column == c.Outcome.Column ||
			column == c.Outcome.Event), key, fmt.Sprintf("%q is not a column under subjects of its own", column),
			"list it there; it may be neither a feature of a view nor the outcome")
	}
}

// effects checks what sites may differ by.
func (c *optionCheck) effects() {
	if c.SiteEffects != "" {
		c.report.OneOf("site_effects", c.SiteEffects, effectsNone, effectsRandom)
	}
	if !c.Random() {
		return
	}
	c.report.If(c.Robust(), "site_effects", "random intercepts have no robust standard errors",
		"site_effects: none; or leave out cluster, and weights of a sample")
	c.report.If(c.Likelihood == glm.LikelihoodSoftmax, "site_effects", "a softmax model has no random intercepts: "+
		"sites can differ by one number, and each class has "+
		"one", "site_effects: none, or two levels and likelihood: logistic")
	c.report.If(c.Likelihood == glm.LikelihoodLinear && c.NoiseVariance == nil, "noise_variance",
		"missing: with random intercepts the variance of the outcome within sites has to be known",
		"such as noise_variance: 1, in the outcome's unit squared")
	c.report.If(len(c.p.Sites) < FewestRandom, "site_effects",
		fmt.Sprintf("how much sites differ cannot be told from %d", len(c.p.Sites)),
		"three sites at least, or site_effects: none")
}

// interactions checks pairs of features, and says whether all are some.
func (c *optionCheck) interactions() bool {
	right := true
	for k := range c.Interactions {
		if err := c.encoding.CheckInteraction(k); err != nil {
			right = false
			c.report(fmt.Sprintf("interactions[%d]", k), err.Error(), "two features under views, each pair once, such "+
				"as [age, sex]")
		}
	}
	return right
}

// Summable implements [study.Summable].
func (o *Options) Summable(_ *study.Plan, report study.Report) {
	if o.Random() {
		report("site_effects", "random needs the sums of each site: with sum: secure nobody learns how sites differ",
			"none")
	}
}

// offset checks an offset and its range, which a private fit alone needs.
func (c *optionCheck) offset() {
	c.report.If(c.Offset != "" && c.Likelihood == glm.LikelihoodSoftmax, "offset",
		"what is added to the activation of every class changes nothing", "leave it out, or another likelihood")
	const such = "[lowest, highest] from what is publicly known, such as [0, 3.5]"
	r, noised, most := c.OffsetRange, c.p.Privacy.Differential(), float64(mostOffset)
	if c.Likelihood == glm.LikelihoodLinear { // where it is in the outcome's unit
		most = glm.Largest
	}
	switch {
	case c.report.If(r != nil && (c.Offset == "" || !noised), "offset_range", "belongs to the offset of a private plan",
		"leave it out"):
	case r != nil:
		c.report.If(!(r[1]-r[0] >= leastOffsets && r[0] >= -most && r[1] <= most), "offset_range",
			fmt.Sprintf("[%v, %v] is no range within ±%v that is at least %v wide", r[0], r[1], most,
				leastOffsets), such)
	default:
		c.report.If(c.Offset != "" && noised, "offset_range", "missing: how much an offset can weigh must not follow "+
			"from rows", such)
	}
}

// privacy checks what differential privacy has a form for: classes and numbers, and subjects as the unit.
func (c *optionCheck) privacy() {
	linear := c.Likelihood == glm.LikelihoodLinear
	c.report.If(c.Outcome.Range != nil && !(linear && c.p.Privacy.Differential()), "outcome.range",
		"belongs to a number of a private plan", "leave it out")
	if !c.p.Privacy.Differential() {
		return
	}
	pr := c.p.Privacy
	c.report.If(pr.Total == nil && pr.PerRelease != nil, "", "regression calibrates its noise to a total, and the "+
		"plan has none", "privacy.total instead of per_release")
	c.report.If(pr.Unit == study.UnitSite, "", "no regression here hides whole sites",
		"privacy.unit: subject, or protection: none")
	without := map[string]bool{
		"likelihood: " + c.Likelihood: c.Likelihood == glm.LikelihoodPoisson || c.Likelihood == glm.LikelihoodHazard,
		"interactions":                len(c.Interactions) > 0,
		"splines":                     len(c.Splines) > 0,
		"weights":                     c.Weights != nil,
		"cluster":                     c.Cluster != "",
		"link: " + c.Link:             c.Link == LinkCloglog,
		"site_effects: random":        c.Random(),
	}
	for _, what := range slices.Sorted(maps.Keys(without)) {
		key, _, _ := strings.Cut(what, ":")
		c.report.If(without[what], key, what+" has no differentially private form", "protection: none, or leave it out")
	}
	if linear {
		c.number()
	}
	c.report.If(c.Rounds < 5, "rounds", "too few to find the way and to be sure of it", "leave it out, or 5 and more")
}

// number checks what a private plan says of an outcome that is a number.
func (c *optionCheck) number() {
	const such = "[lowest, highest] from what is publicly known, such as range: [0, 200]"
	r := c.Outcome.Range
	if !c.report.If(r == nil, "outcome.range", "missing: noised histograms over a public range tell the unit of a "+
		"number", such) {
		c.report.If(!(glm.Inside((r[1]-r[0])/2, 1/glm.Largest, glm.Largest) && glm.Inside(r[0], -glm.Largest,
			glm.Largest)), "outcome.range", fmt.Sprintf("[%v, %v] is no range", r[0], r[1]), such)
	}
	c.report.If(c.NoiseVariance != nil, "noise_variance", "under privacy it is estimated", "leave it out")
	c.report.If(c.p.Privacy.Diagnostics > 0, "", "privacy.diagnostics buys how well classes are predicted, and a "+
		"number's fit tells what it leaves", "leave diagnostics out")
	c.report.If(c.Scaling == glm.ScaleConstants, "scaling", "noised histograms tell the unit of the outcome, and with "+
		"it those of all numbers", "leave constants out, and give each number its public range")
}
