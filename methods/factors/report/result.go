package report

import (
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// Assessed is the result of a study in which sites, at least one, said how well the model describes their subjects.
// Spread says how the rounds settled that estimated how sites differ; nil where nothing did.
func Assessed(set ppca.Frame, m *fitted.Model, files []method.File, sites []Site, rounds int,
	spread *figure.Section) *method.Result {
	pooled := pooledOf(sites)
	r := counted(set, m, files, pooled, sites, "subjects at "+figure.Plural(len(sites), "site"), withinSites)
	r.Metrics["rounds"] = float64(rounds)
	if m.Separate() {
		r.Headline = append(r.Headline, figure.Fact{Name: "means of the sites", Value: "differ, and are in no factor"})
		for _, v := range m.Views {
			r.Metrics["means_sd_between_sites/"+v.Name] = *v.MeanSD
		}
	}
	for _, x := range []struct {
		shown bool
		draw  func() figure.Section
	}{
		{true, Reading},
		{true, func() figure.Section { return dataSection(set, sites) }},
		{m.Adjusts(), m.AdjustedSection},
		{m.Separate(), m.SiteMeansSection},
		{true, func() figure.Section { return Variance(set, "All sites", &pooled.Explained, sites) }},
		{true, m.LoadingSection},
		{!m.Separate(), func() figure.Section { return factorSection(set, sites) }}, // else every site's mean is 0
		{spread != nil && m.HasSpread(), m.BetweenSection},
		{!untried(set, sites), func() figure.Section { return imputationSection(set, m, sites) }},
		{spread != nil, func() figure.Section { return *spread }},
	} {
		if x.shown {
			r.Sections = append(r.Sections, x.draw())
		}
	}
	return r
}

// Described is what results have in common where it is known how well the model describes some subjects, whose
// differences of one kind it explains: all but the sections after the verdicts. It leaves out what verdicts say must
// not be relied on. Who says how many subjects they are.
func Described(set ppca.Frame, m *fitted.Model, files []method.File, x *ppca.Explained, who figure.Fact, differences,
	sure string) *method.Result {
	explained := Explained(m, x)
	r := &method.Result{
		Files: files, Metrics: map[string]float64{"factors": float64(set.Factors)},
		Headline: []figure.Fact{who,
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained" + method.OfFit, Value: explained},
		},
		Found: Found(m, explained, differences), Sure: sure,
		Sections: figure.Verdicts(VerdictNotes(m.Verdicts)),
	}
	for k, v := range set.Plan.Views {
		if r2 := x.R2(k, x.Rank()); !math.IsNaN(r2) && !m.Void(v.Name) {
			r.Metrics["r2/"+v.Name] = r2
		}
	}
	return r
}

// counted is [Described] of exact sums.
func counted(set ppca.Frame, m *fitted.Model, files []method.File, all *fitted.Assessment, sites []Site, who,
	differences string) *method.Result {
	n := all.Subjects()
	r := Described(set, m, files, &all.Explained, figure.Fact{Name: who, Value: strconv.Itoa(n)}, differences,
		sure(set, m, sites))
	r.Metrics["subjects"] = float64(n)
	if !slices.ContainsFunc(m.Views, func(v fitted.ModelView) bool { return m.Void(v.Name) }) {
		r.Metrics["log_likelihood_per_subject"] = *m.LogLik
	}
	return r
}

// OfTotals is the result of a study in which the coordinator learned totals over the sites alone, by which it knows
// itself how well the model describes all subjects together; what compares sites is left out.
func OfTotals(set ppca.Frame, m *fitted.Model, files []method.File, all *fitted.Assessment,
	settled figure.Section) *method.Result {
	r := counted(set, m, files, all, nil, "subjects of all sites", "between all subjects")
	about := Reading()
	about.Items = append(about.Items, figure.Item{Note: &figure.Note{Title: "Only totals over the sites are known",
		Text: "The study has a secure sum: nobody but a site knows its own sums. How sites differ, outliers, missing " +
			"values that go with what is missing, and the order of rows are not on this page."}})
	r.Sections = append(r.Sections, about, Variance(set, "All sites", &all.Explained, nil), m.LoadingSection(), settled)
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
	r.Sections = append(append(r.Sections, about...), m.LoadingSection())
	return r
}

// AddSites puts in what the sites said of the finished model.
func AddSites(m *fitted.Model, sites []Site) {
	m.Explains(&pooledOf(sites).Explained)
	for _, site := range sites {
		out := fitted.ModelSite{Name: site.Name, Subjects: site.Subjects(), Views: []string{}}
		for k, v := range m.Views {
			if site.having(k, 1) > 0 {
				out.Views = append(out.Views, v.Name)
			}
		}
		m.Sites = append(m.Sites, out)
	}
}

// Explained gives the least and the most variance explained over the views; a
// sum or a mean over views would mean nothing. Views of which verdicts say that this must
// not be relied on are left out. Where every site has one subject,
// nothing varies within sites, and there is nothing to explain.
func Explained(m *fitted.Model, pooled *ppca.Explained) string {
	var found []float64
	var void []string
	for k, v := range m.Views {
		if m.Void(v.Name) {
			void = append(void, v.Name)
		} else {
			found = append(found, pooled.R2(k, pooled.Rank()))
		}
	}
	says := fromTo(found)
	switch {
	case len(void) == len(m.Views):
		return notMeaningful
	case says == "":
		says = "unknown: no view varies within a site"
	}
	if len(void) > 0 {
		says += ", but of " + fitted.Shortened(void) + " " + notMeaningful
	}
	return says
}
