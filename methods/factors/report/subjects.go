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
func Subjects(ctx context.Context, predictor *ppca.Predictor, own bool, scale *ppca.Scale, data dataset.Source) (*method.Result, error) {
	scores := &scores{predictor: predictor, scale: scale, rank: predictor.Rank(), data: data}
	g, err := look(ctx, scores)
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
	return list
}

// drawnColumns is how many label columns get pictures of their own: the first of few values.
const drawnColumns = 4

// scoreSection shows the subjects on the factors, by label columns of few values.
func (g *gallery) scoreSection() figure.Section {
	sec := figure.Section{ID: "scores", Title: "Your subjects on the factors",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. 0 is the mean of " + g.mean + "'s subjects, and 1 the standard deviation that the factors have in the study. scores.csv beside this page has the scores on all factors, with their standard deviations given what was measured of the subject, as if the factors were known exactly."}
	drawings := []func(string, string, []string, []int) *figure.Figure{g.planeFigure, g.stripsFigure}
	if g.scores.rank == 1 {
		drawings = drawings[1:]
	}
	drawn, items := 0, make([][]figure.Item, len(drawings)) // those of a kind stand together
	for i, c := range append(g.columns(), dataset.Column{}) {
		by, suffix, names, of := ", by "+c.Name, "", []string{"all subjects"}, make([]int, len(g.kept))
		if i < len(g.columns()) {
			names, of = g.grouping(i)
		} else if by = ""; drawn > 0 {
			break
		}
		if names == nil || drawn == drawnColumns {
			continue
		}
		if drawn++; drawn > 1 {
			suffix = fmt.Sprintf("-%d", drawn)
		}
		for k, draw := range drawings {
			items[k] = append(items[k], figure.Item{Figure: draw(by, suffix, names, of)})
		}
	}
	sec.Items = slices.Concat(items...)
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

// AddOutliers opens a site's own report with the subjects, by name, whom the model does not
// describe because they are far from all others there. It adds nothing if there are none.
func AddOutliers(set options.Setup, r *method.Result, found []options.Outlier) {
	if len(found) == 0 {
		return
	}
	t := figure.Table{ID: "outliers", Title: "Subjects who were left out", Columns: []figure.Column{{Name: "subject"}, {Name: "views"}, {Name: "decimal point"}}}
	slips := 0
	for _, o := range found {
		var views []string
		for _, k := range o.Views {
			views = append(views, set.Plan.Views[k].Name)
		}
		var moved []string
		for _, s := range o.Slips {
			_, feature := set.Feature(s.Feature)
			moved = append(moved, fmt.Sprintf("%s is %g, and others are like %g", feature.Name, s.Is, s.Like))
		}
		if slips += len(moved); len(moved) == 0 {
			moved = []string{"–"}
		}
		t.Add(o.ID, strings.Join(views, ", "), strings.Join(moved, "; "))
	}
	look := "Look for wrong units, codes for missing values and mixed-up columns."
	if slips > 0 {
		look = fmt.Sprintf("%s if the decimal point is moved, which the table names. Of the rest, look for wrong units, codes for missing values and mixed-up columns.", figure.Plural(slips, "value")+" would lie with the others")
	}
	says := fmt.Sprintf("%s so far from all others here that the fit left these values out", subjectsAre(float64(len(found))))
	r.Sections = append([]figure.Section{{ID: "outliers", Title: "Before you rely on this page", Items: []figure.Item{
		{Note: &figure.Note{Title: says, Warning: true,
			Text: look + " The scores of these subjects rest on their other views; of subjects who have no other, nothing is known, and they stand at 0."}},
		{Table: &t},
	}}}, r.Sections...)
}

// AddAdjusted says in a site's own report what the features are adjusted for, and how many of
// its subjects are therefore not on the page: all has them, and adjusted has not.
func AddAdjusted(ctx context.Context, set options.Setup, r *method.Result, all, adjusted dataset.Source) error {
	with, err := count(ctx, adjusted)
	if err != nil {
		return err
	}
	subjects, err := count(ctx, all)
	if err != nil {
		return err
	}
	note := figure.Note{Title: "Factors are adjusted for " + options.AdjustedFor(set.Options.Adjust),
		Text: "Scores, and values that are expected, compare a subject with others of the same " + options.AdjustedFor(set.Options.Adjust) + ", as a linear regression has it."}
	items := []figure.Item{{Note: &note}}
	if lacking := subjects - with; lacking > 0 {
		items = append(items, figure.Item{Note: &figure.Note{Warning: true, Title: fmt.Sprintf("%d of %d subjects here took no part", lacking, subjects),
			Text: "One of the covariates that the features are adjusted for is not known of them. They are not on this page."}})
	}
	r.Sections[0].Items = append(r.Sections[0].Items, items...)
	return nil
}

func count(ctx context.Context, data dataset.Source) (n int, err error) {
	for _, err := range data.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// AddUncounted opens a site's own report with how many of its subjects count for nothing in a
// private study, for want of a set of views that the plan states. It adds nothing if all count.
func AddUncounted(r *method.Result, without, all int) {
	if without == 0 {
		return
	}
	says := fmt.Sprintf("%d of %d subjects here count for nothing", without, all)
	r.Sections = append([]figure.Section{{ID: "uncounted", Title: "Who counts", Items: []figure.Item{{Note: &figure.Note{Title: says, Warning: true,
		Text: "They have none of the sets of views that the plan states for this site (patterns), so nothing of them was in what the site released. Another plan may state theirs. This number is exact and for this site only."}}}}}, r.Sections...)
}
