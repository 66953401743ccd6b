package fitted

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/predict"
)

// TermTest is a test of whether a term of the model can be left out.
type TermTest struct {
	Term      string
	Statistic float64 // χ², or where the noise of a number was estimated F
	Free      int
	P         float64
}

// LeftOut is what a fit without a site says of the site.
type LeftOut struct {
	Site          string
	Rows          int
	With, Without float64 // log-likelihood of its rows by the fit to all, and by that without it
	Moved         float64 // how far the weight that moves most moves, in standard errors
	Most          string  // its name
}

// P is the p value of Wald's test of an estimate against 0, two-sided: by Student's t distribution where intervals are.
func (m *Model) P(estimate, se float64) float64 {
	z := math.Abs(estimate) / se
	if m.Free > 0 {
		return 2 * studentOf(m.Free).Survival(z)
	}
	return math.Erfc(z / math.Sqrt2)
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

// Terms shows tests of whole terms, by ratios of likelihoods or by Wald's statistic.
func Terms(m *Model, tests []TermTest, ratios bool) *figure.Table {
	name, how := "χ²", "Wald tests of all coefficients of a term, with the standard errors of the table of coefficients."
	if ratios {
		how = "Likelihood-ratio tests of the model against the one without a term. The likelihood without it is at its own mode, by two of Newton's steps."
	}
	if m.Free > 0 {
		name = "F"
		how += fmt.Sprintf(" F has %s in its denominator.", figure.Plural(int(m.Free), "degree")+" of freedom")
	}
	if len(m.Options.Interactions) > 0 {
		how += " What has a part in an interaction cannot be left out by itself."
	}
	t := &figure.Table{ID: "terms", Title: "Tests of terms", Caption: how, Columns: figure.TextColumns("term", name, "degrees of freedom", "p")}
	for _, x := range tests {
		t.Add(x.Term, fmt.Sprintf("%.2f", x.Statistic), fmt.Sprint(x.Free), pText(x.P))
	}
	return t
}

// TermsFile is the same as a file.
func TermsFile(m *Model, tests []TermTest) (method.File, error) {
	name := "chi_squared"
	if m.Free > 0 {
		name = "f"
	}
	records := [][]string{{"term", name, "degrees_of_freedom", "p_value"}}
	for _, t := range tests {
		records = append(records, []string{t.Term, decimal(t.Statistic), fmt.Sprint(t.Free), decimal(t.P)})
	}
	data, err := writeCSV(records)
	return method.File{Name: "model/terms.csv", Data: data}, err
}

// Without shows what fits without each site say, beside the fit to all.
func Without(all []LeftOut, unit string) *figure.Table {
	t := &figure.Table{ID: "left-out", Title: "Each site left out",
		Caption: "What a fit to the other sites says of a site's outcomes, beside the fit to all: the log-likelihood at the estimates, per " + unit + ". Fits without a site are one of Newton's steps from the sums of the others, and their likelihood is that of a parabola. The last columns say which coefficient moves most without the site, in its standard errors.",
		Columns: []figure.Column{{Name: "site"}, {Name: "log-likelihood", Format: figure.General}, {Name: "without the site", Format: figure.General}, {Name: "moves most"}, {Name: "standard errors", Format: figure.General}}}
	rows, with, without := 0.0, 0.0, 0.0
	for _, x := range all {
		n := float64(x.Rows)
		rows, with, without = rows+n, with+x.With, without+x.Without
		t.Add(x.Site, x.With/n, x.Without/n, x.Most, x.Moved)
	}
	t.Add("all sites", with/rows, without/rows, "", math.NaN())
	return t
}

// Changes shows tests of proportional effects over time, of each column and of all.
func Changes(m *Model, each []predict.Change, all predict.Change) *figure.Table {
	t := &figure.Table{ID: "proportional", Title: "Do effects change over time?",
		Caption: "Score tests of each effect times the number of the period, beside the whole model, as of proportional hazards by Grambsch and Therneau. A small p says that the effect grows or falls as time goes on.",
		Columns: figure.TextColumns("feature", "χ²", "degrees of freedom", "p", "by period")}
	add := func(name string, c predict.Change) {
		by := ""
		if c.Slope != 0 {
			by = fmt.Sprintf("%+.2g", c.Slope)
		}
		t.Add(name, fmt.Sprintf("%.2f", c.ChiSquared), fmt.Sprint(c.Free), pText(c.P), by)
	}
	for j, c := range each {
		add(m.Encoding.Features()[j], c)
	}
	add("all", all)
	return t
}

// Survival shows the share of people without the event over time: of everybody by the rows of periods, and of a
// person who is average in numbers and at the reference of every category, by the model. The file has both.
func Survival(m *Model, periods *predict.Periods) (figure.Item, method.File, error) {
	cuts := m.Encoding.Periods
	base := make([]predict.Survival, len(cuts))
	m.predictor().Survival(m.Encoding.Nobody(), Z95, base)
	rows, events := periods.Count()
	table := figure.Line{Name: "everybody (life table)", X: figure.Numbers{0}, Y: figure.Numbers{1}}
	model := figure.Line{Name: "an average person (model)", X: figure.Numbers{0}, Y: figure.Numbers{1}, Low: figure.Numbers{1}, High: figure.Numbers{1}}
	records := [][]string{{"until", "at_risk", "events", "survival", "baseline_hazard", "baseline_survival", "low_95", "high_95"}}
	observed, before := 1.0, 1.0
	for k, end := range cuts {
		if rows[k] > 0 {
			observed *= 1 - events[k]/rows[k]
		}
		s := base[k]
		table.X, table.Y = append(table.X, end), append(table.Y, observed)
		model.X, model.Y = append(model.X, end), append(model.Y, s.Mean)
		model.Low, model.High = append(model.Low, s.Low), append(model.High, s.High)
		records = append(records, []string{decimal(end), decimal(rows[k]), decimal(events[k]), decimal(observed), decimal(1 - s.Mean/before), decimal(s.Mean), decimal(s.Low), decimal(s.High)})
		before = s.Mean
	}
	data, err := writeCSV(records)
	return figure.Item{Figure: &figure.Figure{ID: "survival", Title: "How long without the event?",
		Chart:   figure.Lines{X: figure.Axis{Label: m.Options.Outcome.Column}, Y: figure.Axis{Label: "share without " + m.Options.Outcome.Event + " = " + m.Options.Outcome.Levels[1]}, Series: []figure.Line{model, table}},
		Caption: "The model's curve is that of a person with the mean of every number and the reference of every category, with an interval of 95 %; that of everybody is of the people observed. model/survival.csv has the numbers.",
		Alt:     "Survival curves of an average person and of everybody."}}, method.File{Name: "model/survival.csv", Data: data}, err
}
