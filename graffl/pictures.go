package graffl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
)

// componentsSection shows the mixture that was found, and how surely.
func (v *view) componentsSection() figure.Section {
	section := figure.Section{ID: "components", Title: "The mixture",
		Lead: "Each component with the posterior means of its parameters and the intervals that hold them with a probability of 90 %. Components have no names of their own: they were matched over the sample, and their numbers mean nothing.",
		Items: []figure.Item{
			{Table: parameterTable(v.parameters())},
			{Figure: v.weightsFigure()},
		}}
	for i := range v.names {
		for j := range i {
			if len(section.Items) >= 2+maxPairs {
				section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Not all pairs are drawn",
					Text: fmt.Sprintf("Of %d pairs of features the first %d are drawn; model/posterior.csv has everything.", len(v.names)*(len(v.names)-1)/2, maxPairs)}})
				return section
			}
			section.Items = append(section.Items, figure.Item{Figure: v.pairFigure(j, i)})
		}
	}
	return section
}

// maxPairs is how many pairs of features are drawn.
const maxPairs = 6

func (v *view) weightsFigure() *figure.Figure {
	bars := figure.Bars{X: figure.Axis{Label: "share of the rows"}, Labels: componentNames(v.opts.Components)}
	for k := range v.opts.Components {
		w := v.posterior.weight(k)
		bars.Values, bars.Low, bars.High = append(bars.Values, w.mean), append(bars.Low, w.low), append(bars.High, w.high)
	}
	return &figure.Figure{ID: "weights", Title: "How large each component is", Chart: bars,
		Caption: "Posterior mean of each weight, with the interval that holds it with a probability of 90 %.", Alt: "Forest plot of the components' weights."}
}

// pairFigure draws two features: where the rows of each component are, and where
// its mean may be. Both are ellipses of normal distributions and show no row.
func (v *view) pairFigure(i, j int) *figure.Figure {
	s := figure.Scatter{X: figure.Axis{Label: v.names[i]}, Y: figure.Axis{Label: v.names[j]}}
	m, d := v.mean, len(v.names)
	for k := range v.opts.Components {
		cov := m.Cov(k)
		s.Groups = append(s.Groups, figure.Group{Name: fmt.Sprintf("rows of component %d", k+1), Mean: figure.Numbers{m.Mean(k)[i], m.Mean(k)[j]},
			Cov: figure.Numbers{cov[i*d+i], cov[i*d+j], cov[j*d+j]}})
	}
	for k := range v.opts.Components {
		var xx, xy, yy float64
		for n, draw := range v.posterior.Draws {
			x, y := draw.Mean(k)[i]-m.Mean(k)[i], draw.Mean(k)[j]-m.Mean(k)[j]
			w := v.posterior.Weights[n]
			xx, xy, yy = xx+w*x*x, xy+w*x*y, yy+w*y*y
		}
		s.Groups = append(s.Groups, figure.Group{Name: fmt.Sprintf("mean of component %d", k+1), Mean: figure.Numbers{m.Mean(k)[i], m.Mean(k)[j]}, Cov: figure.Numbers{xx, xy, yy}})
	}
	return &figure.Figure{ID: fmt.Sprintf("pair-%d-%d", i+1, j+1), Title: fmt.Sprintf("Components in %s and %s", v.names[i], v.names[j]), Chart: s,
		Caption: "Ellipses hold half and nine tenths: the wide ones of a component's rows, the small ones of the posterior of its mean.",
		Alt:     fmt.Sprintf("Ellipses of each component's rows and of its mean, in %s and %s.", v.names[i], v.names[j])}
}

// fitSection compares what sites released with what the mixture expects.
func (v *landmarkView) fitSection() figure.Section {
	lead := fmt.Sprintf("All that is known of the rows is the mean of a kernel at each of %d public landmarks. If the mixture describes the rows, observed means scatter around the expected ones as the bars say; the largest distance is %.1f of their standard deviations.", v.marks.Len(), v.fit.largest)
	lead += " Of so many landmarks the largest should be below about " + fmt.Sprintf("%.1f", likelyLargest(v.marks.Len())) + "."
	section := figure.Section{ID: "fit", Title: "Does the mixture fit?", Lead: lead, Items: []figure.Item{{Figure: v.fitFigure()}}}
	if h := v.fitMap(); h != nil {
		section.Items = append(section.Items, figure.Item{Figure: h})
	}
	if v.fit.largest > likelyLargest(v.marks.Len()) {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "The mixture does not fit everywhere",
			Text: "At some landmark far more, or far fewer, rows were seen than the mixture expects. Rows may not be Gaussian within components, or there may be more components than the plan says: intervals are then too narrow."}})
	}
	return section
}

// likelyLargest is what the largest of n independent normal deviations exceeds
// with a probability of 1 % at most.
func likelyLargest(n int) float64 { return math.Sqrt(2) * math.Erfcinv(0.01/float64(n)) }

