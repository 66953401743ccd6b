package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/factors/fitted"
)

const (
	behindSubjects = 120 // up to so many subjects have a column each
	behindColumns  = 80  // of more, so many columns have the means of neighbours
	behindReach    = 2.5 // standard deviations that have the darkest colour
)

// heatmapSection shows the data that each factor sums up.
func (g *gallery) heatmapSection() (figure.Section, bool) {
	sec := figure.Section{ID: "behind", Title: "The data behind each factor",
		Lead: "The measurements that show a factor most, with your subjects sorted by their score on it. If the factor is in the data, colours change from one side to the other in every row. A row that does not change is a measurement that does not take part here."}
	for a := range min(g.scores.rank, fitted.DrawnFactors) {
		if f := g.behindFigure(a); f != nil {
			sec.Items = append(sec.Items, figure.Item{Figure: f})
		}
	}
	return sec, len(sec.Items) > 0
}

// behindFigure draws the strongest features of factor a that were measured here.
func (g *gallery) behindFigure(a int) *figure.Figure {
	var shown []int // places in g.drawn
	for at, j := range g.drawn {
		if g.loading(a, j) != 0 && slices.ContainsFunc(g.kept, func(s keptSubject) bool { return !math.IsNaN(s.values[at]) }) {
			shown = append(shown, at)
		}
	}
	strength := func(at int) float64 { return g.loading(a, g.drawn[at]) }
	slices.SortStableFunc(shown, func(i, j int) int { return cmp.Compare(math.Abs(strength(j)), math.Abs(strength(i))) })
	shown = shown[:min(len(shown), behindFeatures)]
	if len(shown) == 0 || len(g.kept) < 2 {
		return nil
	}
	slices.SortStableFunc(shown, func(i, j int) int { return cmp.Compare(strength(j), strength(i)) })
	order := slices.Clone(g.kept)
	slices.SortStableFunc(order, func(s, t keptSubject) int { return cmp.Compare(s.z[a], t.z[a]) })
	columns, each := len(order), "Each column is one subject."
	if columns > behindSubjects {
		columns = behindColumns
		each = fmt.Sprintf("Each column is the mean of %d or %d subjects who are neighbours on the factor.", len(order)/columns, (len(order)+columns-1)/columns)
	}
	h := figure.Heatmap{Legend: "standard deviations from the mean of " + g.mean, Diverging: true, Reach: behindReach, Subjects: true, Rows: []string{"score"}}
	row := func(value func(keptSubject) float64) (values figure.Numbers) {
		for c := range columns {
			values = append(values, meanOf(order[c*len(order)/columns:(c+1)*len(order)/columns], value))
		}
		return values
	}
	facet := figure.Facet{Title: "subjects, sorted by their score", Values: []figure.Numbers{row(func(s keptSubject) float64 { return s.z[a] })}}
	view := g.set.Layout.ViewOf()
	for _, at := range shown {
		j := g.drawn[at]
		lo, _ := g.set.Layout.View(view[j])
		h.Rows = append(h.Rows, g.set.Plan.Views[view[j]].Features[j-lo].Name)
		facet.Values = append(facet.Values, row(func(s keptSubject) float64 { return s.values[at] }))
	}
	for c := range columns {
		name := order[c*len(order)/columns].id
		if last := order[(c+1)*len(order)/columns-1].id; last != name {
			name += " to " + last
		}
		h.Columns = append(h.Columns, name)
	}
	h.Facets = []figure.Facet{facet}
	return &figure.Figure{ID: fmt.Sprintf("behind-%d", a+1), Title: fmt.Sprintf("Factor %d: the data behind it", a+1), Chart: h, Choice: "Data behind a factor",
		Caption: each + " The first row is the score. Below it stand measurements that rise with the factor, the strongest first, and then those that fall. Blue is above the mean, brown below it, and a thin line was not measured.",
		Alt:     fmt.Sprintf("Heatmap of the strongest features of factor %d over this site's subjects, sorted by their score.", a+1)}
}

// meanOf is the mean of what is known of some subjects; NaN if nothing is.
func meanOf(subjects []keptSubject, value func(keptSubject) float64) float64 {
	sum, n := 0.0, 0.0
	for _, s := range subjects {
		if x := value(s); !math.IsNaN(x) {
			sum, n = sum+x, n+1
		}
	}
	return sum / n
}
