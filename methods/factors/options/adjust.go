package options

import (
	"fmt"
	"slices"
	"strings"

	"parley/dataset"
	"parley/study"
)

// FromScalar is a column of numbers that is written as its name.
func (c *Covariate) FromScalar(s string) { c.Column = s }

// Terms names what a regression on the covariates has a slope for: a column of numbers,
// or a level of a category but the first.
func Terms(covariates []Covariate) (names []string) {
	for _, c := range covariates {
		if len(c.Levels) == 0 {
			names = append(names, c.Column)
			continue
		}
		for _, level := range c.Levels[1:] {
			names = append(names, c.Column+" "+level)
		}
	}
	return names
}

// AdjustedFor names the covariates' columns.
func AdjustedFor(covariates []Covariate) string {
	var names []string
	for _, c := range covariates {
		names = append(names, c.Column)
	}
	return strings.Join(names, ", ")
}

// maxTerms bounds the terms of the regression on covariates.
const maxTerms = 64

func (o *Options) checkAdjust(p *study.Plan, report study.Report) {
	if len(o.Adjust) == 0 {
		return
	}
	if o.Mechanism != "" {
		report("adjust", "the regression on covariates is made of exact sums, which do not leave a site under differential privacy",
			"leave it out; parley model associate --adjust adjusts what is said of the factors, or each site can adjust its features before the study by coefficients that are published")
	}
	for i, c := range o.Adjust {
		at := fmt.Sprintf("adjust[%d]", i)
		switch {
		case c.Column == "":
			report(at, "no column is named", "the name of a column of numbers, or {column: NAME, levels: [REFERENCE, OTHER]}")
		case !slices.Contains(p.Subjects, c.Column):
			report(at, fmt.Sprintf("%q is not a column under subjects", c.Column), "list it there; it may not be a feature of a view")
		case slices.ContainsFunc(o.Adjust[:i], func(other Covariate) bool { return other.Column == c.Column }):
			report(at, fmt.Sprintf("column %s is named twice", c.Column), "each once")
		}
		if len(c.Levels) == 1 {
			report(at+".levels", "a category of one level says nothing", "all levels, the one that the others are compared with first; of numbers none")
		}
		for k, level := range c.Levels {
			if dataset.IsMissing(level) || slices.Contains(c.Levels[:k], level) {
				report(at+".levels", fmt.Sprintf("level %q stands for what is not known, or is there twice", level), "each level once")
			}
		}
	}
	if n := len(Terms(o.Adjust)); n > maxTerms {
		report("adjust", fmt.Sprintf("%d numbers and levels to adjust for", n), fmt.Sprintf("at most %d", maxTerms))
	}
}
