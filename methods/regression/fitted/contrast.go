package fitted

import (
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/problem"
)

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

// Contrast implements [method.Contraster]: the effect of a column less that of another, with
// the standard error that their covariance gives. Columns of several classes are named with the
// class, as b: age, and one of two classes gives the log-odds of one against the other. A level that
// is the reference of its feature has the effect 0.
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
		return nil, problem.Problem{Where: of + " against " + against, What: "this contrast is 0 by definition", Hint: "two columns of which one at least has a coefficient of its own: " + problem.Names(m.labels())}
	}
	q := m.Weights()
	value := func(r glm.Row) float64 { x, _ := q.Activation(r, 0); return x }
	c := contrast{Of: of, Against: against, Estimate: value(a) - value(b),
		SE: math.Sqrt(max(q.Between(a, a)+q.Between(b, b)-2*q.Between(a, b), 0))}
	z := m.Deviate(Z95)
	c.Low, c.High = c.Estimate-z*c.SE, c.Estimate+z*c.SE
	out := &method.Account{Facts: []figure.Fact{{Name: "contrast", Value: of + " against " + against},
		{Name: "estimate", Value: fmt.Sprintf("%.4g (%.4g to %.4g)", c.Estimate, c.Low, c.High)}, {Name: "standard error", Value: fmt.Sprintf("%.3g", c.SE)}}}
	word := m.Ratio()
	if ofFeature == againstFeature { // of two classes
		word = "odds ratio"
	}
	if word != "" {
		if r := math.Exp(c.Estimate); glm.Finite(r) {
			c.Ratio = &r
		}
		out.Facts = append(out.Facts, figure.Fact{Name: word, Value: fmt.Sprintf("%s (%s to %s)", general(math.Exp(c.Estimate)), general(math.Exp(c.Low)), general(math.Exp(c.High)))})
	}
	out.Notes = m.Cautions()
	if m.Covariance == nil {
		out.Notes.Add(problem.Problem{What: "this model takes weights as independent: the standard error leaves out how the two estimates go together", Hint: "method pvi knows it, of up to 2000 weights"})
	}
	out.Value = c
	return out, nil
}

// general shows a ratio to four digits; n/a is one that no number stands for.
func general(x float64) string {
	if !glm.Finite(x) {
		return "n/a"
	}
	return fmt.Sprintf("%.4g", x)
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
		return m.own(j), m.Effects[j].Feature, nil
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
	return glm.Row{}, "", problem.Problem{Where: name, What: "the model has no such column", Hint: "one of " + problem.Names(m.labels())}
}
