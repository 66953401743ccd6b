package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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
	g := &gallery{data: data, rank: predictor.Rank(), every: 1}
	z := make([]float64, g.rank)
	err := fitted.EachSubject(ctx, predictor, scale, data, func(row *dataset.Row, post *ppca.Posterior,
		values []float64) error {
		post.Latent(z, values)
		g.keep(row, z)
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
			{Name: "factors", Value: fmt.Sprint(g.rank)}},
		Sections: []figure.Section{Reading(), g.scoreSection(mean)},
	}, nil
}

// drawnColumns is how many label columns get pictures of their own: the first of few values.
const drawnColumns = 4

// scoreSection shows the subjects on the factors, by label columns of few values; mean says whose mean is 0.
func (g *gallery) scoreSection(mean string) figure.Section {
	sec := figure.Section{ID: "scores", Title: "Your subjects on the factors",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. 0 is the mean of " +
			mean + "'s subjects, and 1 the standard deviation that the factors have in the study. scores.csv beside " +
			"this page has the scores on all factors, with their standard deviations given what was measured of the " +
			"subject, as if the factors were known exactly."}
	drawn, columns := 0, g.data.Schema().Subject
	for i, c := range append(slices.Clone(columns), dataset.Column{}) {
		by, suffix, names, of := ", by "+c.Name, "", []string{"all subjects"}, make([]int, len(g.kept))
		if i < len(columns) {
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
		sec.Items = append(sec.Items, figure.Item{Figure: g.scatterFigure(by, suffix, names, of)})
	}
	return sec
}

// scatterFigure draws the subjects on the first two factors; on the only one in the order of the site's rows.
func (g *gallery) scatterFigure(by, suffix string, names []string, of []int) *figure.Figure {
	x, y, title := figure.Axis{Label: "factor 1"}, figure.Axis{Label: "factor 2"}, "Scores on the first two factors"
	if g.rank == 1 {
		x, y, title = figure.Axis{Label: "row"}, x, "Scores in the order of the rows"
	}
	groups := make([]figure.Group, len(names))
	for i, s := range g.kept {
		to, at := &groups[of[i]], s.z
		if g.rank == 1 {
			at = []float64{float64(i*g.every + 1), s.z[0]}
		}
		to.Name, to.X, to.Y = names[of[i]], append(to.X, at[0]), append(to.Y, at[1])
	}
	return &figure.Figure{
		ID: "subjects" + suffix, Title: title + by, Chart: figure.Scatter{X: x, Y: y, Groups: groups},
		Caption: "One mark for each subject. Groups that lie apart differ on a factor; scores.csv has the others.",
		Alt:     "Marks of the subjects' scores" + by + ".",
	}
}

// gallery is what one reading of a site's subjects keeps for the pictures of
// its own report.
type gallery struct {
	data     dataset.Source
	rank     int
	subjects int
	kept     []keptSubject
	every    int // one subject in so many is kept
}

// keptSubject is a subject that is drawn.
type keptSubject struct {
	labels []string
	z      []float64
}

// maxPoints bounds the subjects that are drawn: of more, every second is kept,
// or every fourth, and so on.
const maxPoints = 3000

// keep keeps a subject if it is one of those that are drawn.
func (g *gallery) keep(row *dataset.Row, z []float64) {
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
	g.kept = append(g.kept, keptSubject{slices.Clone(row.Subject), slices.Clone(z)})
}

// mostGroups is how many groups a picture can tell apart.
const mostGroups = 8

// grouping parts the kept subjects by the values of a label column; nothing if there are more than a picture can tell
// apart, as of numbers.
func (g *gallery) grouping(column int) (names []string, of []int) {
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return math.Inf(1)
		}
		return x
	}
	label := func(s keptSubject) string {
		if dataset.IsMissing(s.labels[column]) {
			return "unknown"
		}
		return s.labels[column]
	}
	for _, s := range g.kept {
		if name := label(s); !slices.Contains(names, name) {
			if names = append(names, name); len(names) > mostGroups {
				return nil, nil
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
	})
	for _, s := range g.kept {
		of = append(of, slices.Index(names, label(s)))
	}
	return names, of
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
