package report

import (
	"context"
	"fmt"
	"io"
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
		Sections: []figure.Section{Reading(), g.scoreSection()},
	}, nil
}

// drawnColumns is how many label columns get pictures of their own: the first of few values.
const drawnColumns = 4

// scoreSection shows the subjects on the factors, by label columns of few values.
func (g *gallery) scoreSection() figure.Section {
	sec := figure.Section{ID: "scores", Title: "Your subjects on the factors",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. 0 is the mean of " + g.mean + "'s subjects, and 1 the standard deviation that the factors have in the study. scores.csv beside this page has the scores on all factors, with their standard deviations given what was measured of the subject, as if the factors were known exactly."}
	drawn := 0
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
		sec.Items = append(sec.Items, figure.Item{Figure: g.stripsFigure(by, suffix, names, of)})
	}
	return sec
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
		ID: "subjects" + suffix, Title: "Scores on each factor" + by, Chart: strips,
		Caption: "One mark for each subject. The box spans the middle half of a group and the thick stroke is its median; groups whose boxes lie apart differ on the factor.",
		Alt:     "Strips of the subjects' scores on each factor" + by + ".",
	}
}

// columns lists the label columns.
func (g *gallery) columns() []dataset.Column { return g.scores.data.Schema().Subject }

// AddOutliers opens a site's own report with the subjects, by name, whom the model does not
// describe because they are far from all others there. It adds nothing if there are none.
func AddOutliers(set options.Setup, r *method.Result, found []options.Outlier) {
	if len(found) == 0 {
		return
	}
	t := figure.Table{ID: "outliers", Title: "Subjects who were left out", Columns: []figure.Column{{Name: "subject"}, {Name: "views"}}}
	for _, o := range found {
		var views []string
		for _, k := range o.Views {
			views = append(views, set.Plan.Views[k].Name)
		}
		t.Add(o.ID, strings.Join(views, ", "))
	}
	says := fmt.Sprintf("%s so far from all others here that the fit left these values out", subjectsAre(float64(len(found))))
	r.Sections = append([]figure.Section{{ID: "outliers", Title: "Before you rely on this page", Items: []figure.Item{
		{Note: &figure.Note{Title: says, Warning: true,
			Text: "Look for wrong units, missing decimal points, codes for missing values and mixed-up columns. The scores of these subjects rest on their other views; of subjects who have no other, nothing is known, and they stand at 0."}},
		{Table: &t},
	}}}, r.Sections...)
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
