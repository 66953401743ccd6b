package pictures

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/methods/pvi/use"
)

// Coefficients is the regression table of a joint model, with its forest plot.
func Coefficients(m *use.Model) figure.Section {
	table := figure.Table{ID: "coefficients", Title: "Coefficients", Caption: "Estimates with standard errors and intervals of 95 %. " +
		"A number is per unit; a level is against the reference, which is the most frequent one unless the plan names another."}
	var names, against, notes []string
	var subjects, estimate, se, low, high, ratio, ratioLow, ratioHigh figure.Numbers
	only := 0
	for _, c := range m.Coefficients() {
		name := c.Feature
		if c.Unit != "" {
			name += ", per " + c.Unit
		}
		note := ""
		if c.PriorOnly {
			note, only = "the prior alone", only+1
		}
		l, h := c.Estimate-use.Z95*c.SE, c.Estimate+use.Z95*c.SE
		names, against, notes = append(names, name), append(against, c.Against), append(notes, note)
		subjects, estimate, se = append(subjects, c.Subjects), append(estimate, c.Estimate), append(se, c.SE)
		low, high = append(low, l), append(high, h)
		ratio, ratioLow, ratioHigh = append(ratio, math.Exp(c.Estimate)), append(ratioLow, math.Exp(l)), append(ratioHigh, math.Exp(h))
	}
	table.Columns = []figure.Column{{Name: "feature", Text: names}, {Name: "against", Text: against}, {Name: "subjects", Format: figure.Count, Numbers: subjects},
		{Name: "estimate", Numbers: estimate, Low: low, High: high}, {Name: "standard error", Numbers: se}}
	if word := m.Ratio(); word != "" {
		table.Columns = append(table.Columns, figure.Column{Name: word, Numbers: ratio, Low: ratioLow, High: ratioHigh})
	}
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "Each feature with its effect on " + effectLabel(m.Options) + ", given all other features. An interval across zero leaves the direction open. Effects describe what goes together in these data; they do not say what causes what.\n\n" +
			"The intervals know which features go together: model/correlations.csv has the correlations of all estimates, and model/model.json their covariances."}
	if only > 0 {
		table.Columns = append(table.Columns, figure.Column{Name: "known from", Text: notes})
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Coefficients that the data say nothing of", Warning: true,
			Text: fmt.Sprintf("%s nobody or hardly anybody speaks for: their intervals are those of the prior, and are marked in the table.", figure.Plural(only, "coefficient"))}})
	}
	forest := figure.Bars{X: figure.Axis{Label: effectLabel(m.Options) + ", in standard deviations of numbers"}, Top: 40}
	mean, variance := m.Posterior.Moments()
	for j, e := range m.Effects {
		if m.Encoding.Intercept && j == len(m.Effects)-1 {
			break // its place is no effect
		}
		sd := math.Sqrt(variance[j])
		forest.Labels, forest.Values = append(forest.Labels, e.Feature), append(forest.Values, mean[j])
		forest.Low, forest.High = append(forest.Low, mean[j]-use.Z95*sd), append(forest.High, mean[j]+use.Z95*sd)
	}
	forest.Groups = groups(&m.Encoding)[:len(forest.Labels)]
	section.Items = append(section.Items, figure.Item{Table: &table},
		figure.Item{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale", Chart: forest,
			Caption: "Numbers are scaled, so that effects can be compared: the larger, the more the feature moves predictions. The forty largest are drawn; the table behind the picture has all.",
			Alt:     "Forest plot of the largest weights with intervals of 95 %."}})
	return section
}

// Settling shows how far each exchange moved the estimates.
func Settling(trace []float64) figure.Section {
	line := figure.Line{Name: "largest move"}
	for i, x := range trace {
		line.X, line.Y = append(line.X, float64(i+1)), append(line.Y, max(x, 1e-16))
	}
	return figure.Section{ID: "progress", Title: "How the study went", Items: []figure.Item{{Figure: &figure.Figure{ID: "convergence", Title: "How far each exchange moved the estimates",
		Chart:   figure.Lines{X: figure.Axis{Label: "exchange", Count: true}, Y: figure.Axis{Label: "standard deviations", Log: true}, Series: []figure.Line{line}},
		Caption: "The weight that moved most, in its own standard deviations. The fit has converged when a step is below 0.01.",
		Alt:     "Largest step by exchange, on a logarithmic scale."}}}}
}
