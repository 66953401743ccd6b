package report

import (
	"cmp"
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
	sections, err := g.sections(ctx)
	if err != nil {
		return nil, fmt.Errorf("drawing the site's subjects: %w", err)
	}
	return &method.Result{
		Files:    []method.File{{Name: "scores.csv", Write: func(w io.Writer) error { return scores.write(ctx, w) }}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(g.subjects)}, {Name: "factors", Value: fmt.Sprint(scores.rank)}},
		Sections: sections,
	}, nil
}

// sections draws the site's own report.
func (g *gallery) sections(ctx context.Context) ([]figure.Section, error) {
	imputed, err := g.imputedSection(ctx)
	if err != nil {
		return nil, err
	}
	list := []figure.Section{Reading(), g.scoreSection()}
	if len(g.columns()) > 0 {
		list = append(list, g.associationSection())
	}
	if section, ok := g.heatmapSection(); ok {
		list = append(list, section)
	}
	list = append(list, g.describedSection())
	if section, ok := g.viewSection(); ok {
		list = append(list, section)
	}
	if len(imputed.Items) > 0 {
		list = append(list, imputed)
	}
	return list, nil
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
	if g.scores.rank > 2 {
		drawings = append(drawings, g.pairsFigure)
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

// pairsFigure draws the subjects on all pairs of the first factors.
func (g *gallery) pairsFigure(by, suffix string, names []string, of []int) *figure.Figure {
	chart := figure.Pairs{Of: of}
	for _, name := range names {
		chart.Groups = append(chart.Groups, figure.Cloud{Name: name})
	}
	for a := range min(g.scores.rank, fitted.DrawnFactors) {
		var scores figure.Numbers
		for _, s := range g.kept {
			scores = append(scores, s.z[a])
		}
		chart.Features, chart.Values = append(chart.Features, fmt.Sprintf("factor %d", a+1)), append(chart.Values, scores)
	}
	return &figure.Figure{
		ID: "pairs" + suffix, Title: "Pairs of factors" + by, Chart: chart, Choice: "All pairs of factors", Detail: true,
		Caption: "Below the diagonal, subjects on every two of the first factors. On the diagonal, how the subjects of each group are spread over one factor; all groups are drawn equally large. Two groups that lie apart in some pair differ in these two factors together.",
		Alt:     "Matrix of scatter plots of this site's subjects on all pairs of factors" + by + ".",
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

// byView shows a number of every subject in each view, where there is one.
func (g *gallery) byView(label, title string, of func(s *keptSubject, view int) float64) figure.Strips {
	strips := figure.Strips{X: figure.Axis{Label: label}}
	panel := figure.StripPanel{Name: title}
	for k, v := range g.set.Plan.Views {
		var values figure.Numbers
		for i := range g.kept {
			if x := of(&g.kept[i], k); !math.IsNaN(x) {
				values = append(values, x)
			}
		}
		if len(values) > 0 {
			strips.Groups, panel.Values = append(strips.Groups, v.Name), append(panel.Values, values)
		}
	}
	strips.Panels = []figure.StripPanel{panel}
	return strips
}

// viewSection shows what each view contributes to where subjects stand.
func (g *gallery) viewSection() (figure.Section, bool) {
	strips := g.byView("distance that the scores move without the view, in standard deviations", "Scores without the view", func(s *keptSubject, k int) float64 { return s.moved[k] })
	return figure.Section{ID: "contributions", Title: "What each view contributes", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "contributions", Title: "How far a subject would move without a view", Chart: strips,
		Caption: "One mark for each subject and view: the distance between the subject's scores with everything that was measured, and without that view. A view far to the right tells what the others do not; one near 0 could have been spared for placing these subjects.",
		Alt:     "Strips of how far subjects' scores move when a view is left out.",
	}}}}, len(strips.Groups) > 0
}

// imputedSection shows what the model says of views that were not measured
// here; where all were, of one that it is made to forget.
func (g *gallery) imputedSection(ctx context.Context) (figure.Section, error) {
	sec := figure.Section{ID: "imputed", Title: "Views that were not measured",
		Lead: "What the model expects of measurements that were not made, from those that were, in standard deviations of the feature from the mean that it expects in " + g.mean + ". The intervals hold nine values of ten if the model is right, and allow for the difference between sites; the shared report shows how well they kept that promise where the view is known."}
	if item, ok := g.imputedFigure(); ok {
		sec.Items = append(sec.Items, item)
	}
	ids, hidden := g.examples()
	if hidden {
		sec.Title = "If a view had not been measured"
		sec.Lead = "Nobody drawn here lacks a view, so the model was made to forget one: what it expects of it from the other views, beside what was measured, in standard deviations of the feature from its mean in " + g.mean + ". The intervals should hold nine values of ten."
	}
	figures := make([]*figure.Figure, len(ids))
	err := g.visit(ctx, ids, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		at := slices.Index(ids, row.ID)
		f, err := g.subjectFigure(row.ID, at, post, values, hidden)
		figures[at] = f
		return err
	})
	for _, f := range figures {
		if f != nil {
			sec.Items = append(sec.Items, figure.Item{Figure: f})
		}
	}
	return sec, err
}

