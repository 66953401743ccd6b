package fitted

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"parley/figure"
	"parley/internal/stats"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/problem"
)

// P is the p value of Wald's test of an estimate against 0, two-sided: by Student's t distribution where intervals are.
func (m *Model) P(estimate, se float64) float64 {
	z := math.Abs(estimate) / se
	if m.Free > 0 {
		return 2 * studentOf(m.Free).Survival(z)
	}
	return math.Erfc(z / math.Sqrt2)
}

// Terms tests whether terms, which have these columns, can be left out of a model: by ratios of likelihoods, twice the
// logarithm of each, or without any by Wald's statistic. The file has the same tests.
func Terms(m *Model, names []string, terms [][]int, ratios []float64) (*figure.Table, method.File) {
	statistic, column, how := "χ²", "chi_squared", "Wald tests of all coefficients of a term, with the standard "+
		"errors of the table of coefficients."
	if ratios != nil {
		how = "Likelihood-ratio tests of the model against the one without a term. The likelihood without it is at " +
			"its own mode."
	}
	if m.Free > 0 {
		statistic, column = "F", "f"
		how += fmt.Sprintf(" F has %s in its denominator.", figure.Plural(int(m.Free), "degree")+" of freedom")
	}
	if len(m.Options.Interactions) > 0 {
		how += " What has a part in an interaction cannot be left out by itself."
	}
	file := figure.Table{Columns: figure.TextColumns("term", column, "degrees_of_freedom", "p_value")}
	q := m.Weights()
	for k, name := range names {
		x, free := predict.Quadratic(q.Mean, q.Covariance, terms[k])
		if free == 0 {
			continue
		}
		if ratios != nil {
			x = ratios[k]
		}
		p := stats.ChiSquareTail(x, float64(free))
		if m.Free > 0 {
			x /= float64(free)
			p = mathext.RegIncBeta(m.Free/2, float64(free)/2, m.Free/(m.Free+float64(free)*x)) // of F
		}
		file.Add(name, x, free, p)
	}
	t := &figure.Table{ID: "terms", Title: "Tests of terms", Caption: how, Columns: slices.Clone(file.Columns)}
	t.Columns[1].Name, t.Columns[2].Name = statistic, "degrees of freedom"
	t.Columns[3].Name, t.Columns[3].Format = "p", figure.P
	return t, table("terms", file)
}

// Changes shows tests of proportional effects over time, of each column and of all.
func Changes(m *Model, each []predict.Change, all predict.Change) *figure.Table {
	t := &figure.Table{ID: "proportional", Title: "Do effects change over time?",
		Caption: "Score tests of each effect times the number of the period, beside the whole model, as of " +
			"proportional hazards by Grambsch and Therneau. A small p says that the effect grows or falls as time " +
			"goes on.",
		Columns: []figure.Column{{Name: "feature"}, {Name: "χ²"}, {Name: "degrees of freedom"},
			{Name: "p", Format: figure.P}, {Name: "by period"}}}
	names := append(m.Encoding.Features()[:len(each)], "all")
	for j, c := range append(slices.Clip(each), all) {
		t.Add(names[j], c.ChiSquared, c.Free, c.P, c.Slope)
	}
	return t
}

// Survival shows the share of people without the event over time: of everybody by the rows of periods, and of a
// person who is average in numbers and at the reference of every category, by the model. The file has both.
func Survival(m *Model, periods *predict.Periods) (figure.Item, method.File) {
	cuts := m.Encoding.Periods
	base := make([]predict.Survival, len(cuts))
	m.predictor().Survival(glm.Row{}, z95, base)
	rows, events := periods.Count()
	t := figure.Table{Columns: figure.TextColumns("until", "at_risk", "events", "survival", "baseline_hazard",
		"baseline_survival", "low_95", "high_95")}
	observed, before := 1.0, 1.0
	for k, end := range cuts {
		if rows[k] > 0 {
			observed *= 1 - events[k]/rows[k]
		}
		s := base[k]
		t.Add(end, rows[k], events[k], observed, 1-s.Mean/before, s.Mean, s.Low, s.High)
		before = s.Mean
	}
	from := func(start float64, column int) figure.Numbers {
		return append(figure.Numbers{start}, t.Columns[column].Numbers...)
	}
	life := figure.Line{Name: "everybody (life table)", X: from(0, 0), Y: from(1, 3)}
	model := figure.Line{Name: "an average person (model)", X: from(0, 0), Y: from(1, 5), Low: from(1, 6),
		High: from(1, 7)}
	return figure.Item{Figure: &figure.Figure{ID: "survival", Title: "How long without the event?",
		Chart: figure.Lines{X: figure.Axis{Label: m.Options.Outcome.Column},
			Y: figure.Axis{Label: "share without " + m.Options.Outcome.Event + " = " +
				m.Options.Outcome.Levels[1]},
			Series: []figure.Line{model, life}},
		Caption: "The model's curve is that of a person with the mean of every number and the reference of every " +
			"category, with an interval of 95 %; that of everybody is of the people observed. Who is lost " +
			"within a period counts up to it, and within the first not at all. model/survival.csv has the numbers.",
		Alt: "Survival curves of an average person and of everybody."}}, table("survival", t)
}

