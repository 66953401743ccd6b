package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// misfits says how outcomes are other than the likelihood takes them for: apart by sites, with effects that differ
// between sites, or with effects that bend. Of three classes or more, the first alone is known.
func (c coordinator) misfits(s *state, m *fitted.Model, pooled *predict.Assessment) (says []string) {
	if c.classes() > 1 && s.Fit.Settled && c.Options.Weights == nil {
		return c.classesApart(s)
	}
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
		level := ""
		if levels := c.Options.Outcome.Levels; len(levels) > 1 {
			level = levels[1]
		}
		says = append(says, c.outcomesDiffer(c.farthest(by, level)))
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
		if by, times := predict.EffectsDiffer(sites, all, j, tests, c.Options.Likelihood != glm.LikelihoodLinear); by !=
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

// classesApart says of three classes or more which have another share at some sites than the features explain, by the
// residuals of the last exchange.
func (c coordinator) classesApart(s *state) []string {
	var parts []string
	width := c.Encoding.Width()
	for k, level := range c.Options.Outcome.Levels {
		at := k*width + width - 1 // the intercept
		all, sites := &predict.Residuals{}, make([]*predict.Residuals, len(c.Plan.Sites))
		for i, site := range c.Plan.Sites {
			if a := s.Sums[site]; a != nil && a.At[0].Rows > 0 {
				sites[i] = predict.ClassResiduals(a.At[0].Rows, a.At[0].Gradient[at],
					a.At[0].Information[glm.Packed(at, at)])
				method.AddSums(all, sites[i])
			}
		}
		if by := predict.SiteScoreTest(sites, all, len(c.Options.Outcome.Levels)); by != nil {
			parts = append(parts, c.farthest(by, level)[0])
		}
	}
	if parts == nil {
		return nil
	}
	return []string{c.outcomesDiffer(parts)}
}

// outcomesDiffer says that sites' outcomes are apart by so much.
func (c coordinator) outcomesDiffer(parts []string) string {
	return fmt.Sprintf("Outcomes differ between sites by more than the features explain. At %s. Effects of features "+
		"that differ between sites are then partly those of the sites, even with the wrong sign, and their standard "+
		"errors are too small. %s", strings.Join(parts, ", and at "), c.apart())
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
	if len(c.Plan.Sites) < options.FewestRandom || c.classes() > 1 {
		return "Make the site a feature, a category that says where a subject is from."
	}
	return "Let sites have intercepts of their own: site_effects: random."
}

// ofEverybody says whether columns of a group belong to no feature.
func ofEverybody(group string) bool { return group == glm.InterceptGroup || group == glm.PeriodGroup }

// farthest says how the sites that are farthest off on either side differ, the farther one first, in the share of a
// level where outcomes are classes.
func (c coordinator) farthest(by []float64, level string) (parts []string) {
	first, other := slices.Index(by, slices.Max(by)), slices.Index(by, slices.Min(by))
	if -by[other] > by[first] {
		first, other = other, first
	}
	for _, i := range []int{first, other} {
		x, word, what, unit := by[i], "higher", "the mean", ""
		if x < 0 {
			x, word = -x, "lower"
		}
		if !c.Options.Numeric() {
			what, x, unit = "the share of "+level, 100*x, " points"
		}
		if c.Options.Likelihood == glm.LikelihoodHazard {
			what = "the share of events in a period"
		}
		parts = append(parts, fmt.Sprintf("%s %s is %s%s %s than the model expects", c.Plan.Sites[i], what,
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
