package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// verdicts are what is to be known of the fit before anything is read from it, the worst
// first. Nothing is said where all is well.
func (c coordinator) verdicts(s *state, m *fitted.Model, pooled *predict.Assessment) []glm.Finding {
	var classes []float64 // how many have each
	for _, of := range c.counted(s).ByClass {
		classes = append(classes, of.Rows)
	}
	unlike := c.Unlike(c.Plan.Sites, s.Moments)
	says := fitted.OutcomeVerdicts(m.Options, pooled, classes)
	switch {
	case len(says) == 0:
		says = slices.Concat(m.HeldBack(), c.oneSided(pooled, m), c.fewEvents(pooled, classes, m))
	case s.Fit.Settled: // what else there is follows from that
		return append(says, unlike...)
	}
	if s.Fit.Settled {
		says = append(says, fitted.Dispersion(c.Options, pooled, c.Weights())...)
	} else {
		far := 0.0
		if n := len(s.Fit.Trace); n > 0 {
			far = s.Fit.Trace[n-1]
		}
		says = append(says, glm.OnConvergence.Say("The fit", fmt.Sprintf(" after %d exchanges", s.Round), fmt.Sprintf(
			"the last step still moved a weight by %.2g of its standard deviations", far))...)
	}
	return slices.Concat(says, unlike, c.missingCells(s, m), c.misfits(s, m, pooled), fitted.Undetermined(m))
}

// missingCells says which features lack so many cells that intervals do not hold. How many subjects there are is told
// by rows, or where these are person-periods by the feature with most cells.
func (c coordinator) missingCells(s *state, m *fitted.Model) []glm.Finding {
	subjects, least, all := 0.0, "", c.Cells(c.counted(s))
	if c.periods() > 0 {
		subjects, least = slices.Max(append([]float64{0}, all...)), "at least "
	} else {
		for _, rows := range s.Rows {
			subjects += float64(rows)
		}
	}
	var scarce []string
	for i, cells := range all {
		if missing := subjects - cells; missing > glm.OnMissing.Matters*math.Sqrt(subjects) {
			scarce = append(scarce, fmt.Sprintf("%s (%.0f of %s%.0f subjects)", m.Encoding.Columns[i].Name, missing,
				least, subjects))
		}
	}
	return glm.OnMissing.Of(problem.Names(scarce))
}

// fewEvents says that effects are many for so few events: of classes those of the rarest one, of
// counts all. Of rows that have more than two classes it needs their numbers, and says nothing where
// rows have weights. The intercept and the coefficients of periods are no effects.
func (c common) fewEvents(pooled *predict.Assessment, classes []float64, m *fitted.Model) []glm.Finding {
	if pooled == nil {
		return nil
	}
	y, events, what, of := c.Options.Outcome, 0.0, "event", ""
	if r := pooled.Ranking; r != nil {
		cases, controls := r.Classes()
		classes = []float64{controls, cases}
	}
	switch {
	case c.periods() > 0 && len(classes) > 1:
		events = slices.Min(classes)
	case len(classes) > 1 && (pooled.Ranking != nil || c.Options.Weights == nil):
		at := floats.MinIdx(classes)
		events, what, of = classes[at], "subject", fmt.Sprintf(" with %s = %s", y.Column, y.Levels[at])
	case pooled.Residuals != nil && c.Options.Likelihood == glm.LikelihoodPoisson:
		events, of = pooled.Residuals.Total, " in all counts of "+y.Column
	default:
		return nil
	}
	effects := m.Encoding.FeatureWidth()
	if events >= glm.OnEvents.Matters*float64(effects) {
		return nil
	}
	return glm.OnEvents.Say(figure.Plural(int(events), what), of, figure.Plural(effects, "effect"),
		int(glm.OnEvents.Matters))
}

// oneSided says which effects the data bound on one side only.
func (c common) oneSided(pooled *predict.Assessment, m *fitted.Model) []glm.Finding {
	if pooled == nil || pooled.Residuals == nil || c.Options.Likelihood == glm.LikelihoodLinear {
		return nil
	}
	residuals, counts := pooled.Residuals, c.Options.Likelihood == glm.LikelihoodPoisson
	var names []string
	groups, periods := m.Encoding.Groups(), 0
	for j, name := range m.Encoding.Features() {
		i, one := slices.IndexFunc(m.Encoding.Columns, func(col glm.Column) bool { return col.Name == groups[j] }),
			false
		switch {
		case groups[j] == glm.PeriodGroup && pooled.Periods != nil:
			rows, events := pooled.Periods.Count()
			one = rows[periods] > 0 && (events[periods] == 0 || events[periods] == rows[periods])
			periods++
		case i < 0 || c.Options.Link == options.LinkCloglog:
		case len(m.Encoding.Columns[i].Levels) > 0:
			one = residuals.Separated(j, false, counts)
		case twoValues(&m.Encoding.Columns[i]):
			one = residuals.Separated(j, false, counts) || residuals.Separated(j, true, counts)
		}
		if one {
			names = append(names, name)
		}
	}
	return glm.OnOneSide.Of(problem.Names(names))
}

