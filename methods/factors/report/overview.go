// Package report draws what a study found: [Assessed] and [Unassessed] make the result
// that everybody may see, and [Subjects] that of a site's own people, which alone shows
// single subjects. All of it is drawn from models and from what sites said of them; only
// [Subjects] reads rows.
package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// Site is what a site said of the model, with its name.
type Site struct {
	Name string
	*fitted.Assessment
}

// Pooled adds up what sites said, but for the factors.
func pooledOf(sites []Site) *fitted.Assessment {
	var all []*fitted.Assessment
	for _, site := range sites {
		all = append(all, site.Assessment)
	}
	return fitted.Together(all)
}

// Reading is a section for readers who have never met a factor.
func Reading() figure.Section {
	return figure.Section{ID: "reading", Title: "How to read this report",
		Lead: "A factor is a pattern: a set of measurements that tend to rise and fall together across subjects. The " +
			"model looks for the few patterns that describe most of what was measured, in several views (groups of " +
			"measurements) at once. Each subject has a score on each factor, which says how strongly the subject " +
			"shows the pattern: 0 is average, +1 is one standard deviation above. A loading says how strongly a " +
			"measurement takes part in the pattern. Whether high is good or bad is not in the model: look at which " +
			"measurements carry the factor. A factor is a description; it does not show that anything causes " +
			"anything.\n\nR² says how much of the differences between subjects the factors account for: 0 % is " +
			"nothing, 100 % everything; what is left is peculiar to each measurement, measurement error included. " +
			"Because views share factors, the model can predict a view that a hospital did not measure from those " +
			"that it did, with an interval that says how far to trust it. Hospitals differ, in whom they see and in " +
			"how they measure; the report shows both, each beside its uncertainty or a size to compare it with. " +
			"Every picture has a sentence on how to read it, and below it the numbers behind it."}
}

// dataSection shows which views the subjects of each site have.
func dataSection(set ppca.Frame, sites []Site) figure.Section {
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
func PatternOf(set ppca.Frame, views []int, subjects int) figure.Pattern {
	p := figure.Pattern{Present: make([]bool, set.Layout.Views()), Subjects: subjects}
	for _, k := range views {
		p.Present[k] = true
	}
	return p
}

// Variance is a section on how much the factors explain, for all sites, which a name stands for, and for each.
func Variance(set ppca.Frame, of string, pooled *ppca.Explained, sites []Site) figure.Section {
	h := figure.Heatmap{Legend: "share of the view's variance explained", Format: figure.Percent,
		TotalLabel: "All factors"}
	for a := range set.Factors {
		h.Rows = append(h.Rows, fmt.Sprintf("Factor %d", a+1))
	}
	for _, v := range set.Plan.Views {
		h.Columns = append(h.Columns, v.Name)
	}
	facets := []Site{{of, &fitted.Assessment{Explained: *pooled}}}
	if len(sites) > 1 { // one site is all sites
		facets = append(facets, sites...)
	}
	for _, at := range facets {
		facet := figure.Facet{Title: at.Name}
		for f := range at.Rank() + 1 {
			row := make(figure.Numbers, len(h.Columns))
			for k := range row {
				row[k] = at.R2(k, f)
			}
			if f == at.Rank() {
				facet.Totals = row
			} else {
				facet.Values = append(facet.Values, row)
			}
		}
		h.Facets = append(h.Facets, facet)
	}
	about := "about each site's own means: how much of the difference between subjects of one site the factors " +
		"account for"
	if set.Plan.Privacy.Secure() || set.Plan.Privacy.Differential() {
		about = "about the means of all subjects together: differences between sites count as differences between " +
			"subjects"
	}
	return figure.Section{ID: "variance", Title: "How much the factors explain",
		Lead: "R² is 1 − residual ÷ total sum of squares of a view's features, in scaled units, " + about +
			". 100 % would be a perfect description. A factor by itself can be below 0 where the other factors have " +
			"to correct it.",
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "variance-explained", Title: "Variance explained by factor and view", Chart: h,
			Caption: "The darker a cell, the more of that view's variance the factor accounts for by itself, at that " +
				"site. The last row is for all factors together: it is not the sum of the rows above, and rows are " +
				"never added up across views.",
			Alt: "Table of the share of variance explained by each factor in each view, for all sites and for " +
				"each.",
		}}}}
}

// having returns how many of the subjects have a view, and so many in all at least.
func (s Site) having(view, least int) (subjects float64) {
	for _, p := range s.Patterns {
		if len(p.Views) >= least && slices.Contains(p.Views, view) {
			subjects += float64(p.Subjects)
		}
	}
	return subjects
}

