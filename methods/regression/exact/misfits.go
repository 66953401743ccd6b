package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// remainder is what is left of one activation's outcomes: of a class, or of all there is.
type remainder struct {
	class string // "" where there is one activation
	all   *predict.Residuals
	sites []*predict.Residuals // in the plan's order; nil of sites that gave none
}

// name is that of a term with the class that it is an effect on.
func (l remainder) name(term string) string {
	if l.class == "" {
		return term
	}
	return term + " on " + l.class
}

// remainders lists what is left of every activation; nil if sites gave nothing.
func (c coordinator) remainders(s *state, pooled *predict.Assessment) (parts []remainder) {
	of := func(a *predict.Assessment) []*predict.Residuals {
		switch {
		case a == nil:
			return nil
		case a.Residuals != nil:
			return []*predict.Residuals{a.Residuals}
		}
		return a.Classes
	}
	for k, all := range of(pooled) {
		part := remainder{all: all, sites: make([]*predict.Residuals, len(c.Plan.Sites))}
		if c.classes() > 1 {
			part.class = c.Options.Outcome.Levels[k]
		}
		for i, name := range c.Plan.Sites {
			if own := of(s.Reports[name]); own != nil {
				part.sites[i] = own[k]
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// misfits says how outcomes are other than the likelihood takes them for: apart by sites, bent in
// a feature, more variable for some of its values, skewed or with heavy tails. Of classes each is
// looked at by itself, but for what their variances say, which follow from their probabilities.
func (c coordinator) misfits(s *state, m *fitted.Model, pooled *predict.Assessment) (says []string) {
	parts := c.remainders(s, pooled)
	if len(parts) == 0 || !s.Fit.Settled { // what has not settled leaves residuals of its own
		return nil
	}
	var apart, within, differing, curved []string
	turned := c.reversed(s)
	for _, part := range parts {
		if turned != nil {
			break // sites differ in all then
		}
		if by := predict.SiteScoreTest(part.sites, part.all, len(parts)); by != nil && !c.Options.Random() {
			apart = append(apart, c.farthest(by, part.class)...)
		}
	}
	for _, part := range parts {
		if apart == nil && turned == nil {
			within = append(within, c.within(s, part, len(parts), m)...)
		}
		if turned == nil {
			differing = append(differing, c.differing(part, len(parts), m)...)
		}
		curved = append(curved, c.curved(part, len(parts), m)...)
	}
	says = append(says, turned...)
	if len(apart) > 0 {
		says = append(says, fmt.Sprintf("Outcomes differ between sites by more than the features explain: %s. Effects of features that differ between sites are then partly those of the sites, even with the wrong sign, and their standard errors are too small. %s", strings.Join(apart, ", "), c.apart()))
	} else if len(within) > 0 {
		says = append(says, fmt.Sprintf("Within sites the effect of %s than between them: one coefficient mixes the two, and can even have the wrong sign. %s", problem.Names(within), c.mixes()))
	}
	if len(differing) > 0 {
		says = append(says, fmt.Sprintf("Sites differ in the effect of %s. One coefficient is an average that may hold at no site, and its standard error is too small for all sites like these, by about the factor stated. See whether the sites code the outcome and these features alike; then compare the sites' own fits (parley evaluate), or make what sites differ by a feature with an interaction.", problem.Names(differing)))
	}
	change, changing := c.changing(s, pooled, m)
	says = append(says, change...)
	if len(curved) > 0 {
		changes := ""
		if slices.ContainsFunc(curved, func(name string) bool {
			return slices.ContainsFunc(changing, func(x string) bool { return strings.HasPrefix(x, name+" (") })
		}) { // who is left later has other values
			changes = " An effect that changes over time looks like this too."
		}
		says = append(says, fmt.Sprintf("The effect of %s is not straight: outcomes of part of its values lie off the line. Do not read its coefficient as the effect; give it a spline (splines), or a transformation.%s", problem.Names(curved), changes))
	}
	highest := 0.0
	for _, part := range parts {
		highest = max(highest, part.all.SerialCorrelation(len(parts)))
	}
	if highest > 0 {
		says = append(says, fmt.Sprintf("Outcomes of subjects whose ids follow each other go together: what the features leave of one has a correlation of %.2f with what they leave of the next. So it is where rows are visits of one person, members of a family, or of one ward after the other. Standard errors and intervals are then too narrow, most of features that such rows share. Keep one row of each person, or make what rows share a feature.", highest))
	}
	says = append(says, c.informativeMissingness(parts, m)...)
	if pooled.Residuals == nil {
		return says
	}
	return append(says, c.uneven(parts[0], len(curved) > 0, s, pooled)...)
}

// uneven says how errors are other than those of the likelihood, where effects are straight: more
// variable for some values of features or at a site, skewed or with heavy tails.
func (c coordinator) uneven(part remainder, curved bool, s *state, pooled *predict.Assessment) (says []string) {
	if low, two := predict.TwoValues(part.sites, part.all); two && c.Options.Likelihood == options.LikelihoodLinear {
		return []string{fmt.Sprintf("The outcome has two values, %v and %v, and the model takes them for numbers. Predictions can then lie beyond them, and standard errors and intervals do not fit. If the values stand for classes, name them: outcome: {column: %s, levels: [\"%v\", \"%v\"]}.", low, low+1, c.Options.Outcome.Column, low, low+1)}
	}
	wider := c.wider(s, pooled)
	if len(wider) > 0 {
		says = append(says, fmt.Sprintf("Outcomes vary more for some values of the features than the model allows for. Standard errors and intervals are too narrow: by a factor of about %s. Report the robust ones, which stand beside them, or take logarithms of a positive outcome.", problem.Names(wider)))
	}
	if i, times := predict.GroupwiseHeteroscedasticity(part.sites); c.estimated() && i >= 0 { // which gives all of them heavy tails
		says = append(says, fmt.Sprintf("Errors of predictions are larger at %s: their standard deviation is %.1f times that of the other sites. Intervals of predictions are too narrow there and too wide elsewhere, and its subjects weigh more than they should. Look for another unit, instrument or coding there; if it is right, see what the estimates are without the site.", c.Plan.Sites[i], times))
	} else if c.estimated() && !curved && len(wider) == 0 { // which skew residuals too
		switch skewness, kurtosis, skewed, heavy := part.all.SkewnessKurtosis(); {
		case skewed:
			says = append(says, fmt.Sprintf("The errors of predictions are skewed (skewness %.1f, where 0 is symmetric), so intervals of predictions are too wide on one side and too narrow on the other. See whether outcomes hold codes for missing values; of a positive outcome take logarithms.", skewness))
		case heavy:
			says = append(says, fmt.Sprintf("The errors of predictions have heavy tails (kurtosis %.1f, where 3 is normal), so a few subjects decide the estimates, and intervals of predictions miss the few by far. Look for outliers of %s.", kurtosis, c.Options.Outcome.Column))
		}
	}
	return says
}

// apart says what to do about sites that differ.
func (c coordinator) apart() string {
	if len(c.Plan.Sites) < options.FewestRandom || c.classes() > 1 {
		return "Make the site a feature, a category that says where a subject is from."
	}
	return "Let sites have intercepts of their own: site_effects: random. The report then says where these are not enough, since the means of a feature go with them."
}

// mixes says what to do about effects within sites that are other than between them.
func (c coordinator) mixes() string {
	random := " Random intercepts (site_effects: random) alone take such differences out only where sites are large."
	switch {
	case c.Options.Random():
		random = " Random intercepts alone take such differences out only where sites are large."
	case c.classes() > 1: // which has none
		random = ""
	}
	return "See whether sites have these features in the same unit and coding. If they do, make the site a feature, a category that says where a subject is from, or give every subject the mean of the feature at its site as a further feature." + random
}

// within names the features whose effect within sites is other than between them, in one of so many
// parts.
func (c coordinator) within(s *state, part remainder, parts int, m *fitted.Model) (names []string) {
	groups, square := m.Encoding.Groups(), 0.0
	if s.Tau != nil {
		square = s.Tau.Square
	}
	for j, name := range m.Encoding.Features() {
		if ofEverybody(groups[j]) {
			continue
		}
		switch sum := predict.MundlakTest(part.sites, part.all, j, parts*len(groups), square); {
		case sum > 0:
			names = append(names, part.name(name)+" is higher")
		case sum < 0:
			names = append(names, part.name(name)+" is lower")
		}
	}
	return names
}

// ofEverybody says whether columns of a group belong to no feature.
func ofEverybody(group string) bool { return group == glm.InterceptGroup || group == glm.PeriodGroup }

// differing names the features whose effect is not the same at all sites, in one of so many parts, and
// the site that is farthest off.
func (c coordinator) differing(part remainder, parts int, m *fitted.Model) (names []string) {
	groups, tests := m.Encoding.Groups(), 0
	for _, g := range groups {
		if !ofEverybody(g) {
			tests++
		}
	}
	for j, name := range m.Encoding.Features() {
		if ofEverybody(groups[j]) {
			continue
		}
		if by, times := predict.CochranQ(part.sites, part.all, j, parts*tests, c.Options.Likelihood != options.LikelihoodLinear); by != nil {
			most, word := 0, "higher"
			for i, x := range by {
				if math.Abs(x) > math.Abs(by[most]) {
					most = i
				}
			}
			if by[most] < 0 {
				word = "lower"
			}
			names = append(names, fmt.Sprintf("%s (%s at %s; %.1f)", part.name(name), word, c.Plan.Sites[most], times))
		}
	}
	return names
}

// curved names the features whose effect is bent, in one of so many parts.
func (c coordinator) curved(part remainder, parts int, m *fitted.Model) (curved []string) {
	names, groups := m.Encoding.Features(), m.Encoding.Groups()
	straight := map[string]bool{}
	for i := range m.Encoding.Columns {
		col := &m.Encoding.Columns[i]
		straight[col.Name] = len(col.Levels) == 0 && len(col.Knots) == 0
	}
	for j, name := range names {
		if straight[groups[j]] && part.all.NonlinearityScoreTest(j, parts*len(names)) {
			curved = append(curved, part.name(name))
		}
	}
	return curved
}

// wider names the features whose standard error is too small, with the factor. Of counts that vary more in general that
// is said elsewhere.
func (c coordinator) wider(s *state, pooled *predict.Assessment) (wider []string) {
	if pooled.Scatter == nil || c.Options.Robust() || len(fitted.Dispersion(c.Options, pooled, c.Weights())) > 0 {
		return nil
	}
	q := s.Fit.At.normal()
	vary := 2.0
	if r := pooled.Residuals; !c.estimated() {
		vary = max(vary, r.Fourth/r.Weight-1)
	} else if _, _, _, heavy := r.SkewnessKurtosis(); heavy { // which may be what makes errors so
		vary = math.Sqrt(vary * (r.Fourth/r.Weight - 1))
	}
	times := pooled.Scatter.Wider(q, pooled.Scatter.Robust(q, c.PriorOf(s.Scale)), vary)
	for j, name := range c.Encoding.Features() {
		if times[j] > 1 {
			wider = append(wider, fmt.Sprintf("%.1f for %s", times[j], name))
		}
	}
	return wider
}

// farthest says how the two sites that are farthest off differ, in a class if there are several.
func (c coordinator) farthest(by []float64, class string) (parts []string) {
	low, high := 0, 0
	for i, x := range by {
		if x < by[low] {
			low = i
		}
		if x > by[high] {
			high = i
		}
	}
	if class == "" && !c.Options.Numeric() {
		class = c.Options.Outcome.Levels[1]
	}
	for _, i := range []int{low, high} {
		x, word := by[i], "higher"
		if x < 0 {
			x, word = -x, "lower"
		}
		what, unit := "the mean", ""
		if !c.Options.Numeric() {
			what, x, unit = "the share of "+class, 100*x, " points"
		}
		if c.Options.Likelihood == options.LikelihoodHazard {
			what = "the share of events in a period"
		}
		parts = append(parts, fmt.Sprintf("%s at %s is %s%s %s than the model expects", what, c.Plan.Sites[i], figure.General.Text(rounded(x)), unit, word))
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

// halfError and wholeError are the least shifts that are worth a verdict: of a category, the reference of
// which counts in the place of a missing cell, and of a number, whose mean does. A number is then about half
// a standard deviation off, so that either moves effects by half a standard error.
const halfError, wholeError = 0.5, 1.0

// informativeMissingness says which features' cells are missing where outcomes are other than the model expects, as
// where less is recorded of cases.
func (c coordinator) informativeMissingness(parts []remainder, m *fitted.Model) []string {
	columns := m.Encoding.Columns
	var names []string
	j := 0
	for i := range columns {
		if columns[i].Width() == 0 {
			continue
		}
		least := wholeError
		if len(columns[i].Levels) > 0 {
			least = halfError
		}
		for _, part := range parts {
			if shift := predict.Lacking(part.sites, part.all, j, len(parts)*len(columns)); math.Abs(shift) > least {
				names = append(names, fmt.Sprintf("%s (%s without it)", columns[i].Name, c.more(part.class, shift > 0)))
			}
		}
		j += columns[i].Width()
	}
	if names == nil {
		return nil
	}
	advice := "Filling the cells or leaving such subjects out makes up for that only where the lack goes with other features alone."
	if !c.Options.Numeric() {
		advice = "If the outcome alone decides that, a fit to subjects who have the values has the right effects, but for the intercept and the probabilities."
	}
	return []string{fmt.Sprintf("Outcomes of subjects who lack values are not as the model expects: of %s. So it is where less is recorded of cases than of others, or values are missing because of what they are. Effects of these features, and of all that go with them, can be off by more than their intervals say. Ask the sites why the values are missing. %s", problem.Names(names), advice)}
}

// more says that there is more, or less, of a class or of what outcomes are.
func (c coordinator) more(class string, more bool) string {
	word := map[bool]string{true: "higher", false: "lower"}[more]
	switch {
	case c.Options.Likelihood == options.LikelihoodHazard:
		return map[bool]string{true: "more events", false: "fewer events"}[more]
	case c.Options.Numeric():
		return word
	case class == "":
		class = c.Options.Outcome.Levels[1]
	}
	return map[bool]string{true: "more", false: "less"}[more] + " often " + class
}

// period names the periods from the first to the last of a stretch of time.
func (c common) period(first, last int) string {
	begin := 0.0
	if first > 0 {
		begin = c.Options.Outcome.Cuts[first-1]
	}
	return fmt.Sprintf("(%v, %v]", begin, c.Options.Outcome.Cuts[last])
}

// changes are tests of whether effects change over time, of each column of features and of all together.
func (c common) changes(s *state, pooled *predict.Assessment) (each []predict.Change, all predict.Change) {
	var sets [][]int
	for j := range c.Weights() - c.periods() {
		sets = append(sets, []int{j})
	}
	return pooled.Periods.Changes(sets, c.PriorOf(s.Scale), pooled.Residuals.Dispersion())
}

// changing says which features have an effect that changes over time.
func (c common) changing(s *state, pooled *predict.Assessment, m *fitted.Model) (says, names []string) {
	if pooled.Periods == nil || pooled.Residuals == nil {
		return nil, nil
	}
	each, _ := c.changes(s, pooled)
	for j, change := range each {
		if change.Matters(len(each), pooled.Residuals.Variance) {
			word := "grows"
			if change.Slope < 0 {
				word = "falls"
			}
			names = append(names, fmt.Sprintf("%s (%s)", m.Encoding.Features()[j], word))
		}
	}
	if names == nil {
		return nil, nil
	}
	return []string{fmt.Sprintf("The effect of %s changes over time. A coefficient is then an average that may hold in no period, and survival is predicted wrongly. No plan has interactions of a feature with time. Fit parts of the time as studies of their own: one with the first cuts alone, and one of those who are left after them, with time counted from there. A strong feature that is missing, and one that goes with another whose effect changes, can look like this too.", problem.Names(names))}, names
}

// uninformativePeriods says in which periods outcomes tell nothing of the hazard.
func (c common) uninformativePeriods(pooled *predict.Assessment) (says []string) {
	if pooled == nil || pooled.Periods == nil {
		return nil
	}
	var none, all []string
	at, had := pooled.Periods.Count()
	for k, rows := range at {
		name := fmt.Sprintf("%s (%s)", c.period(k, k), figure.Plural(int(rows), "subject"))
		switch events := had[k]; {
		case rows == 0: // its coefficient is that of the prior, which is said elsewhere
		case events == 0:
			none = append(none, name)
		case events == rows:
			all = append(all, name)
		}
	}
	say := func(what string, periods []string, size string) {
		if len(periods) > 0 {
			says = append(says, fmt.Sprintf("%s: %s. Only the prior says how %s the hazard is there, and a fit can take many exchanges to find that out. Do not read the coefficients of such periods. Merge each with a neighbour: leave out the cut between them.", what, problem.Names(periods), size))
		}
	}
	say("There are periods without an event", none, "low")
	say("There are periods that nobody leaves without an event", all, "high")
	return says
}
