package fitted

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/methods/regression/glm"
)

// Coefficients is the regression table of a joint model, with its forest plot.
func Coefficients(m *Model) figure.Section {
	table := figure.Table{ID: "coefficients", Title: "Coefficients", Caption: "Estimates with standard errors and intervals of 95 %. " +
		"A number is per unit; a level is against the reference, which is the most frequent one unless the plan names another."}
	if m.Private {
		table.Caption = "Estimates with standard errors and intervals of 95 %, which count the noise. A number is per unit; a level is against the reference, which is the first in the plan unless the plan names another."
	}
	if m.Free > 0 {
		table.Caption += fmt.Sprintf(" Intervals are those of Student's t distribution with %s.", figure.Plural(int(m.Free), "degree")+" of freedom")
	}
	switch {
	case m.Options.Survey():
		table.Caption += " Standard errors are robust, as rows have weights of a sample, which count by their size relative to each other."
	case m.Options.Cluster != "":
		table.Caption += " Standard errors are robust, by " + m.Options.Cluster + ": rows with the same one may go together."
	}
	if !m.Private {
		table.Caption += " p is that of Wald's test against 0."
	}
	table.Caption += termsCaption(m.Options)
	word, beside, marked, bends, z := m.Ratio(), false, false, partOfSpline(m), m.Deviate(Z95)
	var only []string
	table.Columns = figure.TextColumns(m.Options.Outcome.Column, "feature", "against", "subjects", "estimate (95 %)", "standard error", "p", "robust standard error", word+" (95 %)", "known from")
	for j, c := range m.Coefficients() {
		name, n, note, robust, times := c.Feature, "", "", "", ""
		if c.Unit != "" {
			name += ", per " + c.Unit
		}
		if !math.IsNaN(c.Subjects) {
			n = figure.Count.Text(c.Subjects)
		}
		if c.PriorOnly {
			note = "the prior alone"
			if marked = true; !bends(c.Feature) {
				only = append(only, m.Effects[j].Label())
			}
		}
		digits := meaningful(c.SE)
		low, high := c.Estimate-z*c.SE, c.Estimate+z*c.SE
		if !c.Base {
			r := math.Exp(c.Estimate)
			times = interval(r, math.Exp(low), math.Exp(high), meaningful(r*c.SE))
		}
		if !math.IsNaN(c.Robust) {
			beside, robust = true, fixed(c.Robust, digits)
		}
		table.Add(c.Class, name, c.Against, n, interval(c.Estimate, low, high, digits), fixed(c.SE, digits), pText(c.P), robust, times, note)
	}
	shown := []bool{len(m.Options.Classes()) > 1, true, true, true, true, true, !m.Private, beside && !m.Options.Robust(), word != "", marked}
	for i, show := range slices.Backward(shown) {
		if !show {
			table.Columns = slices.Delete(table.Columns, i, i+1)
		}
	}
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "What is estimated is the " + EffectLabel(m.Options) + ", given all other features. An interval across zero leaves the direction open. Effects describe what goes together in these data; they do not say what causes what.\n\n" +
			"The intervals know which features go together: model/correlations.csv has the correlations of all estimates, model/coefficients.csv this table with robust standard errors, by persons and by sites, and model/model.json the covariances."}
	settled := m.Converged == nil || *m.Converged
	if !settled { // of which a verdict warns
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Not converged: do not rely on these estimates",
			Text: "The exchanges of the plan ended before the estimates had settled. What to do about it stands above."}})
	}
	if settled && len(only) > 0 {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Known from the prior alone: " + strings.Join(only, ", "), Warning: true,
			Text: "For these coefficients there are hardly any data. The intervals there are those of the prior, and the table marks them."}})
	}
	forest, caption := strongest(m)
	section.Items = append(section.Items, figure.Item{Table: &table},
		figure.Item{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale", Chart: forest,
			Caption: "Numbers are scaled, so that effects can be compared: the larger, the more the feature moves predictions. " + caption,
			Alt:     "Forest plot of the largest weights with intervals of 95 %."}})
	return section
}

// strongest draws effects of scaled columns: the largest, or of several classes those of a feature
// beside each other.
func strongest(m *Model) (forest figure.Bars, caption string) {
	mean, variance := m.Posterior.Moments()
	groups, names, classes, z := m.Encoding.Groups(), m.Encoding.Features(), m.Options.Classes(), m.Deviate(Z95)
	largest := map[int]float64{}
	var columns []int
	for j, group := range groups {
		if group == glm.InterceptGroup || group == glm.PeriodGroup {
			continue // its place is no effect
		}
		columns = append(columns, j)
		for k := range classes {
			largest[j] = max(largest[j], math.Abs(mean[k*len(groups)+j]))
		}
	}
	forest = figure.Bars{X: figure.Axis{Label: EffectLabel(m.Options) + ", in standard deviations of numbers"}, Top: 40}
	caption = "The forty largest are drawn; the table behind the picture has all."
	if len(classes) > 1 {
		forest.Top, caption = 0, "Features are in the order of their largest effect on a class."
		slices.SortStableFunc(columns, func(a, b int) int { return cmp.Compare(largest[b], largest[a]) })
	}
	for _, j := range columns {
		for k, class := range classes {
			at := k*len(groups) + j
			sd := math.Sqrt(variance[at])
			forest.Labels, forest.Values = append(forest.Labels, names[j]), append(forest.Values, mean[at])
			forest.Low, forest.High = append(forest.Low, mean[at]-z*sd), append(forest.High, mean[at]+z*sd)
			if class == "" {
				class = groups[j]
			}
			forest.Groups = append(forest.Groups, class)
		}
	}
	return forest, caption
}

// partOfSpline says whether a coefficient is of one function of a spline, which is no effect by
// itself: whether a spline as a whole is known is a verdict of its own.
func partOfSpline(m *Model) func(feature string) bool {
	functions := map[string]bool{}
	at := 0
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		for range c.Width() {
			functions[m.Effects[at].Feature] = len(c.Knots) > 0
			at++
		}
	}
	return func(feature string) bool {
		return slices.ContainsFunc(strings.Split(feature, " × "), func(part string) bool { return functions[part] })
	}
}

// meaningful is how many digits after the point two digits of a standard error have.
func meaningful(se float64) int {
	if !(se > 0) || math.IsInf(se, 0) {
		return 3
	}
	return min(max(1-int(math.Floor(math.Log10(se))), 0), 12)
}

func fixed(x float64, digits int) string {
	if math.Abs(x) >= 1e7 {
		return figure.General.Text(x)
	}
	return strings.ReplaceAll(strconv.FormatFloat(x, 'f', digits, 64), "-", "−")
}

func interval(x, low, high float64, digits int) string {
	return between(fixed(x, digits), fixed(low, digits), fixed(high, digits))
}

// between keeps an interval on one line, unless that would make its column wide.
func between(x, low, high string) string {
	space := "\u00a0"
	if len(low)+len(high) > 16 {
		space = " "
	}
	return x + " (" + low + space + "to" + space + high + ")"
}
