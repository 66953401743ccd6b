package selection

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
)

// result draws the selection.
func (s *selector) result() *method.Result {
	r := &method.Result{Metrics: s.out.Metrics(map[string]string{ruleBest: "held_out", ruleSE: "one_standard_error", ruleElbow: "elbow", ruleBIC: "bic", ruleARD: "ard"})}
	r.Headline = []figure.Fact{
		s.out.Headline(),
		{Name: "smallest within one standard error", Value: strconv.Itoa(s.choice(ruleSE))},
		{Name: "at the elbow", Value: strconv.Itoa(s.choice(ruleElbow))},
	}
	r.Sections = []figure.Section{s.ChoiceSection(), s.heldOutSection()}
	if sec := s.wholeSection(); len(sec.Items) > 0 {
		r.Sections = append(r.Sections, sec)
	}
	r.Sections = append(r.Sections, s.scoreSection())
	return r
}

func (s *selector) choice(rule string) int { return s.out.Choice(rule) }

func (s *selector) ChoiceSection() figure.Section {
	return s.out.Section("Every rule below was worked out on the same rows. A recommendation follows the first, if nothing is warned of: the model under which rows that were not fitted are the most likely.")
}

func (s *selector) heldOutSection() figure.Section {
	c := s.config
	x, logLik := s.curve(scoreLogLik)
	_, errors := s.curve(scoreError)
	chart := figure.Lines{X: figure.Axis{Label: "number of factors", Count: true}, Y: figure.Axis{Label: "held-out log-likelihood per subject (nats)"},
		Series: []figure.Line{{Name: "log-likelihood", X: x, Y: logLik}}}
	// Upright lines, one where both choices are the same.
	marks := []struct {
		name  string
		value int
	}{{"best", s.choice(ruleBest)}, {"elbow", s.choice(ruleElbow)}}
	if marks[0].value == marks[1].value {
		marks[0].name, marks = "best, elbow", marks[:1]
	}
	for _, m := range marks {
		at := float64(m.value)
		chart.Series = append(chart.Series, figure.Line{Name: fmt.Sprintf("%s: %d", m.name, m.value),
			X: figure.Numbers{at, at}, Y: figure.Numbers{slices.Min(logLik), slices.Max(logLik)}})
	}
	return figure.Section{ID: "held-out", Title: "How well rows are predicted that were not fitted",
		Lead: fmt.Sprintf("Each site split its own subjects into %d folds, %s. Without each fold in turn, all sites fitted one model in a single round; then each site scored its own held-out rows, and the scores of all sites were added. The scale of every fit comes from its fitted rows.",
			c.Folds, timesOver(c.Repeats)),
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "held-out-log-likelihood", Title: "Held-out log-likelihood by number of factors", Chart: chart,
				Caption: "Higher is better. The curve rises while factors describe what all subjects share, and falls once they describe the fitted rows only. Left of the elbow it is steep; right of it, it gains at most 2 % of its range.",
				Alt:     fmt.Sprintf("Line of the held-out log-likelihood, highest at %d factors, with its elbow at %d.", s.choice(ruleBest), s.choice(ruleElbow))}},
			{Figure: &figure.Figure{ID: "held-out-error", Title: "Held-out reconstruction error by number of factors", Chart: figure.Lines{
				X: figure.Axis{Label: "number of factors", Count: true}, Y: figure.Axis{Label: "mean absolute error, in " + s.set.Options.Unit()},
				Series: []figure.Line{{Name: "error", X: x, Y: errors}}},
				Caption: "Lower is better, but each value takes part in its own reconstruction, so the error falls with every factor and has no best number: look for the bend.",
				Alt:     "Line of the mean absolute error of held-out rows, which falls with the number of factors."}},
		}}
}

func timesOver(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times over", n)
}

// wholeSection shows the criteria of fits to all rows.
func (s *selector) wholeSection() figure.Section {
	sec := figure.Section{ID: "other-criteria", Title: "What other criteria say",
		Lead: "These are for comparison, and fitted to all rows. They weigh fit against size by argument where the picture above measures prediction."}
	if s.wants(criterionBIC) {
		x, y := s.curve(scoreBIC)
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{ID: "bic", Title: "Bayesian information criterion by number of factors",
			Chart:   figure.Lines{X: figure.Axis{Label: "number of factors", Count: true}, Y: figure.Axis{Label: "BIC"}, Series: []figure.Line{{Name: "BIC", X: x, Y: y}}},
			Caption: "Lower is better: −2 log-likelihood + p ln n, with p = dq − q(q−1)/2 + d + the number of noise variances, for n subjects, d features and q factors.",
			Alt:     "Line of the Bayesian information criterion."}})
	}
	if s.wants(criterionARD) {
		b := figure.Bars{X: figure.Axis{Label: "wᵀΨ⁻¹w"}}
		for a, x := range s.whole[len(s.whole)-1].Strength {
			b.Labels = append(b.Labels, fmt.Sprintf("factor %d", a+1))
			b.Values = append(b.Values, x)
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{ID: "relevance", Title: "What automatic relevance determination keeps", Chart: b,
			Caption: "How far each factor of the largest candidate stands out of the noise after those that the data do not need have shrunk. Those above 1 count.",
			Alt:     "Bars of the strength of each factor."}})
	}
	return sec
}

func (s *selector) scoreSection() figure.Section {
	t := figure.Table{ID: "candidates", Title: "All scores",
		Caption: "Log-likelihoods and BIC are in scaled units. Behind: how much less likely a held-out subject is on average than with the best number of factors, with the standard error of that mean over subjects."}
	x := figure.Column{Name: "factors", Format: figure.Count}
	for _, q := range s.config.Values {
		x.Numbers = append(x.Numbers, float64(q))
	}
	t.Columns = append(t.Columns, x)
	for _, c := range []struct{ score, name, unit string }{
		{scoreLogLik, "held-out log-likelihood per subject", "nats"}, {scoreBehind, "behind the best", "nats"}, {scoreBehindSE, "standard error", "nats"},
		{scoreError, "held-out mean absolute error", ""}, {scoreBIC, "BIC", ""},
	} {
		_, y := s.curve(c.score)
		for _, v := range y {
			if !math.IsNaN(v) {
				t.Columns = append(t.Columns, figure.Column{Name: c.name, Unit: c.unit, Numbers: y})
				break
			}
		}
	}
	return figure.Section{ID: "scores", Title: "Numbers", Items: []figure.Item{{Table: &t}}}
}

func (s *selector) curve(score string) (x, y figure.Numbers) { return s.out.Curve(score) }
