package fitted

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/problem"
)

// Coefficient is one line of a regression table: the posterior mean of the change in the outcome's activation, by a
// unit of a number, or by the level in place of the reference, and its standard deviation. Of the intercept it is the
// activation where every category is at its reference and every number 0, those of splines and interactions at their
// centres.
type Coefficient struct {
	outcomeEffect
	Against   string  // the reference level; "" of a number, of the intercept, or without one
	Unit      string  // of a number
	Low, High float64 // of an interval of 95 %
	Base      bool    // whether it is of the intercept or a period, and so no effect
	P         float64 // of Wald's test; NaN of these, under privacy, and where weights are taken as independent
	PriorOnly bool    // whether the data say next to nothing of it
}

// priorOnly is the share of the prior's deviation above which a weight is the prior's.
const priorOnly = 0.9

// Coefficients are those of a model, class by class.
func (m *Model) Coefficients() (all []Coefficient) {
	q := m.Weights()
	_, prior := m.Before()
	units, references := map[string]string{}, map[string]string{}
	for _, v := range m.Views {
		for _, c := range v.Columns {
			units[c.Name] = c.Unit
		}
	}
	for i := range m.Encoding.Columns {
		references[m.Encoding.Columns[i].Name] = m.Encoding.Columns[i].Reference
	}
	groups, z := m.Encoding.Groups(), m.Deviate(z95)
	for j, e := range m.Effects {
		g := groups[j%len(groups)]
		c := Coefficient{outcomeEffect: e, Against: references[g], Unit: units[g], Low: e.Mean - z*e.SD,
			High: e.Mean + z*e.SD, P: m.P(e.Mean, e.SD), Base: m.Base(j)}
		if c.Base || m.Private || m.Covariance == nil {
			c.P = math.NaN()
		}
		c.PriorOnly = math.Sqrt(q.Variance[j]/prior[j]) > priorOnly || orNaN(c.Subjects) == 0
		if slices.Contains(m.hidden, c.Feature) || m.Options.Counts() { // which were of rows
			c.Subjects = nil
		}
		all = append(all, c)
	}
	return all
}

// Base says whether effect j is that of the intercept or a period, and so none.
func (m *Model) Base(j int) bool { return j%m.Encoding.Width() >= m.Encoding.FeatureWidth() }

// orNaN is a number, or NaN if there is none.
func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Counts puts in how many subjects have each level of each category, in the order of the encoding's columns.
func (m *Model) Counts(levels []float64) {
	j, width := 0, m.Encoding.Width()
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		for k, name := range c.Own() {
			l := slices.Index(c.Levels, name)
			for at := j + k; at < len(m.Effects) && l < len(levels); at += width { // of each class
				m.Effects[at].Subjects = &levels[l]
			}
		}
		j, levels = j+c.Width(), levels[min(len(c.Levels), len(levels)):]
	}
}

// Hide keeps the numbers of subjects with some levels out of tables. The model's file has them: predictions name levels
// that nobody had.
func (m *Model) Hide(features []string) { m.hidden = features }

// Files are those of a result: the model and its coefficients, and, of a joint posterior, the correlations of these.
func (m *Model) Files() ([]method.File, error) {
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	files := []method.File{{Name: "model/model.json", Data: data}, table("coefficients", m.coefficientsCSV())}
	if m.Covariance != nil {
		files = append(files, table("correlations", m.correlationsCSV()))
	}
	return files, nil
}

// table is a file of a model.
func table(name string, t figure.Table) method.File {
	var b bytes.Buffer
	_ = t.CSV(&b) // memory takes all
	return method.File{Name: "model/" + name + ".csv", Data: b.Bytes()}
}

// coefficientsCSV is the regression table.
func (m *Model) coefficientsCSV() figure.Table {
	t := figure.Table{Columns: figure.TextColumns("class", "feature", "reference", "unit", "subjects", "estimate",
		"standard_error", "low_95", "high_95", "p_value", "robust_standard_error", "robust_standard_error_by_site",
		"ratio", "ratio_low_95", "ratio_high_95", "prior_only")}
	for _, c := range m.Coefficients() {
		only := ""
		if c.PriorOnly {
			only = "yes"
		}
		t.Add(c.Class, c.Feature, c.Against, c.Unit, orNaN(c.Subjects), c.Mean, c.SD, c.Low, c.High, c.P,
			orNaN(c.Robust), orNaN(c.BySite), math.Exp(c.Mean), math.Exp(c.Low), math.Exp(c.High), only)
	}
	leave(&t, len(m.Options.Classes()) > 1, "class")
	leave(&t, wordingOf(m.Options).ratio != "", "ratio", "ratio_low_95", "ratio_high_95")
	return t
}

