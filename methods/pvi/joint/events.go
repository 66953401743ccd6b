package joint

import (
	"fmt"
	"slices"

	"parley/figure"
	"parley/methods/pvi/options"
	"parley/methods/pvi/predict"
	"parley/methods/pvi/use"
)

// eventsByEffect is how many events each effect needs for its interval to hold nearly as often as it
// says (Vittinghoff and McCulloch, American Journal of Epidemiology 2007; ten by Peduzzi and others,
// Journal of Clinical Epidemiology 1996).
const eventsByEffect = 5

// fewEvents says that effects are many for so few events: of classes those of the rarest one, of
// counts all. Of rows that have more than two classes it needs their numbers, and says nothing where
// rows have weights, which may count people. The intercept and the coefficients of periods are no effects. Of weights that may
// count people the expected information Σ wp(1 − p) takes the place of their rows, if it is more.
func (c common) fewEvents(pooled *predict.Assessment, classes []float64, m *use.Model) (says []string) {
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
	case len(classes) > 1 && c.Options.Weight == "":
		events = slices.Min(classes)
		what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, y.Levels[slices.Index(classes, events)])
	case pooled.Counts != nil && c.Options.Likelihood == options.LikelihoodPoisson:
		events, of = pooled.Counts.Total, " in all counts of "+y.Column
	default:
		return nil
	}
	if s := pooled.Residuals; s != nil && c.Options.Weight != "" && !s.Sampled {
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