// imputationSection shows how well each view is predicted from the others
// where it is known.
func imputationSection(set ppca.Frame, m *fitted.Model, sites []Site) figure.Section {
	mean, never := "the study's mean", "the site had never measured it"
	if m.Separate() {
		mean, never = "the site's mean", "it had not been measured of these subjects, though of others of the site"
	}
	all, rows := leftOut(set, sites), sites
	if len(sites) > 1 {
		rows = append([]Site{{"All sites", &fitted.Assessment{LeftOut: all}}}, sites...)
	}
	out := make(figure.Numbers, len(m.Views))
	for k, v := range m.Views {
		if out[k] = math.NaN(); v.HeldOut != nil {
			out[k] = v.HeldOut.Gain
		}
	}
	var views, names []string
	for _, v := range set.Plan.Views {
		views = append(views, v.Name)
	}
	var gains, held []figure.Numbers
	for _, r := range rows {
		gain, coverage := make(figure.Numbers, len(views)), make(figure.Numbers, len(views))
		for k := range views {
			gain[k], coverage[k] = r.LeftOut.Gain(k), r.LeftOut.Coverage(k)
		}
		names, gains, held = append(names, r.Name), append(gains, gain), append(held, coverage)
	}
	table := func(legend string, rows []string, values []figure.Numbers) figure.Heatmap {
		return figure.Heatmap{Legend: legend, Format: figure.Percent, Columns: views, Rows: rows,
			Facets: []figure.Facet{{Values: values}}}
	}
	return figure.Section{ID: "imputation", Title: "If a view were not measured",
		Lead: "Where subjects have a view, the model was asked to predict it from their other views as if " + never +
			". That shows what filling it in is worth. The first row is of subjects who were left out of the fit, a " +
			"site or a group of sites at a time, and says what others may expect; the rows below are of the subjects " +
			"of the fit itself, and show where sites differ.",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "imputation-gain", Title: "How well each view is predicted from the others",
				Chart: table("share of the squared error taken away", append([]string{"Subjects left out"}, names...),
					append([]figure.Numbers{out}, gains...)),
				Caption: "Of the squared error made by giving everybody " + mean +
					", the share that the prediction takes away: 100 % would be perfect, 0 % no better than the " +
					"mean, below 0 worse. Hatched: nobody there has the view and another.",
				Alt: "Table of the share of squared error that predictions from the other views take away, by " +
					"site and view."}},
			{Figure: &figure.Figure{ID: "imputation-coverage", Title: "Do the intervals hold what they promise?",
				Chart: table("share of values in their intervals", names, held),
				Caption: "Intervals of 90 % should hold about nine values of ten: fewer mean that they are too " +
					"narrow, or a mean that is off, and more that they are too wide. Yes-or-no measurements and " +
					"codes have other laws.",
				Alt: "Table of the share of values that lie in the intervals of their predictions, by site and view."}},
		}}
}

// Convergence is a section on how the fit at the coordinator settled, with a warning if it did not.
func Convergence(converged bool) figure.Section {
	sec := figure.Section{ID: "convergence", Title: "How the fit settled"}
	if !converged {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "The fit did not converge", Warning: true,
			Text: "It was stopped at its largest number of iterations and would have gained more. Fewer factors, or " +
				"features that are not copies of each other, usually help."}})
	}
	return sec
}

// notMeaningful stands for a number that verdicts say must not be relied on.
const notMeaningful = "not meaningful: see below"

// SureOfNoised is how sure a model is that was fitted to noised sums.
const SureOfNoised = "The model was fitted to sums with noise, which protects single subjects. The variance " +
	"explained follows from the same sums, so that it holds noise too; the page says below what the noise may have " +
	"hidden."

// Differences that R² counts.
const (
	withinSites   = "between subjects of one site"
	AndAmongSites = "between subjects, with those between sites"
	OfOneSite     = "between subjects"
)

// Found says in words what a model found. explained is the variance explained of views, or
// empty if that is not known; differences says of what.
func Found(m *fitted.Model, explained, differences string) string {
	q := len(m.Factors)
	says := fmt.Sprintf("The model describes the subjects by %s: patterns of measurements that rise and fall together.",
		figure.Plural(q, "factor"))
	if explained != "" && !strings.Contains(explained, notMeaningful) {
		says += fmt.Sprintf(" They account for %s of the differences %s, by view"+method.OfFit+".",
			explained, differences)
	}
	if names := m.Strongest(0, 3); len(names) > 0 {
		says += fmt.Sprintf(" Factor 1 shows most in %s.", strings.Join(names, ", "))
	}
	return says
}