// imputedFigure shows the distribution over subjects of every feature of the
// views that nobody here has.
func (g *gallery) imputedFigure() (figure.Item, bool) {
	b := figure.Bars{X: figure.Axis{Label: "imputed value (standard deviations from the mean)"}, Top: 15}
	for k, v := range g.set.Plan.Views {
		if !g.lacking(k) {
			continue
		}
		lo, hi := g.set.Layout.View(k)
		for j := lo; j < hi; j++ {
			f, sd := g.imputed[j], g.others.SD[j]
			if !(f.n > 0 && sd > 0) {
				continue
			}
			mean, half := (f.mean-g.others.Mean(j))/sd, 1.645*math.Sqrt(f.squares/f.n+f.within)/sd
			b.Labels, b.Groups = append(b.Labels, v.Features[j-lo].Name), append(b.Groups, v.Name)
			b.Values, b.Low, b.High = append(b.Values, mean), append(b.Low, mean-half), append(b.High, mean+half)
		}
	}
	return figure.Item{Figure: &figure.Figure{
		ID: "imputed-features", Title: "What your subjects would probably show", Chart: b,
		Caption: "For features of views that nobody here was measured on: the mean of the imputed values over your subjects, and the range that should hold nine of ten of them. The fifteen whose mean is furthest from 0 are drawn; the numbers below have all. Coloured by view.",
		Alt:     "Forest plot of imputed features with ranges.",
	}}, len(b.Labels) > 0
}

// examples chooses up to three subjects: low, in the middle and high on the
// first factor, of those who lack a view. If nobody does, a view is hidden.
func (g *gallery) examples() (ids []string, hidden bool) {
	var lacking, complete []keptSubject
	for _, s := range g.kept {
		switch known := slices.ContainsFunc(s.moved, func(x float64) bool { return !math.IsNaN(x) }); {
		case s.lacks:
			lacking = append(lacking, s)
		case known:
			complete = append(complete, s)
		}
	}
	from := lacking
	if len(lacking) == 0 {
		from, hidden = complete, true
	}
	slices.SortStableFunc(from, func(a, b keptSubject) int { return cmp.Compare(a.z[0], b.z[0]) })
	for _, i := range []int{0, len(from) / 2, len(from) - 1} {
		if i >= 0 && i < len(from) && !slices.Contains(ids, from[i].id) {
			ids = append(ids, from[i].id)
		}
	}
	return ids, hidden
}

// largest is the view with the most values of the subject read last that the
// other views predict.
func (g *gallery) largest() (view int) {
	most := 0
	for k, ok := range g.others.OK {
		if n := g.others.From[k+1] - g.others.From[k]; ok && n > most {
			view, most = k, n
		}
	}
	return view
}

// subjectFigure shows one subject's imputed values with their intervals.
func (g *gallery) subjectFigure(id string, at int, post *ppca.Posterior, values []float64, hidden bool) (*figure.Figure, error) {
	if err := g.others.Read(post.Observed, values); err != nil {
		return nil, err
	}
	b := figure.Bars{X: figure.Axis{Label: "expected value (standard deviations from the mean)"}, Top: 12, Subject: true}
	view := g.set.Layout.ViewOf()
	add := func(j int, mean, sd float64) {
		k, unit, mu := view[j], g.others.SD[j], g.others.Mean(j)
		lo, _ := g.set.Layout.View(k)
		b.Labels, b.Groups = append(b.Labels, g.set.Plan.Views[k].Features[j-lo].Name), append(b.Groups, g.set.Plan.Views[k].Name)
		b.Values, b.Low, b.High = append(b.Values, (mean-mu)/unit), append(b.Low, (mean-1.645*sd-mu)/unit), append(b.High, (mean+1.645*sd-mu)/unit)
	}
	f := &figure.Figure{ID: fmt.Sprintf("imputed-subject-%d", at+1), Alt: "Forest plot of one subject's imputed values with intervals."}
	if hidden {
		k := g.largest()
		for i := g.others.From[k]; i < g.others.From[k+1]; i++ {
			j := post.Observed[i]
			mean, sd := g.others.Predict(k, j)
			add(j, mean, sd)
			b.Marks = append(b.Marks, (values[i]-g.others.Mean(j))/g.others.SD[j])
		}
		b.Mark = "measured"
		f.Title = fmt.Sprintf("Subject %s: %s forgotten and predicted", id, g.set.Plan.Views[k].Name)
		f.Caption = "Marks are what the model expects from the subject's other views, whiskers the intervals of 90 %, strokes what was measured. The features expected furthest from the mean are drawn; the numbers below have all."
	} else {
		mean, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
		post.Impute(mean, values)
		post.MissingVar(variance)
		for i, j := range post.Missing {
			if g.others.From[view[j]] == g.others.From[view[j]+1] { // single missing cells are another matter
				add(j, mean[i], math.Sqrt(variance[i]))
			}
		}
		f.Title = "Subject " + id + ": what was not measured"
		f.Caption = "Marks are what the model expects of this subject, whiskers the intervals of 90 %. The features expected furthest from the mean are drawn; the numbers below have all. Coloured by view."
	}
	f.Chart = b
	if len(b.Labels) == 0 {
		return nil, nil
	}
	return f, nil
}
