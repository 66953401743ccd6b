package fitted

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Found says in words what goes with the outcome most surely.
func Found(m *Model) string {
	type effect struct {
		name string
		mean float64
		sure float64 // how many standard deviations from 0
	}
	mean, variance := m.Posterior.Moments()
	groups := m.Encoding.Groups()
	percent, z := 90, m.Deviate(Z90)
	if m.Options.Joint() { // as the table of coefficients has it
		percent, z = 95, m.Deviate(Z95)
	}
	var clear []effect
	all := 0
	for j, e := range m.Effects {
		if g := groups[j%len(groups)]; g == glm.InterceptGroup || g == glm.PeriodGroup {
			continue // its place is no effect
		}
		all++
		if sure := math.Abs(mean[j]) / math.Sqrt(variance[j]); sure > z {
			clear = append(clear, effect{e.Label(), mean[j], sure})
		}
	}
	outcome := effectOn(m.Options)
	if len(clear) == 0 {
		return fmt.Sprintf("Of %s on %s none has an interval of %d %% that leaves out zero: these data do not say what goes with it.", figure.Plural(all, "effect"), outcome, percent)
	}
	slices.SortStableFunc(clear, func(a, b effect) int { return cmp.Compare(b.sure, a.sure) })
	var names []string
	for _, e := range clear[:min(5, len(clear))] {
		way := "up"
		if e.mean < 0 {
			way = "down"
		}
		names = append(names, e.name+" ("+way+")")
	}
	have := "have"
	if len(clear) == 1 {
		have = "has"
	}
	return fmt.Sprintf("Of %s on %s, %d %s an interval of %d %% that leaves out zero. The surest: %s.", figure.Plural(all, "effect"), outcome, len(clear), have, percent, strings.Join(names, ", "))
}

// Sure says in words how well outcomes are predicted; pooled is nil if no site said so.
func Sure(m *Model, pooled *predict.Assessment) string {
	if pooled == nil {
		return "No site said how well its outcomes are predicted: that would have been a further release."
	}
	o := m.Options
	cal := pooled.Calibration()
	says := fmt.Sprintf("Over %s %ss ", figure.Count.Text(float64(pooled.Rows)), o.Unit())
	switch {
	case o.Numeric():
		says += fmt.Sprintf("predictions are off by %s (root mean square).", figure.General.Text(math.Sqrt(pooled.Squares/float64(pooled.Rows))))
	case pooled.Periods != nil:
		says += fmt.Sprintf("whoever has the event first has the higher score with probability %.3f (concordance; 0.5 is chance), and probabilities of a period are off by %.3f on average.", pooled.Periods.Concordance(), cal.Error())
	case pooled.Ranking != nil:
		_, _, area := pooled.Ranking.ROC()
		says += fmt.Sprintf("a case is given more than a control with probability %.3f (AUC; 0.5 is chance), and probabilities are off by %.3f on average.", area, cal.Error())
	default:
		says += fmt.Sprintf("%.1f %% of outcomes are predicted correctly, and probabilities are off by %.3f on average.", 100*float64(pooled.Correct)/float64(pooled.Rows), cal.Error())
	}
	says += " They took part in the fit; others are predicted a little worse."
	if pooled.Noise > 0 {
		says += " These numbers hold noise, of which ± is one standard deviation."
	}
	return says
}

// effectOn names what effects are on, such that up is more of it.
func effectOn(o *options.Options) string {
	switch o.Likelihood {
	case options.LikelihoodHazard:
		return fmt.Sprintf("the hazard of %s = %s", o.Outcome.Event, o.Outcome.Levels[1])
	case options.LikelihoodLogistic:
		return fmt.Sprintf("%s = %s", o.Outcome.Column, o.Outcome.Levels[1])
	}
	return o.Outcome.Column
}
