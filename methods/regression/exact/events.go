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

// eventsByEffect is how many events each effect needs for its interval to hold nearly as often as it
// says (Vittinghoff and McCulloch, American Journal of Epidemiology 2007; ten by Peduzzi and others,
// Journal of Clinical Epidemiology 1996).
const eventsByEffect = 5

// fewEvents says that effects are many for so few events: of classes those of the rarest one, of
// counts all. Of rows that have more than two classes it needs their numbers, and says nothing where
// rows have weights. The intercept and the coefficients of periods are no effects. Of weights that
// count rows the expected information Σ wp(1 − p) takes the place of their number, if it is more.
func (c common) fewEvents(pooled *predict.Assessment, classes []float64, m *fitted.Model) (says []string) {
	if pooled == nil {
		return nil
	}
	y, events, what, of := c.Options.Outcome, 0.0, "event", ""
	switch r := pooled.Ranking; {
	case r != nil:
		cases, controls := r.Classes()
		if events = min(cases, controls); c.Options.Likelihood != options.LikelihoodHazard {
			rarer := y.Levels[1]
			if controls < cases {
				rarer = y.Levels[0]
			}
			what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, rarer)
		}
	case len(classes) > 1 && c.Options.Weights == nil:
		events = slices.Min(classes)
		what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, y.Levels[slices.Index(classes, events)])
	case pooled.Counts != nil && c.Options.Likelihood == options.LikelihoodPoisson:
		events, of = pooled.Counts.Total, " in all counts of "+y.Column
	default:
		return nil
	}
	if s := pooled.Residuals; s != nil && c.Options.Weights != nil && !s.Sampled {
		events = max(events, s.Variance)
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
	return []string{fmt.Sprintf("Few events for so many effects: %s%s, and %s. With fewer than %d for each, effects come out too large, and intervals, the intercept's above all, hold the truth less often than they say. Leave out features or levels that matter less, join rare levels, or wait for more events.", figure.Plural(int(events), what), of, figure.Plural(effects, "effect"), eventsByEffect)}
}

// oneSided says which effects of levels, and of numbers of two values, the data bound on one side only:
// nobody with the level has an event, or everybody has. The likelihood then rises without an end (Albert
// and Anderson, Biometrika 1984), and the prior alone says where the estimate is.
func (c common) oneSided(parts []remainder, m *fitted.Model) (says []string) {
	if c.Options.Likelihood == options.LikelihoodLinear || c.Options.Link == options.LinkCloglog {
		return nil
	}
	counts := c.Options.Likelihood == options.LikelihoodPoisson
	terms := m.Encoding.Features()
	var names []string
	for _, part := range parts {
		j := 0
		for i := range m.Encoding.Columns {
			col := &m.Encoding.Columns[i]
			for range col.Width() {
				low := len(col.Levels) == 0 && twoValues(col)
				if (low || len(col.Levels) > 0) && part.all.Separated(j, false, counts) || low && part.all.Separated(j, true, counts) {
					names = append(names, part.name(terms[j]))
				}
				j++
			}
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("The data bound the effect of %s on one side only: of the subjects with one of its values none has the outcome, or all have. Where the estimate is, its standard error and its interval are the prior's, and an interval that leaves 0 out shows nothing. Report how many there are in its place, join a rare level with another, or state the prior that you mean (priors).", problem.Names(names))}
}

// twoValues says whether a number, by its mean and its standard deviation, is one of two values that
// follow each other, such as 0 and 1.
func twoValues(c *glm.Column) bool {
	low := math.Floor(c.Centre)
	return len(c.Knots) == 0 && math.Abs((c.Centre-low)*(low+1-c.Centre)/(c.Scale*c.Scale)-1) < 1e-9
}
