package exact

import (
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// misfits says how outcomes are other than the likelihood takes them for: apart by sites, with effects that differ
// between sites, or with effects that bend. Nothing is known of three classes or more.
func (c coordinator) misfits(s *state, m *fitted.Model, pooled *predict.Assessment) (says []string) {
	if pooled == nil || pooled.Residuals == nil || !s.Fit.Settled { // what has not settled leaves residuals of its own
		return nil
	}
	all, sites := pooled.Residuals, make([]*predict.Residuals, len(c.Plan.Sites)) // nil of sites that gave none
	for i, name := range c.Plan.Sites {
		if a := s.Reports[name]; a != nil {
			sites[i] = a.Residuals
		}
	}
	turned := c.reversed(s) // sites differ in all then
	says = append(says, turned...)
	if by := predict.SiteScoreTest(sites, all, 1); by != nil && turned == nil && !c.Options.Random() {
		says = append(says, fmt.Sprintf("Outcomes differ between sites by more than the features explain: %s. Effects "+
			"of features that differ between sites are then partly those of the sites, even with the wrong sign, and "+
			"their standard errors are too small. %s", strings.Join(c.farthest(by), ", "), c.apart()))
	}
	names, groups := m.Encoding.Features(), m.Encoding.Groups()
	straight, tests := map[string]bool{}, 0
	for i := range m.Encoding.Columns {
		col := &m.Encoding.Columns[i]
		straight[col.Name] = len(col.Levels) == 0 && len(col.Knots) == 0
	}
	for _, g := range groups {
		if !ofEverybody(g) {
			tests++
		}
	}
	var differing, curved []string
	for j, name := range names[:tests] { // before those of everybody
		if by, times := predict.CochranQ(sites, all, j, tests, c.Options.Likelihood != options.LikelihoodLinear); by !=
			nil && turned == nil {
			most, word := 0, "higher"
			for i, x := range by {
				if math.Abs(x) > math.Abs(by[most]) {
					most = i
				}
			}
			if by[most] < 0 {
				word = "lower"
			}
			differing = append(differing, fmt.Sprintf("%s (%s at %s; %.1f)", name, word, c.Plan.Sites[most], times))
		}
		if straight[groups[j]] && all.NonlinearityScoreTest(j, len(names)) {
			curved = append(curved, name)
		}
	}
	if len(differing) > 0 {
		says = append(says, fmt.Sprintf("Sites differ in the effect of %s. One coefficient is an average that may "+
			"hold at no site, and its standard error is too small for all sites like these, by about the factor "+
			"stated. See whether the sites code the outcome and these features alike; then compare the sites' own "+
			"fits (parley evaluate), or make what sites differ by a feature with an interaction.",
			problem.Names(differing)))
	}
	says = append(says, c.changing(s, pooled, m)...)
	if len(curved) > 0 {
		says = append(says, fmt.Sprintf("The effect of %s is not straight: outcomes of part of its values lie off the "+
			"line. Do not read its coefficient as the effect; give it a spline (splines), or a transformation.",
			problem.Names(curved)))
	}
	return says
}

// changing says which features have an effect that changes over time.
func (c common) changing(s *state, pooled *predict.Assessment, m *fitted.Model) []string {
	if pooled.Periods == nil {
		return nil
	}
	var names []string
	each, _ := c.changes(s, pooled)
	for j, change := range each {
		if change.Matters(len(each), pooled.Residuals.Variance) {
			names = append(names, fmt.Sprintf("%s (%s)", m.Encoding.Features()[j],
				map[bool]string{true: "grows", false: "falls"}[change.Slope > 0]))
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("The effect of %s changes over time. A coefficient is then an average that may hold "+
		"in no period, and survival is predicted wrongly. Fit parts of the time as studies of their own: one with the "+
		"first cuts alone, and one of those who are left after them, with time counted from there. A strong feature "+
		"that is missing, and one that goes with another whose effect changes, can look like this too.",
		problem.Names(names))}
}

// apart says what to do about sites that differ.
func (c coordinator) apart() string {
	if len(c.Plan.Sites) < options.FewestRandom {
		return "Make the site a feature, a category that says where a subject is from."
	}
	return "Let sites have intercepts of their own: site_effects: random."
}

// ofEverybody says whether columns of a group belong to no feature.
func ofEverybody(group string) bool { return group == glm.InterceptGroup || group == glm.PeriodGroup }

// farthest says how the two sites that are farthest off differ.
func (c coordinator) farthest(by []float64) (parts []string) {
	low, high := 0, 0
	for i, x := range by {
		if x < by[low] {
			low = i
		}
		if x > by[high] {
			high = i
		}
	}
	for _, i := range []int{low, high} {
		x, word, what, unit := by[i], "higher", "the mean", ""
		if x < 0 {
			x, word = -x, "lower"
		}
		if !c.Options.Numeric() {
			what, x, unit = "the share of "+c.Options.Outcome.Levels[1], 100*x, " points"
		}
		if c.Options.Likelihood == options.LikelihoodHazard {
			what = "the share of events in a period"
		}
		parts = append(parts, fmt.Sprintf("%s at %s is %s%s %s than the model expects", what, c.Plan.Sites[i],
			figure.General.Text(rounded(x)), unit, word))
	}
	return parts
}

// rounded keeps two digits.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-1)
	return math.Round(x/unit) * unit
}
