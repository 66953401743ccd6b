package report

import (
	"context"
	"fmt"
	"io"
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
func Subjects(ctx context.Context, predictor *ppca.Predictor, own bool, scale *ppca.Scale,
	data dataset.Source) (*method.Result, error) {
	g := &gallery{every: 1}
	z := make([]float64, predictor.Rank())
	err := fitted.EachSubject(ctx, predictor, scale, data, func(_ *dataset.Row, post *ppca.Posterior,
		values []float64) error {
		post.Latent(z, values)
		g.keep(z)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("scoring the site's subjects: %w", err)
	}
	mean := "the study"
	if own {
		mean = "this site"
	}
	return &method.Result{
		Files: []method.File{{Name: "scores.csv", Write: func(w io.Writer) error {
			return fitted.WriteScores(ctx, predictor, scale, data, w)
		}}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(g.subjects)},
			{Name: "factors", Value: fmt.Sprint(len(z))}},
		Sections: []figure.Section{Reading(), g.scoreSection(mean)},
	}, nil
}

// scoreSection shows the subjects on the first two factors, or on the only one in the order of the site's rows; mean
// says whose mean is 0.
func (g *gallery) scoreSection(mean string) figure.Section {
	x, y, title := figure.Axis{Label: "factor 1"}, figure.Axis{Label: "factor 2"}, "Scores on the first two factors"
	all := figure.Group{Name: "all subjects"}
	for i, at := range g.kept {
		if len(at) == 1 {
			at = []float64{float64(i*g.every + 1), at[0]}
			x, y, title = figure.Axis{Label: "row"}, figure.Axis{Label: "factor 1"}, "Scores in the order of the rows"
		}
		all.X, all.Y = append(all.X, at[0]), append(all.Y, at[1])
	}
	return figure.Section{ID: "scores", Title: "Your subjects on the factors",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. 0 is the mean of " +
			mean + "'s subjects, and 1 the standard deviation that the factors have in the study. scores.csv beside " +
			"this page has the scores on all factors, with their standard deviations given what was measured of the " +
			"subject, as if the factors were known exactly.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "subjects", Title: title,
			Chart: figure.Scatter{X: x, Y: y, Groups: []figure.Group{all}},
			Caption: "One mark for each subject. parley model associate says which groups of subjects differ on a " +
				"factor.",
			Alt: "Marks of the subjects' scores."}}}}
}

// gallery is what one reading of a site's subjects keeps for the picture of its own report.
type gallery struct {
	subjects int
	kept     [][]float64 // scores of those who are drawn
	every    int         // one subject in so many is kept
}

// maxPoints bounds the subjects that are drawn: of more, every second is kept,
// or every fourth, and so on.
const maxPoints = 3000

// keep keeps a subject if it is one of those that are drawn.
func (g *gallery) keep(z []float64) {
	g.subjects++
	if (g.subjects-1)%g.every != 0 {
		return
	}
	if len(g.kept) == maxPoints {
		for i := range maxPoints / 2 {
			g.kept[i] = g.kept[2*i]
		}
		g.kept, g.every = g.kept[:maxPoints/2], 2*g.every
		if (g.subjects-1)%g.every != 0 {
			return
		}
	}
	g.kept = append(g.kept, slices.Clone(z))
}

// AddOutliers opens a site's own report with the subjects, by name, whom the model does not
// describe because they are far from all others there. It adds nothing if there are none.
func AddOutliers(set ppca.Frame, r *method.Result, found []options.Outlier) {
	if len(found) == 0 {
		return
	}
	t := figure.Table{ID: "outliers", Title: "Subjects who were left out",
		Columns: []figure.Column{{Name: "subject"}, {Name: "views"}}}
	for _, o := range found {
		var views []string
		for _, k := range o.Views {
			views = append(views, set.Plan.Views[k].Name)
		}
		t.Add(o.ID, strings.Join(views, ", "))
	}
	says := subjectsAre(float64(len(found))) + " so far from all others here that the fit left these values out"
	note := &figure.Note{Title: says, Warning: true, Text: "Look for wrong units, missing decimal points, codes for " +
		"missing values and mixed-up columns. The scores of these subjects rest on their other views; of subjects " +
		"who have no other, nothing is known, and they stand at 0."}
	r.Sections = append([]figure.Section{{ID: "outliers", Title: "Before you rely on this page",
		Items: []figure.Item{{Note: note}, {Table: &t}}}}, r.Sections...)
}
