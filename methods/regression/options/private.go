package options

import (
	"fmt"

	"parley/study"
)

// privacy checks what differential privacy has a form for: logistic regression of two classes, with an intercept, by
// which rows are counted, and subjects as the unit.
func (c *optionCheck) privacy() {
	if !c.p.Privacy.Differential() {
		return
	}
	pr := c.p.Privacy
	if pr.Total == nil && pr.PerRelease != nil {
		c.report("", "pvi calibrates its noise to a total, and the plan has none", "privacy.total instead of per_release")
	}
	if pr.Unit == study.UnitSite {
		c.report("", "no regression here hides whole sites", "privacy.unit: subject, or protection: none")
	}
	if c.Likelihood == LikelihoodSoftmax || c.Likelihood == LikelihoodLinear {
		c.report("likelihood", fmt.Sprintf("a %s model has no private form here", c.Likelihood),
			"an outcome of two levels, or name: dp-pvi, or protection: none")
	}
	if c.Likelihood != LikelihoodLogistic { // nor have the others
		return
	}
	if !c.Intercept {
		c.report("intercept", "a private fit has one", "leave it out, or hold it at 0 by intercept_variance: 1e-6")
	}
	if c.Offset != "" {
		c.report("offset", "has no private form", "make it a feature with constants {centre: 0, scale: s}, and hold its effect by priors: "+
			"{feature: …, mean: s, variance: 1e-6}, or protection: none")
	}
	if n := c.columns(c.p); n > mostNoised {
		c.report("", fmt.Sprintf("a private posterior of %d weights takes too long to be found", n),
			fmt.Sprintf("at most %d, or name: dp-pvi, or protection: none", mostNoised))
	}
	if c.Coding != codingReference && c.Intercept {
		c.report("coding", "a private posterior has references", "leave it out")
	}
	if c.Rounds < 5 {
		c.report("rounds", "too few to find the way and to be sure of it", "leave it out, or 5 and more")
	}
}