// correlationsCSV has the correlation of every two effects in the features' own units, as a square table.
func (m *Model) correlationsCSV() figure.Table {
	q, own, labels := m.Weights(), m.own(), m.labels()
	t := figure.Table{Columns: []figure.Column{{Name: "feature", Text: labels}}}
	for i, label := range labels {
		c := figure.Column{Name: label}
		for j := range labels {
			x := q.Between(own[i], own[j]) / (m.Effects[i].SD * m.Effects[j].SD)
			c.Numbers = append(c.Numbers, min(max(x, -1), 1))
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

// Coefficients is the regression table of a joint model, with its forest plot.
func Coefficients(m *Model) figure.Section {
	table := figure.Table{ID: "coefficients", Title: "Coefficients", Caption: "Estimates with standard errors and " +
		"intervals of 95 %. A number is per unit; a level is against the reference, which is the most frequent one " +
		"unless the plan names another."}
	if m.Private {
		table.Caption = "Estimates with standard errors and intervals of 95 %, which count the noise. A number is " +
			"per unit; a level is against the reference, which is the first in the plan unless the plan names another."
	}
	if m.Free > 0 {
		table.Caption += fmt.Sprintf(" Intervals are those of Student's t distribution with %s.",
			figure.Plural(int(m.Free), "degree")+" of freedom")
	}
	switch {
	case m.Options.Survey():
		table.Caption += " Standard errors are robust, as rows have weights of a sample, which count by their size " +
			"relative to each other."
	case m.Options.Cluster != "":
		table.Caption += " Standard errors are robust, by " + m.Options.Cluster +
			": rows with the same one may go together."
	}
	if !m.Private {
		table.Caption += " p is that of Wald's test against 0."
	}
	table.Caption += termsCaption(m.Options)
	word, beside, marked := wordingOf(m.Options).ratio, false, false
	var only []string
	table.Columns = []figure.Column{{Name: "class"}, {Name: "feature"}, {Name: "against"}, {Name: "subjects"},
		{Name: "estimate (95 %)", Format: figure.Own}, {Name: "standard error"}, {Name: "p", Format: figure.P},
		{Name: "robust standard error"}, {Name: word + " (95 %)", Format: figure.Own}, {Name: "known from"}}
	estimates, ratios := &table.Columns[4], &table.Columns[8]
	for j, c := range m.Coefficients() {
		name, n, note, ratio := c.Feature, "", "", math.Exp(c.Mean)
		if c.Unit != "" {
			name += ", per " + c.Unit
		}
		if c.Subjects != nil {
			n = figure.Count.Text(*c.Subjects)
		}
		if c.PriorOnly {
			note = "the prior alone"
			marked, only = true, append(only, m.Effects[j].Label())
		}
		if c.Base {
			ratio = math.NaN()
		}
		beside = beside || c.Robust != nil
		table.Add(c.Class, name, c.Against, n, c.Mean, c.SD, c.P, orNaN(c.Robust), ratio, note)
		estimates.Low, estimates.High = append(estimates.Low, c.Low), append(estimates.High, c.High)
		ratios.Low, ratios.High = append(ratios.Low, math.Exp(c.Low)), append(ratios.High, math.Exp(c.High))
	}
	leave(&table, len(m.Options.Classes()) > 1, "class")
	leave(&table, !m.Private, "p")
	leave(&table, beside && !m.Options.Robust(), "robust standard error")
	leave(&table, word != "", word+" (95 %)")
	leave(&table, marked, "known from")
	if len(m.Options.Classes()) > 1 {
		table.Columns[0].Name = m.Options.Outcome.Column
	}
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "What is estimated is the " + wordingOf(m.Options).change + ", given all other features. An interval " +
			"across zero leaves the direction open. Effects describe what goes together in these data; they do not " +
			"say what causes what.\n\nThe intervals know which features go together: model/correlations.csv has the " +
			"correlations of all estimates, model/coefficients.csv this table with each standard error that is " +
			"known, and model/model.json the covariances."}
	if (m.Converged == nil || *m.Converged) && len(only) > 0 { // else a verdict warns of all
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Known from the prior alone: " +
			problem.Names(only), Warning: true,
			Text: "For these coefficients there are hardly any data. The intervals there are those of the prior, and " +
				"the table marks them."}})
	}
	forest, caption := Strongest(m)
	section.Items = append(section.Items, figure.Item{Table: &table},
		figure.Item{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale", Chart: forest,
			Caption: caption,
			Alt:     "Forest plot of the largest weights with intervals of 95 %."}})
	return section
}

// Strongest draws effects of scaled columns: the largest, or of several classes those of a feature beside each other.
func Strongest(m *Model) (forest figure.Bars, caption string) {
	mean, variance := m.Posterior.Moments()
	groups, names, classes, z := m.Encoding.Groups(), m.Encoding.Features(), m.Options.Classes(), m.Deviate(z95)
	largest := map[int]float64{}
	var columns []int
	for j := range m.Encoding.FeatureWidth() { // the places of others are no effects
		columns = append(columns, j)
		for k := range classes {
			largest[j] = max(largest[j], math.Abs(mean[k*len(groups)+j]))
		}
	}
	own := map[string]string{} // units that one of a number's column has
	for i := range m.Encoding.Columns {
		if c := &m.Encoding.Columns[i]; len(c.Levels)+len(c.Knots) == 0 {
			own[c.Name] = ", per " + figure.General.Text(c.Scale)
		}
	}
	forest = figure.Bars{X: figure.Axis{Label: wordingOf(m.Options).change}, Top: 40}
	caption = "An effect of a number is for as many of its units as stand behind its name, so that effects can be " +
		"compared: the larger, the more the feature moves predictions. "
	if len(classes) <= 1 {
		caption += "The forty largest are drawn; the table behind the picture has all."
	} else {
		forest.Top, caption = 0, caption+"Features are in the order of their largest effect on a class."
		slices.SortStableFunc(columns, func(a, b int) int { return cmp.Compare(largest[b], largest[a]) })
	}
	for _, j := range columns {
		for k, class := range classes {
			at := k*len(groups) + j
			sd := math.Sqrt(variance[at])
			forest.Labels = append(forest.Labels, names[j]+own[names[j]])
			forest.Values = append(forest.Values, mean[at])
			forest.Low, forest.High = append(forest.Low, mean[at]-z*sd), append(forest.High, mean[at]+z*sd)
			if class == "" {
				class = groups[j] + own[groups[j]]
			}
			forest.Groups = append(forest.Groups, class)
		}
	}
	return forest, caption
}

// leave leaves some columns in a table, or not.
func leave(t *figure.Table, in bool, names ...string) {
	t.Columns = slices.DeleteFunc(t.Columns, func(c figure.Column) bool {
		return !in && slices.Contains(names, c.Name)
	})
}
