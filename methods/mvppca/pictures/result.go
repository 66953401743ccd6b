package pictures

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/mvppca/message"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/use"
)

// Assessed is the result of a study in which sites, at least one, said how well the
// model describes their subjects. Spread says how the rounds settled that estimated how
// sites differ; nil where nothing did.
func Assessed(set options.Setup, m *use.Model, files []method.File, sites []Site, rounds int, spread *figure.Section) (*method.Result, error) {
	pooled := Pooled(sites)
	r := &method.Result{
		Files:   files,
		Metrics: metrics(set, rounds, pooled),
		Headline: []figure.Fact{
			{Name: "subjects at " + figure.Plural(len(sites), "site"), Value: strconv.Itoa(pooled.Subjects())},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained", Value: Explained(pooled)},
			{Name: "mean absolute error, in " + set.Options.Unit(), Value: strconv.FormatFloat(floats.Sum(pooled.AbsError)/floats.Sum(pooled.Cells), 'f', 3, 64)},
		},
	}
	if m.Separate() {
		r.Headline = append(r.Headline, figure.Fact{Name: "of the sites differ, and are in no factor: see below", Value: "the means"})
		for _, v := range m.Views {
			r.Metrics["means_sd_between_sites/"+v.Name] = *v.MeanSD
		}
	}
	factors, err := factorSection(set, m, sites)
	if err != nil {
		return nil, err
	}
	if share := missingCells(set, sites); share > muchMissing {
		r.Headline = append([]figure.Fact{{Name: "of single cells missing: see the warning below", Value: fmt.Sprintf("%.0f %%", 100*share)}}, r.Headline...)
		r.Sections = append(r.Sections, missingSection(share))
	}
	r.Sections = append(r.Sections, Reading(), dataSection(set, sites))
	if m.Separate() {
		r.Sections = append(r.Sections, m.SiteMeansSection())
	}
	r.Sections = append(r.Sections, Variance(set, m, pooled, sites), m.LoadingSection(), factors)
	if spread != nil && m.HasSpread() {
		r.Sections = append(r.Sections, m.BetweenSection())
	}
	if section, ok := imputationSection(set, m, sites); ok {
		r.Sections = append(r.Sections, section)
	}
	if spread != nil {
		r.Sections = append(r.Sections, *spread)
	}
	return r, nil
}

// muchMissing is the share of single cells from which on a warning comes first: with a
// tenth of them missing, one exchange loses hundredths of a nat per subject, and with three
// tenths one or two nats (tools/measure gaps).
const muchMissing = 0.1

// missingCells is the share of the cells in views that subjects have which were not
// observed.
func missingCells(set options.Setup, sites []Site) float64 {
	observed, all := 0.0, 0.0
	for _, s := range sites {
		for _, p := range s.Patterns {
			cells := float64(p.Subjects * set.Layout.Width(p.Views))
			observed, all = observed+p.Share*cells, all+cells
		}
	}
	return 1 - observed/all
}

func missingSection(share float64) figure.Section {
	return figure.Section{ID: "missing-cells", Title: "Many single values are missing", Items: []figure.Item{{Note: &figure.Note{
		Title: "This model may be behind what the rows could show", Warning: true,
		Text: fmt.Sprintf("In the views that subjects have, %.0f %% of the single values are missing. Before a site describes its subjects, it fills these values in with a small model of its own, and what it fills in is not what all sites together would expect. Where three values of ten were missing at small sites, the model was one to two nats per subject behind a fit to all rows in one place.\n\nLook at the features that are missing most often, and consider leaving them out of the plan. A view that is missing as a whole costs nothing of this kind.", 100*share),
	}}}}
}

// Unassessed is the result of a study in which no site said how well the model
// describes it: under differential privacy that would be a further release, and
// without it all sites may have left before they did.
// What rests on such answers (subjects, variance explained, errors) is left out.
func Unassessed(set options.Setup, m *use.Model, files []method.File, sites int, about ...figure.Section) *method.Result {
	r := &method.Result{
		Files:   files,
		Metrics: map[string]float64{"factors": float64(set.Options.Latent)},
		Headline: []figure.Fact{
			{Name: "sites", Value: strconv.Itoa(sites)},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
		},
		Sections: []figure.Section{Reading()},
	}
	r.Sections = append(append(r.Sections, about...), m.LoadingSection())
	return r
}

func metrics(set options.Setup, rounds int, pooled *message.Assessment) map[string]float64 {
	subjects := float64(pooled.Subjects())
	m := map[string]float64{
		"subjects": subjects, "factors": float64(set.Options.Latent), "rounds": float64(rounds),
		"log_likelihood_per_subject": pooled.LogLik / subjects,
		"mean_absolute_error":        floats.Sum(pooled.AbsError) / floats.Sum(pooled.Cells),
	}
	explained := pooled.Explained()
	for k, v := range set.Plan.Views {
		if pooled.Cells[k] > 0 { // the only site with the view may have left
			m["mean_absolute_error/"+v.Name] = pooled.AbsError[k] / pooled.Cells[k]
		}
		if r2 := explained.R2(k, explained.Rank); !math.IsNaN(r2) {
			m["r2/"+v.Name] = r2
		}
	}
	return m
}

// Explained gives the least and the most variance explained over the views; a
// sum or a mean over views would mean nothing. Where every site has one subject,
// nothing varies within sites, and there is nothing to explain.
func Explained(pooled *message.Assessment) string {
	low, high := math.Inf(1), math.Inf(-1)
	explained := pooled.Explained()
	for k := range explained.Views {
		if r2 := math.Round(100 * explained.R2(k, explained.Rank)); !math.IsNaN(r2) {
			low, high = min(low, r2), max(high, r2)
		}
	}
	switch {
	case low > high:
		return "unknown: no view varies within a site"
	case low < high:
		return fmt.Sprintf("%.0f to %.0f %%", low, high)
	}
	return fmt.Sprintf("%.0f %%", low)
}
