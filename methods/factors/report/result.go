package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// Assessed is the result of a study in which sites, at least one, said how well the
// model describes their subjects. Spread says how the rounds settled that estimated how
// sites differ; nil where nothing did.
func Assessed(set ppca.Frame, m *fitted.Model, files []method.File, sites []Site, rounds int,
	spread *figure.Section) *method.Result {
	pooled := pooledOf(sites)
	numbers, off := metrics(set, m, rounds, pooled), notMeaningful
	if x, ok := numbers["mean_absolute_error"]; ok {
		off = strconv.FormatFloat(x, 'f', 3, 64)
	}
	r := &method.Result{
		Files:   files,
		Metrics: numbers,
		Headline: []figure.Fact{
			{Name: "subjects at " + figure.Plural(len(sites), "site"), Value: strconv.Itoa(pooled.Subjects())},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained" + method.OfFit, Value: Explained(m, &pooled.Explained)},
			{Name: "mean absolute error, in " + set.Unit() + method.OfFit, Value: off},
		},
	}
	r.Found, r.Sure = Found(m, Explained(m, &pooled.Explained), withinSites), sure(set, m, sites)
	if m.Separate() {
		r.Headline = append(r.Headline, figure.Fact{Name: "means of the sites", Value: "differ, and are in no factor"})
		for _, v := range m.Views {
			r.Metrics["means_sd_between_sites/"+v.Name] = *v.MeanSD
		}
	}
	says := VerdictNotes(m.Verdicts)
	if len(m.Views) > 1 && untried(set, sites) && !saysNobodyHasTwo(m) {
		says = append(says, figure.Note{Title: "Nobody has two views: how far to rely on the model is not known",
			Text: "A view that is hidden from the model can be predicted for subjects who have another, and for " +
				"nobody else. Nothing on this page says how well the model would predict."})
	}
	r.Sections = figure.Verdicts(says)
	r.Sections = append(r.Sections, Reading(), dataSection(set, sites))
	if m.Adjusts() {
		r.Sections = append(r.Sections, m.AdjustedSection())
	}
	if m.Separate() {
		r.Sections = append(r.Sections, m.SiteMeansSection())
	}
	if len(m.SiteNoise) > 0 {
		r.Sections = append(r.Sections, m.SiteNoiseSection())
	}
	r.Sections = append(r.Sections, Variance(set, "All sites", &pooled.Explained, sites), m.LoadingSection())
	if !m.Separate() { // else every site's mean is 0
		r.Sections = append(r.Sections, factorSection(set, sites))
	}
	if spread != nil && m.HasSpread() {
		r.Sections = append(r.Sections, m.BetweenSection())
	}
	if section, ok := imputationSection(set, m, sites); ok {
		r.Sections = append(r.Sections, section)
	}
	if spread != nil {
		r.Sections = append(r.Sections, *spread)
	}
	return r
}

// OfTotals is the result of a study in which the coordinator learned totals over the sites alone, by which it knows
// itself how well the model describes all subjects together; what compares sites is left out.
func OfTotals(set ppca.Frame, m *fitted.Model, files []method.File, all *fitted.Assessment,
	settled *figure.Section) *method.Result {
	explained := Explained(m, &all.Explained)
	r := &method.Result{
		Files:   files,
		Metrics: metrics(set, m, 0, all),
		Headline: []figure.Fact{
			{Name: "subjects of all sites", Value: strconv.Itoa(all.Subjects())},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained" + method.OfFit, Value: explained},
		},
		Found: Found(m, explained, "between all subjects"), Sure: sure(set, m, nil),
		Sections: figure.Verdicts(VerdictNotes(m.Verdicts)),
	}
	delete(r.Metrics, "rounds")
	maps.DeleteFunc(r.Metrics, func(name string, _ float64) bool {
		return strings.HasPrefix(name, "mean_absolute_error")
	})
	about := Reading()
	about.Items = append(about.Items, figure.Item{Note: &figure.Note{Title: "Only totals over the sites are known",
		Text: "The study has a secure sum: nobody but a site knows its own sums. How sites differ, outliers, missing " +
			"values that go with what is missing, and the order of rows are not on this page."}})
	r.Sections = append(r.Sections, about, Variance(set, "All sites", &all.Explained, nil), m.LoadingSection())
	if settled != nil {
		r.Sections = append(r.Sections, *settled)
	}
	return r
}

// Unassessed is the result of a study in which no site said how well the model
// describes it: under differential privacy that would be a further release, and
// without it all sites may have left before they did.
// What rests on such answers (subjects, variance explained, errors) is left out.
func Unassessed(set ppca.Frame, m *fitted.Model, files []method.File, sites int,
	about ...figure.Section) *method.Result {
	r := &method.Result{
		Files:   files,
		Metrics: map[string]float64{"factors": float64(set.Factors)},
		Headline: []figure.Fact{
			{Name: "sites", Value: strconv.Itoa(sites)},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
		},
		Sections: []figure.Section{Reading()},
		Found:    Found(m, "", withinSites),
		Sure: "No site said how well the model describes its subjects: that would have been a further release. " +
			"Nothing on this page measures how good the model is.",
	}
	r.Sections = append(append(append(r.Sections, implied(set, m)), about...), m.LoadingSection())
	return r
}

// AddSites puts in what the sites said of the finished model.
func AddSites(m *fitted.Model, sites []Site) {
	m.Explains(&pooledOf(sites).Explained)
	for _, site := range sites {
		out := fitted.ModelSite{Name: site.Name, Subjects: site.Subjects(), Views: []string{}}
		for k, v := range m.Views {
			if having(site, k) > 0 {
				out.Views = append(out.Views, v.Name)
			}
		}
		m.Sites = append(m.Sites, out)
	}
}

// metrics leaves out what verdicts say must not be relied on.
func metrics(set ppca.Frame, model *fitted.Model, rounds int, pooled *fitted.Assessment) map[string]float64 {
	subjects := float64(pooled.Subjects())
	m := map[string]float64{"subjects": subjects, "factors": float64(set.Factors), "rounds": float64(rounds)}
	if !slices.ContainsFunc(model.Views, func(v fitted.ModelView) bool { return model.Void(v.Name) }) {
		m["log_likelihood_per_subject"] = pooled.LogLik / subjects
		m["mean_absolute_error"] = floats.Sum(pooled.AbsError) / floats.Sum(pooled.Cells)
	}
	for k, v := range set.Plan.Views {
		if model.Void(v.Name) {
			continue
		}
		if pooled.Cells[k] > 0 { // the only site with the view may have left
			m["mean_absolute_error/"+v.Name] = pooled.AbsError[k] / pooled.Cells[k]
		}
		if r2 := pooled.R2(k, pooled.Rank()); !math.IsNaN(r2) {
			m["r2/"+v.Name] = r2
		}
	}
	return m
}

// Explained gives the least and the most variance explained over the views; a
// sum or a mean over views would mean nothing. Views of which verdicts say that this must
// not be relied on are left out. Where every site has one subject,
// nothing varies within sites, and there is nothing to explain.
func Explained(m *fitted.Model, pooled *ppca.Explained) string {
	found := newReach()
	var void []string
	for k, v := range m.Views {
		if m.Void(v.Name) {
			void = append(void, v.Name)
		} else {
			found.add(100 * pooled.R2(k, pooled.Rank()))
		}
	}
	says := found.String()
	switch {
	case len(void) == len(m.Views):
		return notMeaningful
	case found.empty():
		says = "unknown: no view varies within a site"
	}
	if len(void) > 0 {
		says += ", but of " + Shortened(void) + " " + notMeaningful
	}
	return says
}