func (v *landmarkView) fitFigure() *figure.Figure {
	order := make([]int, v.marks.Len())
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v.fit.expected[a], v.fit.expected[b]) })
	observed, expected := figure.Line{Name: "observed"}, figure.Line{Name: "expected, with 90 %"}
	const z90 = 1.6448536269514722
	for i, r := range order {
		at, e := float64(i+1), v.fit.expected[r]
		observed.X, observed.Y = append(observed.X, at), append(observed.Y, v.observed.Mean[r])
		expected.X, expected.Y = append(expected.X, at), append(expected.Y, e)
		expected.Low, expected.High = append(expected.Low, e-z90*v.fit.sd[r]), append(expected.High, e+z90*v.fit.sd[r])
	}
	caption := "Landmarks in the order of what the mixture expects there. The band holds nine of ten observed means if the mixture is right."
	if v.observed.NoiseVar > 0 {
		caption += fmt.Sprintf(" Privacy noise is part of it: a standard deviation of %.2g on every mean.", math.Sqrt(v.observed.NoiseVar))
	}
	return &figure.Figure{ID: "landmark-means", Title: "Observed and expected kernel means", Caption: caption,
		Chart: figure.Lines{X: figure.Axis{Label: "landmark", Count: true}, Y: figure.Axis{Label: "mean kernel value"}, Series: []figure.Line{expected, observed}},
		Alt:   "Observed kernel means over landmarks, against the expected ones with their band."}
}

// fitMap draws the means over a grid of landmarks in two features; nil for others.
func (v *landmarkView) fitMap() *figure.Figure {
	l := v.marks
	if l.Dim != 2 || len(l.Spacing) == 0 {
		return nil
	}
	nx := 1
	for nx < l.Len() && l.Point(nx)[1] == l.Point(0)[1] {
		nx++
	}
	ny := l.Len() / nx
	if nx > maxCells || ny > maxCells {
		return nil
	}
	h := figure.Heatmap{Legend: "mean kernel value"}
	for i := range nx {
		h.Columns = append(h.Columns, label(v.names[0], l.Point(i)[0]))
	}
	facets := []figure.Facet{{Title: "observed"}, {Title: "expected"}}
	for j := ny - 1; j >= 0; j-- { // upwards
		h.Rows = append(h.Rows, label(v.names[1], l.Point(j * nx)[1]))
		facets[0].Values = append(facets[0].Values, v.observed.Mean[j*nx:][:nx])
		facets[1].Values = append(facets[1].Values, v.fit.expected[j*nx:][:nx])
	}
	h.Facets = facets
	return &figure.Figure{ID: "landmark-map", Title: "Kernel means over the landmarks", Chart: h,
		Caption: "Where rows are, as far as anybody outside a site can see; noise makes some observed means negative.",
		Alt:     "Two maps of mean kernel values over the grid of landmarks: observed, and expected by the mixture."}
}

// maxCells is the largest side of a map whose cells can be read.
const maxCells = 16

func label(name string, x float64) string {
	return strings.TrimSpace(fmt.Sprintf("%s %.3g", name, x))
}

// samplingSection says how the posterior was made, and whether to believe it.
func (v *landmarkView) samplingSection(s *state) figure.Section {
	p := v.posterior
	section := figure.Section{ID: "sampling", Title: "How the posterior was made",
		Lead: fmt.Sprintf("Every site released one set of sums; then %d parameters were carried from the prior to the posterior over %d temperatures, with no further question to a site. In the last one %.0f %% of moves were accepted.", len(p.Draws), p.Stages, 100*p.Acceptance),
		Items: []figure.Item{{Note: &figure.Note{Title: fmt.Sprintf("The sample is worth %.0f independent draws", p.Size),
			Text: "That is the effective sample size of its weights, (Σw)²/Σw². The mean of a parameter is off by about its posterior standard deviation divided by the root of that number; the ends of intervals are rougher. It says how precisely this posterior was computed, nothing about whether the model is right, and it cannot see a mode that no draw found.", Warning: p.Size < 100}}}}
	var names, answered []string
	var rows figure.Numbers
	for _, name := range v.plan.Sites {
		names = append(names, name)
		if a := s.Sites[name]; a != nil {
			rows, answered = append(rows, a.Rows), append(answered, "yes")
		} else {
			rows, answered = append(rows, math.NaN()), append(answered, "left before its release")
		}
	}
	caption := "Rows that have all features; others take no part."
	if v.observed.RowsVar > 0 {
		caption += " Counts are noised."
	}
	section.Items = append(section.Items, figure.Item{Table: &figure.Table{ID: "site-rows", Title: "Sites", Caption: caption,
		Columns: []figure.Column{{Name: "site", Text: names}, {Name: "rows", Format: figure.Count, Numbers: rows}, {Name: "released", Text: answered}}}})
	if sd := math.Sqrt(v.observed.RowsVar); sd > 0 && v.observed.Rows < 5*sd {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Noise is as large as the data",
			Text: fmt.Sprintf("The sites have about %.0f rows together, by a count whose noise has a standard deviation of %.0f. Nothing here should be believed: it takes a larger ε, or more rows.", v.observed.Rows, sd)}})
	}
	return section
}
