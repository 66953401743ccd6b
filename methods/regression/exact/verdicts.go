package exact

import (
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// verdicts are what is to be known of the fit before anything is read from it, the worst
// first. Nothing is said where all is well.
func (c coordinator) verdicts(s *state, m *fitted.Model, pooled *predict.Assessment) []string {
	var classes []float64 // how many have each, of several
	if c.classes() > 1 {
		classes = c.total(s, taskSums).At[0].Classes
	}
	says := c.emptyClasses(classes)
	if len(says) == 0 {
		says = fitted.OutcomeVerdicts(m.Options, pooled)
	}
	if len(says) > 0 && s.Fit.Settled { // what else there is follows from that
		return append(says, c.Unlike(c.Plan.Sites, s.Moments)...)
	}
	if len(says) == 0 {
		says = slices.Concat(m.HeldBack(), c.oneSided(pooled, m), c.fewEvents(pooled, classes, m))
	}
	if !s.Fit.Settled {
		advice := " Allow more method.rounds, or look for features that say the same or that part the classes " +
			"without error."
		if len(says) > 0 {
			advice = ""
		}
		says = append(says, fmt.Sprintf("The fit had not converged after %d exchanges: the last step still moved a "+
			"weight by %.2g of its standard deviations. Do not rely on the estimates.%s", s.Round,
			s.lastStep(), advice))
	}
	if s.Fit.Settled {
		says = append(says, fitted.Dispersion(c.Options, pooled, c.Weights())...)
	}
	return slices.Concat(says, c.Unlike(c.Plan.Sites, s.Moments), c.missingCells(s, m), c.misfits(s, m, pooled),
		fitted.Undetermined(m))
}

// emptyClasses says which levels of the outcome nobody has.
func (c coordinator) emptyClasses(classes []float64) (says []string) {
	var none []string
	y := c.Options.Outcome
	for k, n := range classes {
		if n == 0 {
			none = append(none, y.Levels[k])
		}
	}
	switch {
	case none == nil:
		return nil
	case len(none) == len(y.Levels)-1:
		return []string{fmt.Sprintf("All subjects of all sites have one level of %s: with one class there is nothing "+
			"to learn, and the estimates are those of the prior. See whether the sites' data have the right column "+
			"and subjects of all classes.", y.Column)}
	}
	return []string{fmt.Sprintf("Nobody has these levels of %s: %s. What is said of them is known from the prior "+
		"alone, and effects on all classes are measured against the mean of all, so that their standard errors are "+
		"too large to be of use. Leave these levels out of method.outcome.levels.", y.Column, problem.Names(none))}
}

// oftenMissing times √n is how many cells of a feature may be missing of n subjects before intervals can no longer be
// relied on. What a cell counts as in place of its value moves other estimates by a share of the missing cells, and
// their standard errors fall with √n. With two features whose correlation is .7 intervals of 90 % held .86 without a
// missing cell, .84 just below this bound, and .57 where half the cells of one were missing
// (TestIntervalsWithMissingCells).
const oftenMissing = 2

// missingCells says which features lack so many cells that intervals do not hold. How many subjects there are is told
// by rows, or where these are person-periods by the feature with most cells.
func (c coordinator) missingCells(s *state, m *fitted.Model) []string {
	subjects, least := 0.0, ""
	_, all := c.counted(s)
	if len(c.Options.Outcome.Cuts) > 0 {
		subjects, least = slices.Max(append([]float64{0}, all...)), "at least "
	} else {
		for _, rows := range s.Rows {
			subjects += float64(rows)
		}
	}
	var scarce []string
	for i, cells := range all {
		if missing := subjects - cells; missing > oftenMissing*math.Sqrt(subjects) {
			scarce = append(scarce, fmt.Sprintf("%s (%.0f of %s%.0f subjects)", m.Encoding.Columns[i].Name, missing,
				least, subjects))
		}
	}
	if scarce == nil {
		return nil
	}
	return []string{fmt.Sprintf("Much is missing of %s. A missing cell counts as if one value had been observed, so "+
		"estimates of these features, and of all that go with them, can be off by more than their intervals say. "+
		"Leave such features out, or fit to subjects who have them.", problem.Names(scarce))}
}

// eventsByEffect is how many events each effect needs for its interval to hold nearly as often as it
// says (Vittinghoff and McCulloch, American Journal of Epidemiology 2007; ten by Peduzzi and others,
// Journal of Clinical Epidemiology 1996).
const eventsByEffect = 5

// fewEvents says that effects are many for so few events: of classes those of the rarest one, of
// counts all. Of rows that have more than two classes it needs their numbers, and says nothing where
// rows have weights. The intercept and the coefficients of periods are no effects.
func (c common) fewEvents(pooled *predict.Assessment, classes []float64, m *fitted.Model) (says []string) {
	if pooled == nil {
		return nil
	}
	y, events, what, of := c.Options.Outcome, 0.0, "event", ""
	switch r := pooled.Ranking; {
	case r != nil:
		cases, controls := r.Classes()
		if events = min(cases, controls); c.Options.Likelihood != glm.LikelihoodHazard {
			rarer := y.Levels[1]
			if controls < cases {
				rarer = y.Levels[0]
			}
			what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, rarer)
		}
	case len(classes) > 1 && c.Options.Weights == nil:
		events = slices.Min(classes)
		what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, y.Levels[slices.Index(classes, events)])
	case pooled.Residuals != nil && c.Options.Likelihood == glm.LikelihoodPoisson:
		events, of = pooled.Residuals.Total, " in all counts of "+y.Column
	default:
		return nil
	}
	effects := 0
	for _, g := range m.Encoding.Groups() {
		if !ofEverybody(g) {
			effects++
		}
	}
	if events >= eventsByEffect*float64(effects) {
		return nil
	}
	return []string{fmt.Sprintf("Few events for so many effects: %s%s, and %s. With fewer than %d for each, effects "+
		"come out too large, and intervals, the intercept's above all, hold the truth less often than they say. Leave "+
		"out features or levels that matter less, join rare levels, or wait for more events.",
		figure.Plural(int(events), what), of, figure.Plural(effects, "effect"), eventsByEffect)}
}

// oneSided says which effects of levels, of numbers of two values, and of periods the data bound on one side only:
// nobody with the level has an event, or everybody has. The likelihood then rises without an end (Albert
// and Anderson, Biometrika 1984), and the prior alone says where the estimate is.
func (c common) oneSided(pooled *predict.Assessment, m *fitted.Model) []string {
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
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("The data bound the effect of %s on one side only: of the subjects with one of its "+
		"values none has the outcome, or all have. Where the estimate is, its standard error and its interval are the "+
		"prior's, and an interval that leaves 0 out shows nothing. Report how many there are in its place, or join a "+
		"rare level, or a period, with another.", problem.Names(names))}
}

// twoValues says whether a number, by its mean and its standard deviation, is one of two values that
// follow each other, such as 0 and 1.
func twoValues(c *glm.Column) bool {
	low := math.Floor(c.Centre)
	return len(c.Knots) == 0 && math.Abs((c.Centre-low)*(low+1-c.Centre)/(c.Scale*c.Scale)-1) < 1e-9
}
