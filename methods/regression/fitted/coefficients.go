package fitted

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"

	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Coefficient is one line of a regression table.
type Coefficient struct {
	Class   string // whose log-odds it is of; "" where there is one activation
	Feature string // the column of the design matrix: age, sex=Male, intercept
	Against string // the reference level; "" of a number, of the intercept, or without one
	Unit    string // of a number
	// Subjects is how many have the level; NaN where nobody counted.
	Subjects float64
	// Estimate is the posterior mean of the change in the outcome's activation, by a unit of a
	// number, or by the level in place of the reference, and SE its standard deviation. Of
	// the intercept it is the activation where every category is at its reference and every number
	// 0, those of splines and interactions at their centres.
	Estimate, SE float64
	// Base says that it is of the intercept or a period, and so no effect. P is that of Wald's test; NaN of these, and under
	// privacy. Robust and BySite are standard errors that need less to be
	// true: see [Model.Robust]; NaN if not known.
	Base              bool
	P, Robust, BySite float64
	// PriorOnly says that the data say next to nothing of it.
	PriorOnly bool
}

// priorOnly is the share of the prior's deviation above which a weight is the prior's.
const priorOnly = 0.9

// Coefficients are those of a joint model, class by class.
func (m *Model) Coefficients() []Coefficient {
	_, variance := m.Posterior.Moments()
	_, prior := m.Before()
	groups := m.Encoding.Groups()
	var out []Coefficient
	add := func(unit, against string) {
		j := len(out)
		e := m.Effects[j]
		c := Coefficient{Class: e.Class, Feature: e.Feature, Against: against, Unit: unit, Estimate: e.Mean, SE: e.SD, P: m.P(e.Mean, e.SD),
			Subjects: orNaN(e.Subjects), Robust: orNaN(e.Robust), BySite: orNaN(e.BySite)}
		g := groups[j%len(groups)]
		if c.Base = g == glm.InterceptGroup || g == glm.PeriodGroup; c.Base || m.Private {
			c.P = math.NaN()
		}
		c.PriorOnly = math.Sqrt(variance[j]/prior[j]) > priorOnly || c.Subjects == 0
		out = append(out, c)
	}
	units := map[string]string{}
	for _, v := range m.Views {
		for _, c := range v.Columns {
			units[c.Name] = c.Unit
		}
	}
	for len(out) < len(m.Effects) {
		end := len(out) + m.Encoding.Width()
		for i := range m.Encoding.Columns {
			c := &m.Encoding.Columns[i]
			for range c.Width() {
				add(units[c.Name], c.Reference)
			}
		}
		for len(out) < end { // interactions, periods and the intercept
			add("", "")
		}
	}
	return out
}

// orNaN is a number, or NaN if there is none.
func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Ratio names what the exponential of an effect is; "" where it is nothing that people use.
func (m *Model) Ratio() string {
	switch m.Options.Likelihood {
	case options.LikelihoodLogistic, options.LikelihoodHazard:
		if m.Options.Link == options.LinkCloglog {
			return "hazard ratio"
		}
		return "odds ratio"
	case options.LikelihoodPoisson:
		return "rate ratio"
	}
	return ""
}

// Counts puts in how many subjects have each level of each category, in the order of the
// encoding's columns.
func (m *Model) Counts(levels []float64) {
	j := 0
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		if len(c.Levels) == 0 {
			j += c.Width()
			continue
		}
		for l, name := range c.Levels {
			if name != c.Reference {
				for k := j; k < len(m.Effects) && l < len(levels); k += m.Encoding.Width() { // of each class
					m.Effects[k].Subjects = &levels[l]
				}
				j++
			}
		}
		levels = levels[min(len(c.Levels), len(levels)):]
	}
}

// Files are those of a result: the model and its coefficients, and, of a joint posterior, the
// correlations of these.
func (m *Model) Files() ([]method.File, error) {
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	files := []method.File{{Name: "model/model.json", Data: data}}
	tables := []struct {
		name string
		make func() ([]byte, error)
	}{{"coefficients", m.coefficientsCSV}, {"correlations", m.correlationsCSV}}
	if m.Covariance == nil {
		tables[0].name, tables[0].make = "posterior", m.posteriorCSV
		tables = tables[:1]
	}
	for _, f := range tables {
		data, err := f.make()
		if err != nil {
			return nil, err
		}
		files = append(files, method.File{Name: "model/" + f.name + ".csv", Data: data})
	}
	return files, nil
}

// coefficientsCSV is the regression table.
func (m *Model) coefficientsCSV() ([]byte, error) {
	head := []string{"feature", "reference", "unit", "subjects", "estimate", "standard_error", "low_95", "high_95", "p_value", "robust_standard_error", "robust_standard_error_by_site"}
	ratio := m.Ratio() != ""
	if ratio {
		head = append(head, "ratio", "ratio_low_95", "ratio_high_95")
	}
	head = append(head, "prior_only")
	classes := len(m.Options.Classes()) > 1
	if classes {
		head = append([]string{"class"}, head...)
	}
	records := [][]string{head}
	z := m.Deviate(Z95)
	for _, c := range m.Coefficients() {
		low, high := c.Estimate-z*c.SE, c.Estimate+z*c.SE
		r := []string{c.Feature, c.Against, c.Unit}
		for _, x := range []float64{c.Subjects, c.Estimate, c.SE, low, high, c.P, c.Robust, c.BySite} {
			r = append(r, decimalIf(x))
		}
		if ratio {
			for _, x := range []float64{c.Estimate, low, high} {
				r = append(r, decimalIf(math.Exp(x)))
			}
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
	return writeCSV(records)
}

// decimalIf is a number, or nothing if it is not finite.
func decimalIf(x float64) string {
	if !glm.Finite(x) {
		return ""
	}
	return decimal(x)
}

// correlationsCSV has the correlation of every two effects in the features' own units, as
// a square table.
func (m *Model) correlationsCSV() ([]byte, error) {
	q, n := m.Weights(), len(m.Effects)
	records := [][]string{{"feature"}}
	for i := range n {
		records[0] = append(records[0], m.Effects[i].Label())
		r := []string{m.Effects[i].Label()}
		for j := range n {
			c := q.Between(m.own(i), m.own(j)) / (m.Effects[i].SD * m.Effects[j].SD)
			r = append(r, decimal(min(max(c, -1), 1)))
		}
		records = append(records, r)
	}
	return writeCSV(slices.Clip(records))
}

// posteriorCSV is a posterior of independent weights as a table for other programs: effects in the
// features' own units with an interval of 90 %, and the weights of scaled columns.
func (m *Model) posteriorCSV() ([]byte, error) {
	z := m.Deviate(Z90)
	mean, variance := m.Posterior.Moments()
	records := [][]string{{"class", "feature", "mean", "sd", "low_90", "high_90", "weight_mean", "weight_sd"}}
	for j, e := range m.Effects {
		records = append(records, []string{e.Class, e.Feature, decimal(e.Mean), decimal(e.SD),
			decimal(e.Mean - z*e.SD), decimal(e.Mean + z*e.SD), decimal(mean[j]), decimal(math.Sqrt(variance[j]))})
	}
	return writeCSV(records)
}

func writeCSV(records [][]string) ([]byte, error) {
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(records)
	return b.Bytes(), err
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
