package dppvi

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/methods/regression/fitted"
)

// effects shows the posterior in the features' own units.
func effects(m *fitted.Model) figure.Section {
	forest := figure.Bars{X: figure.Axis{Label: fitted.EffectLabel(m.Options)}}
	weights := figure.Bars{X: figure.Axis{Label: "change for one scaled unit, or for a level"}, Top: 40}
	z := fitted.Z90
	mean, variance := m.Posterior.Moments()
	group := m.Encoding.Groups()
	for j, e := range m.Effects {
		forest.Labels = append(forest.Labels, e.Label())
		forest.Values = append(forest.Values, e.Mean)
		forest.Low, forest.High = append(forest.Low, e.Mean-z*e.SD), append(forest.High, e.Mean+z*e.SD)
		forest.Groups = append(forest.Groups, group[j%len(group)])
		sd := math.Sqrt(variance[j])
		weights.Labels = append(weights.Labels, e.Label())
		weights.Values = append(weights.Values, mean[j])
		weights.Low, weights.High = append(weights.Low, mean[j]-z*sd), append(weights.High, mean[j]+z*sd)
	}
	weights.Groups = forest.Groups
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "Each feature with the posterior mean of its effect and the interval that holds it with a probability of 90 %, given the other features. An interval across zero leaves the direction open. Effects describe what goes together in these data; they do not say what causes what. The approximation takes weights as independent, so that intervals of features that go together are too narrow.",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale", Chart: weights,
				Caption: "Numbers are scaled, so that effects can be compared: the larger, the more the feature moves predictions. The forty largest are drawn; the table behind the picture has all.",
				Alt:     "Forest plot of the largest weights with intervals of 90 %."}},
			{Figure: &figure.Figure{ID: "effects", Title: "Every effect, in the features' own units", Chart: forest,
				Caption: "For a number, the change for one unit more of it; for a category, what the level adds.",
				Alt:     "Forest plot of all effects with intervals of 90 %."}},
		}}
	if m.Private {
		section.Items = append([]figure.Item{{Note: &figure.Note{Title: "Trust the predictions, not single weights", Warning: true,
			Text: "The updates that the budget pays for end before features that say nearly the same, such as being married and being a husband, have settled what each of them adds. Predictions barely depend on that. Single weights do, and may be several of their standard deviations from where they would have ended, whatever the intervals say."}}}, section.Items...)
	}
	return section
}

// siteFactors shows what each site contributed.
func siteFactors(m *fitted.Model) figure.Section {
	bars := figure.Bars{X: figure.Axis{Label: "information of the factor, in units of the prior's"}}
	var updates figure.Numbers
	var left []string
	for _, s := range m.Sites {
		bars.Labels, bars.Values = append(bars.Labels, s.Name), append(bars.Values, s.Information)
		updates = append(updates, float64(s.Updates))
		stayed := "to the end"
		if s.Left {
			stayed = "left; its factor stays"
		}
		left = append(left, stayed)
	}
	return figure.Section{ID: "sites", Title: "What each site contributed",
		Lead: "The posterior is the prior times one factor of each site. A factor's information is the precision that it adds, summed over weights: a site with more subjects, or with more telling ones, adds more.",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "information", Title: "Information by site", Chart: bars, Caption: "How much of what is known of the weights came from each site.", Alt: "Bars of each factor's information."}},
			{Table: &figure.Table{ID: "contributions", Title: "Updates by site", Columns: []figure.Column{{Name: "site", Text: bars.Labels},
				{Name: "updates", Format: figure.Count, Numbers: updates}, {Name: "information", Numbers: bars.Values}, {Name: "took part", Text: left}}}},
		}}
}

// progress shows how much was learned by communication: the divergence that updates made,
// by their number, and how many weights a factor was projected in.
func progress(m *fitted.Model, updates, divergence figure.Numbers, projected int) figure.Section {
	kl := figure.Line{Name: "all sites", X: updates, Y: divergence}
	items := []figure.Item{{Figure: &figure.Figure{ID: "communication", Title: "What each communication changed", Chart: figure.Lines{
		X: figure.Axis{Label: "updates sent by sites", Count: true}, Y: figure.Axis{Label: "divergence of q from the one before (nats)", Log: true}, Series: []figure.Line{kl}},
		Caption: fmt.Sprintf("Each update sends %d numbers to a site and half as many back. The further the curve falls, the less another update would have changed.", 4*len(m.Effects)),
		Alt:     "Kullback-Leibler divergence of the posterior from the one before, by number of updates."}}}
	if projected > 0 {
		items = append(items, figure.Item{Note: &figure.Note{Title: "Precisions that would have become negative",
			Text: fmt.Sprintf("%d times an update would have made a factor take precision away from a weight; there the factor was set to 1.", projected)}})
	}
	return figure.Section{ID: "progress", Title: "How the study went", Items: items}
}
