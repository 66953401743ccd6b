package report

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Subjects shows a site's own people their subjects on the factors of a model, as the
// predictor sees them; own says that it is of subjects of this site, and not of the study.
func Subjects(ctx context.Context, set options.Setup, predictor *ppca.Predictor, own bool, scale *ppca.Scale, data dataset.Source) (*method.Result, error) {
	scores := &scores{predictor: predictor, scale: scale, rank: predictor.Rank(), data: data}
	g, err := look(ctx, set, scores)
	if err != nil {
		return nil, fmt.Errorf("scoring the site's subjects: %w", err)
	}
	if g.mean = "the study"; own {
		g.mean = "this site"
	}
	return &method.Result{
		Files:    []method.File{{Name: "scores.csv", Write: func(w io.Writer) error { return scores.write(ctx, w) }}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(g.subjects)}, {Name: "factors", Value: fmt.Sprint(scores.rank)}},
		Sections: g.sections(),
	}, nil
}

// sections draws the site's own report.
func (g *gallery) sections() []figure.Section {
	list := []figure.Section{Reading(), g.scoreSection()}
	if len(g.columns()) > 0 {
		list = append(list, g.associationSection())
	}
	return append(list, g.describedSection())
}

// drawnColumns is how many label columns get pictures of their own.
const drawnColumns = 4

// scoreSection shows the subjects on the factors, once for every label column.
func (g *gallery) scoreSection() figure.Section {
	sec := figure.Section{ID: "scores", Title: "Your subjects on the factors",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. 0 is the mean of " + g.mean + "'s subjects, and 1 the standard deviation that the factors have in the study. scores.csv beside this page has the scores on all factors, with their standard deviations given what was measured of the subject, as if the factors were known exactly."}
	columns := g.columns()
	drawings := []func(string, string, []string, []int) *figure.Figure{g.stripsFigure}
	if g.scores.rank > 1 {
		drawings = append([]func(string, string, []string, []int) *figure.Figure{g.planeFigure}, drawings...)
	}
	for _, draw := range drawings {
		if len(columns) == 0 {
			sec.Items = append(sec.Items, figure.Item{Figure: draw("", "", []string{"all subjects"}, make([]int, len(g.kept)))})
		}
		for i, c := range columns[:min(len(columns), drawnColumns)] {
			suffix := ""
			if i > 0 {
				suffix = fmt.Sprintf("-%d", i+1)
			}
			names, of := g.grouping(i)
			sec.Items = append(sec.Items, figure.Item{Figure: draw(", by "+c.Name, suffix, names, of)})
		}
	}
	if n := len(columns); n > drawnColumns {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "More columns",
			Text: fmt.Sprintf("The first %d of %d columns of the subjects table are drawn. The association of all with the factors is in the table below.", drawnColumns, n)}})
	}
	return sec
}

// planeFigure draws the subjects on two factors, in groups: by says what these are, and suffix
// tells the picture from those of other groups.
func (g *gallery) planeFigure(by, suffix string, names []string, of []int) *figure.Figure {
	chart := figure.Scatter{X: figure.Axis{Label: "score on factor 1"}, Y: figure.Axis{Label: "score on factor 2"}, Groups: make([]figure.Group, len(names))}
	for i, name := range names {
		chart.Groups[i].Name = name
	}
	for i, s := range g.kept {
		group := &chart.Groups[of[i]]
		group.X, group.Y = append(group.X, s.z[0]), append(group.Y, s.z[1])
	}
	return &figure.Figure{
		ID: "plane" + suffix, Title: "Subjects on factors 1 and 2" + by, Chart: chart, Choice: "Two factors",
		Caption: "Subjects close to each other show these two factors alike.",
		Alt:     "Scatter of this site's subjects on the first two factors" + by + ".",
	}
}

// stripsFigure draws the subjects on every factor by itself.
func (g *gallery) stripsFigure(by, suffix string, names []string, of []int) *figure.Figure {
	strips := figure.Strips{X: figure.Axis{Label: "score"}, Groups: names}
	for a := range min(g.scores.rank, fitted.DrawnFactors) {
		panel := figure.StripPanel{Name: fmt.Sprintf("Factor %d", a+1), Values: make([]figure.Numbers, len(names))}
		for i, s := range g.kept {
			panel.Values[of[i]] = append(panel.Values[of[i]], s.z[a])
		}
		strips.Panels = append(strips.Panels, panel)
	}
	return &figure.Figure{
		ID: "subjects" + suffix, Title: "Scores on each factor" + by, Chart: strips, Choice: "Each factor",
		Caption: "One mark for each subject. The box spans the middle half of a group and the thick stroke is its median; groups whose boxes lie apart differ on the factor.",
		Alt:     "Strips of the subjects' scores on each factor" + by + ".",
	}
}

// associationSection tests every factor against every label column.
func (g *gallery) associationSection() figure.Section {
	sec := figure.Section{ID: "associations", Title: "Do the factors go with what is known of the subjects?",
		Lead: "Each factor against each column of the subjects table, among this site's subjects. A small adjusted p says that so clear a connection would rarely arise by chance; the share explained says how strong it is. Neither says what causes what."}
	var notes method.Notes
	t, f, untested := g.tests.Shown(&notes)
	for _, p := range untested {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "Not tested", Text: sentence(p.Error())}})
	}
	if t.Len() == 0 {
		return sec
	}
	t.ID, t.Title = "associations", "Factors and subject columns"
	t.Columns = slices.DeleteFunc(t.Columns, func(c figure.Column) bool { // a correlation where nothing is a number
		return c.Numbers != nil && !slices.ContainsFunc(c.Numbers, func(x float64) bool { return !math.IsNaN(x) })
	})
	sec.Items = append([]figure.Item{{Figure: &f}, {Table: &t}}, sec.Items...)
	for _, n := range notes {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Text: sentence(n.Where + " " + n.What)}})
	}
	return sec
}

// columns lists the label columns.
func (g *gallery) columns() []dataset.Column { return g.scores.data.Schema().Subject }

// sentence makes one line of an error's first.
func sentence(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