// twoValues says whether a number, by its mean and its standard deviation, is one of two values that
// follow each other, such as 0 and 1.
func twoValues(c *glm.Column) bool {
	low := math.Floor(c.Centre)
	return len(c.Knots) == 0 && math.Abs((c.Centre-low)*(low+1-c.Centre)/(c.Scale*c.Scale)-1) < 1e-9
}

// misfits says how outcomes are other than the likelihood takes them for: apart by sites, with effects that differ
// between sites, or with effects that bend or change over time. Of three classes or more, the first alone is known.
func (c coordinator) misfits(s *state, m *fitted.Model, pooled *predict.Assessment) (says []glm.Finding) {
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
		if c.turned(s, name) > farTurned {
			says = append(says, glm.OnRecording.Say(name, "outcomes go with the features the other way round:",
				fmt.Sprintf("where the fit to all sites predicts more, there is less, as where the levels of %s "+
					"stand the other way round in its data, or numbers run from good to "+
					"bad.", c.Options.Outcome.Column))...)
		}
	}
	turned := len(says) > 0 // sites differ in all then
	if by := predict.SiteScoreTest(sites, all, 1); by != nil && !turned && !c.Options.Random() {
		level := ""
		if levels := c.Options.Outcome.Levels; len(levels) > 1 {
			level = levels[1]
		}
		says = append(says, c.outcomesDiffer(c.farthest(by, level))...)
	}
	names, groups := m.Encoding.Features(), m.Encoding.Groups()
	if first := slices.Index(groups, glm.PeriodGroup); first >= 0 && !turned {
		for i, site := range sites {
			if site.TimesDiffer(first, c.periods(), len(sites)) {
				says = append(says, glm.OnRecording.Say(c.Plan.Sites[i], "events come at other times:",
					"the hazards of periods are other than the features explain, as where events and the end of "+
						"follow-up stand the other way round, or times count from another day.")...)
			}
		}
	}
	straight, tests := map[string]bool{}, m.Encoding.FeatureWidth()
	for i := range m.Encoding.Columns {
		col := &m.Encoding.Columns[i]
		straight[col.Name] = len(col.Levels) == 0 && len(col.Knots) == 0
	}
	var differing, curved, changing []string
	for j, name := range names[:tests] { // before those of everybody
		if by, times := predict.EffectsDiffer(sites, all, j, tests, c.Options.Likelihood != glm.LikelihoodLinear); by !=
			nil && !turned {
			most, word := predict.Farthest(by)
			differing = append(differing, fmt.Sprintf("%s (%s at %s; %.1f)", name, word, c.Plan.Sites[most], times))
		}
		if straight[groups[j]] && all.NonlinearityScoreTest(j, len(names)) {
			curved = append(curved, name)
		}
	}
	if len(differing) > 0 {
		says = append(says, glm.OnSites.Say("Sites differ in the effect of "+problem.Names(differing), "",
			"fit the sites that agree, or make what sites differ by a feature with an interaction")...)
	}
	if pooled.Periods != nil {
		each, _ := c.changes(s, pooled)
		for j, change := range each {
			if change.Matters(len(each), all.Variance) {
				changing = append(changing, fmt.Sprintf("%s (%s)", names[j],
					map[bool]string{true: "grows", false: "falls"}[change.Slope > 0]))
			}
		}
	}
	return slices.Concat(says, glm.OnShape.Of(problem.Names(changing), "changes over time"),
		glm.OnShape.Of(problem.Names(curved), "is not straight"))
}

// classesApart says of three classes or more which have another share at some sites than the features explain, by the
// residuals of the last exchange.
func (c coordinator) classesApart(s *state) []glm.Finding {
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
	return c.outcomesDiffer(parts)
}

// outcomesDiffer says that sites' outcomes are apart by so much, and what to do about it.
func (c coordinator) outcomesDiffer(parts []string) []glm.Finding {
	do := "let sites have intercepts of their own (site_effects: random)"
	if len(c.Plan.Sites) < options.FewestRandom || c.classes() > 1 {
		do = "make the site a feature, a category that says where a subject is from"
	}
	return glm.OnSites.Say("Outcomes differ between sites by more than the features explain", "At "+
		strings.Join(parts, ", and at ")+". ", do)
}

// farthest says how the sites that are farthest off on either side differ, the farther one first, in the share of a
// level where outcomes are classes.
func (c coordinator) farthest(by []float64, level string) (parts []string) {
	first, other := floats.MaxIdx(by), floats.MinIdx(by)
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
		if x > 0 { // two digits are enough
			digit := math.Pow(10, math.Floor(math.Log10(x))-1)
			x = math.Round(x/digit) * digit
		}
		parts = append(parts, fmt.Sprintf("%s %s is %s%s %s than the model expects", c.Plan.Sites[i], what,
			figure.General.Text(x), unit, word))
	}
	return parts
}
