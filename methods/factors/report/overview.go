// Package report draws what a study found: [Assessed] and [Unassessed] make the result
// that everybody may see, and [Subjects] that of a site's own people, which alone shows
// single subjects. All of it is drawn from models and from what sites said of them; only
// [Subjects] reads rows.
package report

import (
	"math"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// Site is what a site said of the model, with its name.
type Site struct {
	Name string
	*options.Assessment
}

// Pooled adds up what sites said, but for the factors.
func pooledOf(sites []Site) *options.Assessment {
	var all []*options.Assessment
	for _, site := range sites {
		all = append(all, site.Assessment)
	}
	return options.Together(all)
}

// Reading is a section for readers who have never met a factor.
func Reading() figure.Section {
	return figure.Section{ID: "reading", Title: "How to read this report",
		Lead: "A factor is a pattern: a set of measurements that tend to rise and fall together across subjects. The model looks for the few patterns that describe most of what was measured, in several views (groups of measurements) at once. Each subject has a score on each factor, which says how strongly the subject shows the pattern: 0 is average, +1 is one standard deviation above. A loading says how strongly a measurement takes part in the pattern. Whether high is good or bad is not in the model: look at which measurements carry the factor. A factor is a description; it does not show that anything causes anything.\n\n" +
			"R² says how much of the differences between subjects the factors account for: 0 % is nothing, 100 % everything; what is left is peculiar to each measurement, measurement error included. Because views share factors, the model can predict a view that a hospital did not measure from those that it did, with an interval that says how far to trust it. Hospitals differ, in whom they see and in how they measure; the report shows both, each beside its uncertainty or a size to compare it with. Every picture has a sentence on how to read it, and below it the numbers behind it."}
}

// dataSection shows which views the subjects of each site have.
func dataSection(set options.Setup, sites []Site) figure.Section {
	var all []figure.SiteSubjects
	for _, site := range sites {
		x := figure.SiteSubjects{Name: site.Name}
		for _, p := range site.Patterns {
			x.Patterns = append(x.Patterns, PatternOf(set, p.Views, p.Subjects))
		}
		all = append(all, x)
	}
	return method.Overview(set.Plan, all)
}

// PatternOf says how many subjects have a set of views.
func PatternOf(set options.Setup, views []int, subjects int) figure.Pattern {
	p := figure.Pattern{Present: make([]bool, set.Layout.Views()), Subjects: subjects}
	for _, k := range views {
		p.Present[k] = true
	}
	return p
}

// Variance is a section on how much the factors explain, for all sites and for each.
func Variance(set options.Setup, m *fitted.Model, pooled *options.Assessment, sites []Site) figure.Section {
	h := figure.Heatmap{Legend: "share of the view's variance explained", Format: figure.Percent, Rows: fitted.FactorNames(set.Rank()), TotalLabel: "All factors"}
	for _, v := range set.Plan.Views {
		h.Columns = append(h.Columns, v.Name)
	}
	facets := []Site{{"All sites", pooled}}
	if len(sites) > 1 { // one site is all sites
		facets = append(facets, sites...)
	}
	for _, at := range facets {
		facet, explained := figure.Facet{Title: at.Name}, at.Explained()
		for f := range explained.Rank + 1 {
			row := make(figure.Numbers, len(h.Columns))
			for k := range row {
				row[k] = explained.R2(k, f)
			}
			if f == explained.Rank {
				facet.Totals = row
			} else {
				facet.Values = append(facet.Values, row)
			}
		}
		h.Facets = append(h.Facets, facet)
	}
	section := figure.Section{ID: "variance", Title: "How much the factors explain",
		Lead: "R² is 1 − residual ÷ total sum of squares of a view's features, in scaled units, about each site's own means: how much of the difference between subjects of one site the factors account for. 100 % would be a perfect description. A factor by itself can be below 0 where the other factors have to correct it.",
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "variance-explained", Title: "Variance explained by factor and view", Chart: h,
			Caption: "The darker a cell, the more of that view's variance the factor accounts for by itself, at that site. The last row is for all factors together: it is not the sum of the rows above, and rows are never added up across views.",
			Alt:     "Table of the share of variance explained by each factor in each view, for all sites and for each.",
		}}}}
	if m != nil && m.MaximumLikelihood() {
		section.Items = append(section.Items, figure.Item{Figure: explainedFigure(set, m, facets)})
	}
	section.Items = append(section.Items, figure.Item{Figure: featureFigure(set, pooled)})
	return section
}

// explainedFigure shows what all factors together explain, with intervals. The first of the
// places is all sites.
func explainedFigure(set options.Setup, m *fitted.Model, at []Site) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "R² of the view, all factors together"}}
	intervals := m.R2Interval()
	for k, v := range set.Plan.Views {
		interval := intervals(k, float64(having(at[0], k)))
		for _, s := range at {
			subjects := having(s, k)
			x := s.Explained()
			r2 := x.R2(k, x.Rank)
			if subjects < 2 || math.IsNaN(r2) {
				continue
			}
			low, high := interval(r2, float64(subjects))
			b.Labels, b.Groups = append(b.Labels, v.Name), append(b.Groups, s.Name)
			b.Values, b.Low, b.High = append(b.Values, r2), append(b.Low, low), append(b.High, high)
		}
	}
	return &figure.Figure{
		ID: "variance-intervals", Detail: true, Title: "How sure the explained variance is", Chart: b,
		Caption: "Marks are R² with all factors, with intervals of 90 % for the sampling of so many subjects if the model holds; they allow for it that a model explains more of the subjects it was fitted to than of others. They are for subjects who lack views as often as these: factors follow the views of a subject more closely where there are fewer. A site whose interval lies apart from the others' is described otherwise than the model describes the rest.",
		Alt:     "Forest plot of the variance explained in each view, for all sites and for each.",
	}
}

// having returns how many of the subjects have a view.
func having(s Site, view int) (subjects int) {
	for _, p := range s.Patterns {
		if slices.Contains(p.Views, view) {
			subjects += p.Subjects
		}
	}
	return subjects
}

// featureFigure ranks the features by the variance that all factors explain.
func featureFigure(set options.Setup, pooled *options.Assessment) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "R² of the feature, all factors together"}, Top: 10, Bottom: 10}
	explained, j := pooled.Explained(), 0
	for _, v := range set.Plan.Views {
		for _, f := range v.Features {
			b.Labels, b.Groups, b.Values = append(b.Labels, f.Name), append(b.Groups, v.Name), append(b.Values, explained.FeatureR2(j))
			j++
		}
	}
	return &figure.Figure{
		ID: "variance-by-feature", Detail: true, Title: "Features that the factors describe best and least", Chart: b,
		Caption: "R² of single features, over all sites: 1 is a perfect description. A feature at the bottom goes its own way; the factors say next to nothing about it, and imputing it is guessing its mean. Coloured by view.",
		Alt:     "Bars of the variance explained of the best and the least described features.",
	}
}