// leftOut adds up how sites' subjects are predicted.
func leftOut(set ppca.Frame, sites []Site) *assess.Sums {
	all := assess.NewSums(set.Layout.Views())
	for _, s := range sites {
		all.Merge(s.LeftOut)
	}
	return all
}

// untried says whether no view of any subject could be predicted from another.
func untried(set ppca.Frame, sites []Site) bool {
	return floats.Sum(leftOut(set, sites).Cells) == 0
}

// sure says in words how well the model predicts views that are hidden from it.
func sure(set ppca.Frame, m *fitted.Model, sites []Site) string {
	all := leftOut(set, sites)
	var gains, shares []float64
	for k, v := range m.Views {
		if h := v.HeldOut; h != nil && !m.Void(v.Name) {
			gains = append(gains, h.Gain)
			shares = append(shares, covered(m, all, k)) // nothing of a single view
		}
	}
	switch gain, held := fromTo(gains), fromTo(shares); {
	case gain == "" && slices.ContainsFunc(m.Views, func(v fitted.ModelView) bool { return m.Void(v.Name) }):
		return "Nothing on this page says how good the model is, for the reasons below."
	case gain == "" && (len(m.Views) == 1 || !untried(set, sites)):
		return "Nobody could be left out of the fit to see how well others are predicted: how far the model is to be " +
			"trusted is not known."
	case gain == "":
		return "Nobody has two views, so that no view could be predicted from another: how far the model is to be " +
			"trusted is not known."
	case len(m.Views) == 1:
		return fmt.Sprintf("For subjects who took no part in the fit, a prediction of every second feature from the "+
			"others takes away %s of the squared error of their means.", gain)
	default:
		if held != "" { // sites have said how their subjects lie in their intervals
			held = fmt.Sprintf(", and intervals of 90 %% hold %s of its values", held)
		}
		return fmt.Sprintf("For subjects who took no part in the fit, a prediction of a view from the others takes "+
			"away %s of the squared error of its mean%s.", gain, held)
	}
}

// fromTo says from where to where shares go, in percent; nothing of none.
func fromTo(shares []float64) string {
	shares = slices.DeleteFunc(shares, math.IsNaN)
	if len(shares) == 0 {
		return ""
	}
	text := func(x float64) string {
		return strings.ReplaceAll(fmt.Sprintf("%.0f", math.Round(100*x)+0), "-", "−")
	}
	low, high := text(slices.Min(shares)), text(slices.Max(shares))
	if low == high {
		return low + " %"
	}
	return low + " to " + high + " %"
}

// covered is how many values of view k intervals of 90 % hold of subjects who take no part in the fit: as many as of
// its own, corrected by what leaving subjects out shows.
func covered(m *fitted.Model, all *assess.Sums, k int) float64 {
	coverage := all.Coverage(k)
	if h := m.Views[k].HeldOut; h != nil {
		coverage = min(max(coverage+h.Shift, 0), 1)
	}
	return coverage
}

func factorSection(set ppca.Frame, sites []Site) figure.Section {
	q := set.Factors
	sec := figure.Section{ID: "factors", Title: "Where the sites lie",
		Lead: "A factor is a pattern of features that rise and fall together; a subject's score says how strongly it " +
			"shows the pattern. Scores have mean 0 and standard deviation 1 over the whole population, so a site " +
			"away from 0 holds other subjects, and a small ellipse more uniform ones. Single subjects never appear " +
			"here: each site's own report has them."}
	for a := 0; a+1 < max(q, 2) && a < 4; a += 2 {
		b := min(a+1, q-1)
		chart := figure.Scatter{X: figure.Axis{Label: fmt.Sprintf("score on factor %d", a+1)},
			Y: figure.Axis{Label: fmt.Sprintf("score on factor %d", b+1)}}
		for _, s := range sites {
			chart.Groups = append(chart.Groups, figure.Group{Name: s.Name,
				Mean: figure.Numbers{s.Mean[a], s.Mean[b]}, Cov: figure.Numbers{s.Cov[a*q+a], s.Cov[a*q+b],
					s.Cov[b*q+b]}})
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: fmt.Sprintf("scores-%d-%d", a+1, b+1), Title: fmt.Sprintf("Sites on factors %d and %d", a+1, b+1),
			Chart: chart,
			Caption: "The inner ellipse holds half of a site's subjects and the outer nine tenths, if their scores " +
				"are normally distributed.",
			Alt: "Ellipses of the sites' scores on two factors.", Choice: "Factors",
		}})
		if q == 1 {
			break
		}
	}
	return sec
}
