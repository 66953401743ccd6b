package selection

import (
	"fmt"
	"strconv"

	"parley/figure"
	"parley/method"
)

// result draws the selection.
func (s *releasedSelector) result() *method.Result {
	r := &method.Result{Metrics: s.out.Metrics(map[string]string{ruleLeftOut: "left_out", ruleSE: "one_standard_error", ruleElbow: "elbow", ruleBICOfSplit: "bic"})}
	r.Headline = []figure.Fact{s.out.Headline()}
	if len(s.left) > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "by sites left out, within one standard error", Value: strconv.Itoa(s.out.Choice(ruleSE))})
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "subjects at " + figure.Plural(len(s.releases), "site") + ", noised", Value: fmt.Sprintf("%.0f", s.subjects)})
	r.Sections = append(r.Sections, s.out.Section("Every rule below was worked out from what the sites of the study had released, with its noise. A recommendation follows the first, if nothing is warned of."))
	r.Sections = append(r.Sections, s.bicSection())
	if len(s.left) > 0 {
		r.Sections = append(r.Sections, s.leftOutSection())
	}
	r.Sections = append(r.Sections, s.explainedSection(), s.scoreSection())
	return r
}

func (s *releasedSelector) leftOutSection() figure.Section {
	return figure.Section{ID: "left-out", Title: "How well sites are predicted that were left out",
		Lead: "Without each site in turn, models were fitted to what the others released, and the noised moments of the site left out scored them. The score is linear in these moments, so noise does not shift it on average, and how far noise moves it is known from the noise that the plan asked for.",
		Items: []figure.Item{leftOutFigure(s.out, s.out.Choice(ruleSE), "sites", "Higher is better. The band is one standard error of the difference to the best, from noise and from sampling. "+
			"Beyond the factors that the sites share the line is level, and noise decides where it is highest: take the smallest number whose band reaches zero.")}}
}

func (s *releasedSelector) bicSection() figure.Section {
	x, y := s.out.Curve(scoreBIC)
	return figure.Section{ID: "bic", Title: "Fit against size, with the noise split in two",
		Lead: "Fits to noised moments describe their noise too. So fresh noise of the same law was added to the releases and subtracted from them, which gives two with independent noise: one was fitted, the other scored, and the number of parameters was charged for as ever.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "bic", Title: "Bayesian information criterion by number of factors",
			Chart:   figure.Lines{X: figure.Axis{Label: factorAxis, Count: true}, Y: figure.Axis{Label: "BIC"}, Series: []figure.Line{{Name: "BIC", X: x, Y: y}}},
			Caption: fmt.Sprintf("Lower is better: −2 log-likelihood + p ln n, with p = dq − q(q−1)/2 + 2d, for n subjects, d features and q factors. Means over %d fits; n is noised.", 2*noiseSplits),
			Alt:     fmt.Sprintf("Line of the Bayesian information criterion, lowest at %d factors.", s.out.Choice(ruleBICOfSplit))}}}}
}

func (s *releasedSelector) explainedSection() figure.Section {
	r2 := figure.Lines{X: figure.Axis{Label: factorAxis, Count: true}, Y: figure.Axis{Label: "share of the view's variance explained"}}
	for _, v := range s.set.Plan.Views {
		x, y := s.out.Curve(scoreExplained + "/" + v.Name)
		r2.Series = append(r2.Series, figure.Line{Name: v.Name, X: x, Y: y})
	}
	return figure.Section{ID: "explained", Title: "What the factors explain", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "variance-by-candidate", Title: "Variance explained by number of factors", Chart: r2,
		Caption: "Of the moments that were fitted, repaired for the noise that is known to be in them. It rises with every factor and has no best number: look for the bend.",
		Alt:     "Lines of the share of each view's variance that the factors explain."}}}}
}

func (s *releasedSelector) scoreSection() figure.Section {
	var columns []scoreColumn
	if len(s.left) > 0 {
		columns = append(columns, scoreColumn{"log-likelihood of sites left out", "nats", scoreLeftOut}, scoreColumn{"behind the best", "nats", scoreBehind},
			scoreColumn{"standard error", "nats", scoreBehindSE}, scoreColumn{"of it from noise", "nats", scoreNoiseSE}, scoreColumn{"from sampling", "nats", scoreSamplingSE})
	}
	columns = append(columns, scoreColumn{"BIC", "", scoreBIC})
	for _, v := range s.set.Plan.Views {
		columns = append(columns, scoreColumn{"R² of " + v.Name, "", scoreExplained + "/" + v.Name})
	}
	return figure.Section{ID: "scores", Title: "Numbers", Items: []figure.Item{{Table: scoreTable(s.out,
		"In parts of the features' ranges. Behind: how much less likely a subject of a site left out is on average than with the best number of factors, with the standard error of that mean and its two sources: the noise of the releases, whose law is known, and which subjects there are, as if these were normal.", columns)}}}
}
