package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// imputationSection shows how well each view is predicted from the others
// where it is known. There is none where no subject has two views.
func imputationSection(set options.Setup, m *fitted.Model, sites []Site) (figure.Section, bool) {
	mean, never := "the study's mean", "the site had never measured it"
	if m.Separate() {
		mean, never = "the site's mean", "it had not been measured of these subjects, though of others of the site"
	}
	type row struct {
		name string
		sums *assess.Sums
	}
	var rows []row
	all := assess.NewSums(set.Layout.Views())
	for _, s := range sites {
		rows = append(rows, row{s.Name, s.LeftOut})
		all.Merge(s.LeftOut)
	}
	if len(rows) > 1 {
		rows = append([]row{{"All sites", all}}, rows...)
	}
	out := make(figure.Numbers, len(m.Views))
	for k, v := range m.Views {
		if out[k] = math.NaN(); v.HeldOut != nil {
			out[k] = v.HeldOut.Gain
		}
	}
	if floats.Sum(all.Cells) == 0 {
		return figure.Section{}, false
	}
	gain := figure.Heatmap{Legend: "share of the squared error taken away", Format: figure.Percent, Facets: []figure.Facet{{}}}
	calibration := figure.Histograms{X: figure.Axis{Label: "probability that the prediction gave to a smaller value"},
		Filled: "values", Outline: "if predictions are right"}
	distribution := figure.Histograms{X: figure.Axis{Label: "standard deviations of the feature from " + mean},
		Filled: "observed", Outline: "imputed from the other views"}
	for i := range assess.CalibrationBins + 1 {
		calibration.Edges = append(calibration.Edges, float64(i)/assess.CalibrationBins)
	}
	for i := range assess.DistributionBins + 1 {
		distribution.Edges = append(distribution.Edges, assess.DistributionEnd*(2*float64(i)/assess.DistributionBins-1))
	}
	for _, v := range set.Plan.Views {
		gain.Columns = append(gain.Columns, v.Name)
	}
	calibration.Columns, distribution.Columns = gain.Columns, gain.Columns
	gain.Rows, gain.Facets[0].Values = []string{"Subjects left out"}, []figure.Numbers{out}
	for _, r := range rows {
		values := make(figure.Numbers, len(gain.Columns))
		for k := range values {
			values[k] = r.sums.Gain(k)
			var cell, both figure.Histogram
			if n := r.sums.Cells[k]; n > 0 {
				cell.Filled = figure.Numbers(r.sums.Calibration.Data[k*assess.CalibrationBins:][:assess.CalibrationBins])
				cell.Outline = slices.Repeat(figure.Numbers{n / assess.CalibrationBins}, assess.CalibrationBins)
				cell.Note = fmt.Sprintf("90 %% interval: %.0f %%", 100*r.sums.Coverage(k))
				both.Filled = figure.Numbers(r.sums.Observed.Data[k*assess.DistributionBins:][:assess.DistributionBins])
				both.Outline = figure.Numbers(r.sums.Imputed.Data[k*assess.DistributionBins:][:assess.DistributionBins])
			}
			calibration.Cells, distribution.Cells = append(calibration.Cells, cell), append(distribution.Cells, both)
		}
		for _, rows := range []*[]string{&gain.Rows, &calibration.Rows, &distribution.Rows} {
			*rows = append(*rows, r.name)
		}
		gain.Facets[0].Values = append(gain.Facets[0].Values, values)
	}
	return figure.Section{ID: "imputation", Title: "If a view were not measured",
		Lead: "Where subjects have a view, the model was asked to predict it from their other views as if " + never + ". That shows what filling it in is worth. The first row is of subjects who were left out of the fit, a site or a group of sites at a time, and says what others may expect; the rows below are of the subjects of the fit itself, and show where sites differ.",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "imputation-gain", Title: "How well each view is predicted from the others", Chart: gain,
				Caption: "Of the squared error made by giving everybody " + mean + ", the share that the prediction takes away: 100 % would be perfect, 0 % no better than the mean, below 0 worse. Hatched: nobody there has the view and another.",
				Alt:     "Table of the share of squared error that predictions from the other views take away, by site and view."}},
			{Figure: &figure.Figure{ID: "imputation-calibration", Title: "Do the intervals hold what they promise?", Chart: calibration,
				Caption: "Every value has a place in its prediction: left if it is smaller than expected, right if larger. If predictions with their intervals are right, all places are equally frequent and the bars are level. Bars high at both ends mean intervals too narrow, high in the middle too wide, on one side a mean that is off. Yes-or-no measurements and codes cannot be level. The words above each say how many values the intervals of 90 % held.",
				Alt:     "Histograms of where values fall in their predictions, by site and view."}},
			{Figure: &figure.Figure{ID: "imputation-distribution", Detail: true, Title: "Imputed beside observed", Chart: distribution,
				Caption: "Filled: the values that were measured. Line: one draw from the prediction of each, its uncertainty included, as imputation would give. The two should have one shape: a line shifted or too narrow would mislead whoever analyses imputed values. What lies beyond the ends counts in the outermost bars.",
				Alt:     "Histograms of observed values with those of imputed values drawn over them, by site and view."}},
		}}, true
}

// Convergence is a section on how the fit at the coordinator settled: the log-likelihood per subject by iteration, and
// whether it converged.
func Convergence(trace []float64, converged bool) figure.Section {
	fit := figure.Line{Name: "all sites", Y: trace}
	for i := range trace {
		fit.X = append(fit.X, float64(i))
	}
	sec := figure.Section{ID: "convergence", Title: "How the fit settled", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "log-likelihood", Detail: true, Title: "Log-likelihood by iteration",
		Chart:   figure.Lines{X: figure.Axis{Label: "iteration at the coordinator", Count: true}, Y: figure.Axis{Label: "log-likelihood per subject (nats)"}, Series: []figure.Line{fit}},
		Caption: "How well one model for all sites describes what they sent of themselves. It can only rise, and the fit ends when ten more iterations would gain next to nothing.",
		Alt:     "Line of the log-likelihood per subject over the iterations of the fit.",
	}}}}
	if !converged {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "The fit did not converge", Warning: true,
			Text: "It was stopped at its largest number of iterations and would have gained more. Fewer factors, or features that are not copies of each other, usually help."}})
	}
	return sec
}
