package options

import (
	"fmt"
	"slices"
	"strings"

	"parley/methods/regression/glm"
	"parley/study"
)

// terms checks what the plan says of terms beyond one for each feature.
func (c *optionCheck) terms() {
	features := map[string]*study.Feature{}
	for k := range c.p.Views {
		for j := range c.p.Views[k].Features {
			f := &c.p.Views[k].Features[j]
			features[f.Name] = f
		}
	}
	for i, s := range c.Splines {
		at := fmt.Sprintf("splines[%d]", i)
		switch f := features[s.Feature]; {
		case f == nil || f.Kind == study.Category:
			c.report(at+".feature", fmt.Sprintf("%q is not a number of the plan", s.Feature),
				"the name of a number under views")
		case slices.ContainsFunc(c.Splines[:i], func(o spline) bool { return o.Feature == s.Feature }):
			c.report(at+".feature", fmt.Sprintf("%q is there twice", s.Feature), "each feature once")
		}
		if err := s.Knots.Check(); err != nil {
			c.report(at+".knots", err.Error(), "public knots in the feature's unit, such as quantiles of the "+
				"literature: [35, 50, 65, 80]")
		}
	}
	for i, t := range c.Interactions {
		at := fmt.Sprintf("interactions[%d]", i)
		if len(t) != 2 || t[0] == t[1] {
			c.report(at, fmt.Sprintf("%q is not a pair of features", t), "two of them, such as [age, sex]")
			continue
		}
		for _, name := range t {
			if features[name] == nil {
				c.report(at, fmt.Sprintf("%q is not a feature of the plan", name), "the names of features under views")
			}
		}
		for _, o := range c.Interactions[:i] {
			if slices.Contains(o, t[0]) && slices.Contains(o, t[1]) {
				c.report(at, fmt.Sprintf("%q is there twice", t), "each pair once")
			}
		}
	}
	columns := map[string]string{"offset": c.Offset, "cluster": c.Cluster}
	if w := c.Weights; w != nil {
		columns["weights.column"] = w.Column
		c.report.OneOf("weights.as", w.As, asCounts, asSurvey)
		if w.Column == "" {
			c.report("weights.column", "missing", "a column under subjects")
		}
	}
	if c.Link != "" {
		c.report.OneOf("link", c.Link, linkLogit, LinkCloglog)
		if c.Likelihood != glm.LikelihoodLogistic && c.Likelihood != glm.LikelihoodHazard {
			c.report("link", fmt.Sprintf("a %s model has one of its own", c.Likelihood), "leave it out")
		}
	}
	if c.Robust() && c.Random() {
		c.report("site_effects", "random intercepts have no robust standard errors",
			"site_effects: none; or leave out cluster, and weights of a sample")
	}
	for key, column := range columns {
		if column != "" && (!slices.Contains(c.p.Subjects, column) || column == c.Outcome.Column ||
			column == c.Outcome.Event) {
			c.report(key, fmt.Sprintf("%q is not a column under subjects of its own", column),
				"list it there; it may be neither a feature of a view nor the outcome")
		}
	}
}

// event checks a time until an event.
func (c *optionCheck) event() {
	y := c.Outcome
	if c.Likelihood != glm.LikelihoodHazard {
		if y.Event != "" || len(y.Cuts) > 0 {
			c.report("outcome", fmt.Sprintf("event and cuts belong to likelihood: %s", glm.LikelihoodHazard),
				"leave them out, or the likelihood")
		}
		return
	}
	if !slices.Contains(c.p.Subjects, y.Event) || y.Event == y.Column {
		c.report("outcome.event", fmt.Sprintf("%q is not a second column under subjects", y.Event),
			"the column that says how the time ended, such as event: died")
	}
	if len(y.Levels) != 2 {
		c.report("outcome.levels", fmt.Sprintf("%d levels of the event", len(y.Levels)),
			"two: no event until the end of the time, and the event, such as levels: [\"no\", \"yes\"]")
	}
	if err := y.Cuts.Check(); err != nil {
		c.report("outcome.cuts", err.Error(), "the ends of the periods in the unit of the time, such as cuts: [30, "+
			"60, 90]")
	}
}