// contrast is what Contrast says, as JSON.
type contrast struct {
	Of       string   `json:"of"`
	Against  string   `json:"against"`
	Estimate float64  `json:"estimate"`
	SE       float64  `json:"standard_error"`
	Low      float64  `json:"low_95"`
	High     float64  `json:"high_95"`
	Ratio    *float64 `json:"ratio,omitempty"` // the exponential, where people use it
}

// Contrast implements [method.Contraster]: the effect of a column less that of another, with the standard error that
// their covariance gives. Columns of several classes are named with the class, as b: age, and one of two classes
// gives the log-odds of one against the other. A level that is the reference of its feature has the effect 0.
func (m *Model) Contrast(of, against string) (*method.Account, error) {
	a, ofFeature, err := m.column(of)
	if err != nil {
		return nil, err
	}
	b, againstFeature, err := m.column(against)
	if err != nil {
		return nil, err
	}
	if of == against || len(a.Index)+len(b.Index) == 0 { // or two references
		return nil, problem.Problem{Where: of + " against " + against, What: "this contrast is 0 by definition",
			Hint: "two columns of which one at least has a coefficient of its own: " + problem.Names(m.labels())}
	}
	q := m.Weights()
	value := func(r glm.Row) float64 { x, _ := q.Activation(r, 0); return x }
	c := contrast{Of: of, Against: against, Estimate: value(a) - value(b),
		SE: math.Sqrt(max(q.Between(a, a)+q.Between(b, b)-2*q.Between(a, b), 0))}
	z := m.Deviate(z95)
	c.Low, c.High = c.Estimate-z*c.SE, c.Estimate+z*c.SE
	out := &method.Account{Facts: []figure.Fact{{Name: "contrast", Value: of + " against " + against},
		{Name: "estimate", Value: fmt.Sprintf("%.4g (%.4g to %.4g)", c.Estimate, c.Low, c.High)},
		{Name: "standard error", Value: fmt.Sprintf("%.3g", c.SE)}}}
	word := wordingOf(m.Options).ratio
	if ofFeature == againstFeature { // of two classes
		word = "odds ratio"
	}
	if word != "" {
		if r := math.Exp(c.Estimate); glm.Finite(r) {
			c.Ratio = &r
		}
		out.Facts = append(out.Facts, figure.Fact{Name: word,
			Value: fmt.Sprintf("%s (%s to %s)", figure.General.Text(math.Exp(c.Estimate)),
				figure.General.Text(math.Exp(c.Low)), figure.General.Text(math.Exp(c.High)))})
	}
	out.Notes = m.Cautions()
	if m.Covariance == nil {
		out.Notes.Add(problem.Problem{What: "this model takes weights as independent: the standard error leaves out " +
			"how the two estimates go together", Hint: "method regression knows it, of up to 2000 weights"})
	}
	out.Value = c
	return out, nil
}

// labels names all effects.
func (m *Model) labels() (names []string) {
	for i := range m.Effects {
		names = append(names, m.Effects[i].Label())
	}
	return names
}

// column is an effect as a combination of weights, by its name, and the feature that it is of.
func (m *Model) column(name string) (r glm.Row, feature string, err error) {
	if j := slices.Index(m.labels(), name); j >= 0 {
		return m.own()[j], m.Effects[j].Feature, nil
	}
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		for _, class := range m.Options.Classes() {
			reference := outcomeEffect{Class: class, Effect: glm.Effect{Feature: c.Name + "=" + c.Reference}}
			if c.Reference != "" && name == reference.Label() {
				return glm.Row{}, reference.Feature, nil
			}
		}
	}
	return glm.Row{}, "", problem.Problem{Where: name, What: "the model has no such column", Hint: "one of " +
		problem.Names(m.labels())}
}
