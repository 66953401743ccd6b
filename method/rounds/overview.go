package rounds

import (
	"math"
	"slices"

	"parley/figure"
	"parley/study"
)

// Overview is the section of a report that says who has what.
func Overview(p *study.Plan, sites []figure.SiteSubjects) figure.Section {
	o := figure.Overview{Sites: sites}
	lacking, noise := "", ""
	for _, v := range p.Views {
		o.Views = append(o.Views, figure.ViewSize{Name: v.Name, Features: len(v.Features)})
	}
	for _, s := range sites {
		if slices.ContainsFunc(s.Patterns, func(p figure.Pattern) bool { return slices.Contains(p.Present, false) }) {
			lacking = " Hatched parts lack the view. Nothing was filled in for those who lack it."
		}
		if s.Noise > 0 {
			noise = " Counts hold privacy noise: ± is two standard deviations of it, and a count that noise took below 0 stands at 0."
		}
	}
	return figure.Section{ID: "data", Title: "Who has what", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "overview", Title: "Subjects by site and view", Chart: o,
		Caption: "A bar is as long as the site has subjects. d is the number of features, n that of subjects." + lacking + noise,
		Alt:     "For every site and view, how many subjects have the view and how many lack it.",
	}}}}
}

// Complete counts a site's subjects where all of them have all views; sd is the standard
// deviation of the noise in the count, 0 if there is none.
func Complete(p *study.Plan, site string, subjects, sd float64) figure.SiteSubjects {
	present := make([]bool, len(p.Views))
	for k := range present {
		present[k] = true
	}
	return figure.SiteSubjects{Name: site, Noise: sd, Patterns: []figure.Pattern{{Present: present, Subjects: int(math.Round(max(subjects, 0)))}}}
}