// plain says that what only plans without privacy can have is not there.
func (c *optionCheck) plain() {
	var has []string
	for what, there := range map[string]bool{
		"likelihood: " + c.Likelihood: c.Likelihood == glm.LikelihoodPoisson || c.Likelihood == glm.LikelihoodHazard,
		"interactions":                len(c.Interactions) > 0,
		"splines":                     len(c.Splines) > 0,
		"weights":                     c.Weights != nil,
		"cluster":                     c.Cluster != "",
		"link: " + c.Link:             c.Link == LinkCloglog,
		"site_effects: random":        c.Random(),
	} {
		if there {
			has = append(has, what)
		}
	}
	slices.Sort(has)
	if c.Intercepts != "" {
		c.report.OneOf("site_effects", c.Intercepts, effectsNone, effectsRandom)
	}
	if c.Random() && c.Likelihood == glm.LikelihoodSoftmax {
		c.report("site_effects", "a softmax model has no random intercepts: sites can differ by one number, and each "+
			"class has one", "site_effects: none, or two levels and likelihood: logistic")
	}
	if c.Random() && c.Likelihood == glm.LikelihoodLinear && c.NoiseVariance == nil {
		c.report("noise_variance", "missing: with random intercepts the variance of the outcome within sites has to "+
			"be known", "such as noise_variance: 1, in the outcome's unit squared")
	}
	if c.Random() && len(c.p.Sites) < FewestRandom {
		c.report("site_effects", fmt.Sprintf("how much sites differ cannot be told from %d", len(c.p.Sites)),
			"three sites at least, or site_effects: none")
	}
	for _, what := range has {
		key, _, _ := strings.Cut(what, ":")
		if c.p.Privacy.Differential() {
			c.report(key, fmt.Sprintf("%s has no differentially private form", what),
				"protection: none, or leave it out")
		}
	}
}

// columns is the number of columns of the plan's features, with one for each level, and of its other terms.
func (o *Options) columns(p *study.Plan) int {
	width := map[string]int{}
	for _, v := range p.Views {
		for _, f := range v.Features {
			width[f.Name] = max(1, len(f.Levels))
		}
	}
	for _, s := range o.Splines {
		width[s.Feature] = len(s.Knots) - 1
	}
	n := len(o.Outcome.Cuts)
	for _, w := range width {
		n += w
	}
	for _, t := range o.Interactions {
		if len(t) == 2 {
			n += width[t[0]] * width[t[1]]
		}
	}
	return n
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
	if c.Offset != "" && c.Likelihood == glm.LikelihoodSoftmax {
		c.report("offset", "what is added to the activation of every class changes nothing",
			"leave it out, or another likelihood")
	}
	switch r := c.OffsetRange; {
	case r != nil && (c.Offset == "" || !c.p.Privacy.Differential()):
		c.report("offset_range", "belongs to the offset of a private plan", "leave it out")
	case r != nil && !(r[1]-r[0] >= leastOffsets && r[0] >= -mostOffset && r[1] <= mostOffset):
		c.report("offset_range", fmt.Sprintf("[%v, %v] is no range within ±%v that is at least %v wide", r[0], r[1],
			mostOffset, leastOffsets), "[lowest, highest] from what is publicly known, such as [0, 3.5]")
	case r == nil && c.Offset != "" && c.p.Privacy.Differential():
		c.report("offset_range", "missing: how much an offset can weigh must not follow from rows",
			"[lowest, highest] from what is publicly known, such as [0, 3.5]")
	}
}

// privacy checks what differential privacy has a form for: logistic regression of classes, and subjects as the unit.
func (c *optionCheck) privacy() {
	if !c.p.Privacy.Differential() {
		return
	}
	pr := c.p.Privacy
	if pr.Total == nil && pr.PerRelease != nil {
		c.report("", "regression calibrates its noise to a total, and the plan has none",
			"privacy.total instead of per_release")
	}
	if pr.Unit == study.UnitSite {
		c.report("", "no regression here hides whole sites", "privacy.unit: subject, or protection: none")
	}
	if c.Likelihood == glm.LikelihoodLinear {
		c.report("likelihood", "a linear model has no private form here",
			"an outcome of levels, or name: dp-pvi; or protection: none")
	}
	if c.Likelihood != glm.LikelihoodLogistic && c.Likelihood != glm.LikelihoodSoftmax { // nor have the others
		return
	}
	if n := max(len(c.Classes())-1, 1) * c.columns(c.p); n > mostNoised {
		c.report("", fmt.Sprintf("a private posterior of %d weights takes too long to be found", n),
			fmt.Sprintf("at most %d, or name: dp-pvi, or protection: none", mostNoised))
	}
	if c.Rounds < 5 {
		c.report("rounds", "too few to find the way and to be sure of it", "leave it out, or 5 and more")
	}
}
