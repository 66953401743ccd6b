package fitted

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/problem"
)

// Coefficient is one line of a regression table.
type Coefficient struct {
	Class   string // whose log-odds it is of; "" where there is one activation
	Feature string // the column of the design matrix: age, sex=Male, intercept
	Against string // the reference level; "" of a number, of the intercept, or without one
	Unit    string // of a number
	// Subjects is how many have the level; NaN where nobody counted.
	Subjects float64
	// Estimate is the posterior mean of the change in the outcome's activation, by a unit of a number, or by the
	// level in place of the reference, and SE its standard deviation. Of the intercept it is the activation where
	// every category is at its reference and every number 0, those of splines and interactions at their centres.
	Estimate, SE float64
	// Base says that it is of the intercept or a period, and so no effect. P is that of Wald's test; NaN of these, and
	// under privacy. Robust and BySite are standard errors that need less to be true: see [Model.Robust]; NaN if not
	// known.
	Base              bool
	P, Robust, BySite float64
	// PriorOnly says that the data say next to nothing of it.
	PriorOnly bool
}

// priorOnly is the share of the prior's deviation above which a weight is the prior's.
const priorOnly = 0.9

// Coefficients are those of a joint model, class by class.
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
	groups := m.Encoding.Groups()
	for j, e := range m.Effects {
		g := groups[j%len(groups)]
		c := Coefficient{Class: e.Class, Feature: e.Feature, Against: references[g], Unit: units[g], Estimate: e.Mean,
			SE: e.SD, P: m.P(e.Mean, e.SD), Base: m.Base(j),
			Subjects: orNaN(e.Subjects), Robust: orNaN(e.Robust), BySite: orNaN(e.BySite)}
		if c.Base || m.Private {
			c.P = math.NaN()
		}
		c.PriorOnly = math.Sqrt(q.Variance[j]/prior[j]) > priorOnly || c.Subjects == 0
		if slices.Contains(m.hidden, c.Feature) || m.Options.Counts() { // which were of rows
			c.Subjects = math.NaN()
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
	files := []method.File{{Name: "model/model.json", Data: data}}
	if m.Covariance == nil {
		return append(files, table("posterior", m.posteriorCSV())), nil
	}
	return append(files, table("coefficients", m.coefficientsCSV()), table("correlations", m.correlationsCSV())), nil
}

// table is a file of a model.
func table(name string, records [][]string) method.File {
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(records) // memory takes all
	return method.File{Name: "model/" + name + ".csv", Data: b.Bytes()}
}

// coefficientsCSV is the regression table.
func (m *Model) coefficientsCSV() [][]string {
	head := []string{"feature", "reference", "unit", "subjects", "estimate", "standard_error", "low_95", "high_95",
		"p_value", "robust_standard_error", "robust_standard_error_by_site"}
	ratio := wordingOf(m.Options).ratio != ""
	if ratio {
		head = append(head, "ratio", "ratio_low_95", "ratio_high_95")
	}
	head = append(head, "prior_only")
	classes := len(m.Options.Classes()) > 1
	if classes {
		head = append([]string{"class"}, head...)
	}
	records := [][]string{head}
	z := m.Deviate(z95)
	for _, c := range m.Coefficients() {
		low, high := c.Estimate-z*c.SE, c.Estimate+z*c.SE
		r := []string{c.Feature, c.Against, c.Unit}
		x := []float64{c.Subjects, c.Estimate, c.SE, low, high, c.P, c.Robust, c.BySite}
		if ratio {
			x = append(x, math.Exp(c.Estimate), math.Exp(low), math.Exp(high))
		}
		for _, x := range x {
			if !glm.Finite(x) { // unknown
				r = append(r, "")
				continue
			}
			r = figure.Exact(r, x)
		}
		only := ""
		if c.PriorOnly {
			only = "yes"
		}
		if r = append(r, only); classes {
			r = append([]string{c.Class}, r...)
		}
		records = append(records, r)
	}
	return records
}

// correlationsCSV has the correlation of every two effects in the features' own units, as a square table.
func (m *Model) correlationsCSV() [][]string {
	q, n, own := m.Weights(), len(m.Effects), m.own()
	records := [][]string{{"feature"}}
	for i := range n {
		records[0] = append(records[0], m.Effects[i].Label())
		r := []string{m.Effects[i].Label()}
		for j := range n {
			c := q.Between(own[i], own[j]) / (m.Effects[i].SD * m.Effects[j].SD)
			r = figure.Exact(r, min(max(c, -1), 1))
		}
		records = append(records, r)
	}
	return records
}

// posteriorCSV is a posterior of independent weights as a table for other programs: effects in the
// features' own units with an interval of 90 %, and the weights of scaled columns.
func (m *Model) posteriorCSV() [][]string {
	z := m.Deviate(Z90)
	mean, variance := m.Posterior.Moments()
	records := [][]string{{"class", "feature", "mean", "sd", "low_90", "high_90", "weight_mean", "weight_sd"}}
	for j, e := range m.Effects {
		records = append(records, figure.Exact([]string{e.Class, e.Feature}, e.Mean, e.SD, e.Mean-z*e.SD,
			e.Mean+z*e.SD, mean[j], math.Sqrt(variance[j])))
	}
	return records
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
	word, beside, marked, z := wordingOf(m.Options).ratio, false, false, m.Deviate(z95)
	var only []string
	table.Columns = figure.TextColumns(m.Options.Outcome.Column, "feature", "against", "subjects", "estimate (95 %)",
		"standard error", "p", "robust standard error", word+" (95 %)", "known from")
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
			marked, only = true, append(only, m.Effects[j].Label())
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
		table.Add(c.Class, name, c.Against, n, interval(c.Estimate, low, high, digits), fixed(c.SE, digits), pText(c.P),
			robust, times, note)
	}
	shown := []bool{len(m.Options.Classes()) > 1, true, true, true, true, true, !m.Private, beside &&
		!m.Options.Robust(), word != "", marked}
	show(&table, shown)
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

// show leaves out of a table the columns that are not to be shown.
func show(t *figure.Table, shown []bool) {
	for i, show := range slices.Backward(shown) {
		if !show {
			t.Columns = slices.Delete(t.Columns, i, i+1)
		}
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
	if utf8.RuneCountInString(low+high) > 13 {
		space = " "
	}
	return x + " (" + low + space + "to" + space + high + ")"
}

// pText shows a p value as journals do.
func pText(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 0.0001:
		return "<0.0001"
	case p < 0.1:
		return fmt.Sprintf("%.4f", p)
	}
	return fmt.Sprintf("%.2f", p)
}
