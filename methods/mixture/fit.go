package mixture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/mixture/report"
	"parley/methods/mixture/sketch"
)

// componentsSection draws the components over what is known of the rows.
func (v *view) componentsSection() figure.Section {
	section := v.View.ComponentsSection()
	if f := v.modesFigure(); f != nil {
		section = v.ComponentsUnder(f)
	}
	var says []figure.Item
	for _, note := range []*figure.Note{v.doubtsNote(), report.LeftOut(v.lacking, int(v.observed.Rows)+v.lacking), report.PriorDominated(v.Posterior, v.Prior, v.Names, v.Options.Prior.Spread)} {
		if note != nil {
			says = append(says, figure.Item{Note: note})
		}
	}
	section.Items = slices.Concat(says, section.Items)
	return section
}

// misfits reports whether what was released speaks against the mixture.
func (v *view) misfits() bool {
	return v.fit.Tail <= report.Level
}

// modesFigure draws the components over the kernel means at a grid of landmarks in
// two features, the only density of the rows that is known outside a site; nil for
// others.
func (v *view) modesFigure() *figure.Figure {
	c, ok := v.grid()
	if !ok {
		return nil
	}
	c.Dots = true
	c.Panels = []figure.Panel{{Legend: "mean kernel value, as released", Values: v.onGrid(v.observed.Mean)}}
	caption := fmt.Sprintf("Grey is all that is known of the rows outside their sites: the mean of a kernel around each public landmark (the dots), which blurs the rows by %.3g in %s and %.3g in %s. Marks and ellipses are the components, which are sharper: ellipses hold half (solid) and nine tenths (dashed) of a component's rows.", v.Marks.Bandwidth[0], v.Names[0], v.Marks.Bandwidth[1], v.Names[1])
	if v.observed.NoiseVar > 0 {
		caption += " Privacy noise is part of the grey."
	}
	return &figure.Figure{ID: "pair-1-2", Title: "The components, over what the sites released", Chart: c, Caption: caption,
		Alt: fmt.Sprintf("Map of the mean kernel values over %s and %s, with an ellipse and a mark for each component.", v.Names[0], v.Names[1])}
}

// grid returns a picture over a grid of landmarks in two features, without its panels;
// not ok for other landmarks.
func (v *view) grid() (c figure.Contours, ok bool) {
	l := v.Marks
	if v.rel.sketched() || l.Dim != 2 || len(l.Spacing) == 0 {
		return c, false
	}
	nx := 1
	for nx < l.Len() && l.Point(nx)[1] == l.Point(0)[1] {
		nx++
	}
	labels := v.Labels()
	c = figure.Contours{X: figure.Axis{Label: labels[0]}, Y: figure.Axis{Label: labels[1]}, Groups: report.Groups(v.Mean, 0, 1)}
	for i := range nx {
		c.XAt = append(c.XAt, l.Point(i)[0])
	}
	for j := 0; j < l.Len(); j += nx {
		c.YAt = append(c.YAt, l.Point(j)[1])
	}
	return c, len(c.XAt) > 1 && len(c.YAt) > 1
}

// onGrid parts what belongs to landmarks of a grid into its rows.
func (v *view) onGrid(values []float64) (rows []figure.Numbers) {
	l := v.Marks
	for r := range l.Len() {
		if r == 0 || l.Point(r)[1] != l.Point(r - 1)[1] {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], values[r])
	}
	return rows
}

// fitSection compares what sites released with what the mixture expects.
func (v *view) fitSection() figure.Section {
	lead := fmt.Sprintf("All that is known of the rows is the mean of a kernel at each of %d public landmarks. If the mixture describes the rows, observed means scatter around those that the posterior expects as chance and noise make them; the largest distance is %.1f of their standard deviations.", v.rel.Of.Len(), v.fit.Largest)
	if v.rel.sketched() {
		lead = fmt.Sprintf("All that is known of the rows are the means of a cosine and a sine at each of %d public frequencies. If the mixture describes the rows, observed means scatter around those that the posterior expects as chance and noise make them; the largest distance is %.1f of their standard deviations.", v.rel.Of.Len()/2, v.fit.Largest)
	}
	lead += fmt.Sprintf(" Of so many the largest should be below about %.1f. All together, χ² is %.0f with %.0f degrees of freedom. Data sets were drawn from this mixture, with the same noise. By them, a mixture that is right is off by as much in %s of studies.", sketch.LikelyLargest(v.rel.Of.Len()), v.fit.ChiSq, v.fit.Freedom, rarity(v.fit.Tail))
	section := figure.Section{ID: "fit", Title: "Does the mixture fit?", Lead: lead}
	if h := v.fitMap(); h != nil {
		section.Items = append(section.Items, figure.Item{Figure: h})
	}
	section.Items = append(section.Items, figure.Item{Figure: v.fitFigure()})
	if v.misfits() {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Rows are elsewhere than the mixture expects",
			Text: "They may not be normally distributed within components, or there may be more components than the plan says, or ranges may cut off tails: intervals are then too narrow. More components (method.components) are worth a try."}})
	}
	return section
}

// rarity writes a share of studies.
func rarity(p float64) string {
	if p <= report.Level {
		return "1\u00a0% or fewer"
	}
	return fmt.Sprintf("%.2g\u00a0%%", 100*p)
}

// residuals are the distances of observed from expected means, in standard deviations.
func (v *view) residuals() []float64 {
	r := make([]float64, len(v.fit.Expected))
	for i, e := range v.fit.Expected {
		if r[i] = math.NaN(); v.fit.SD[i] > 0 {
			r[i] = (v.observed.Mean[i] - e) / v.fit.SD[i]
		}
	}
	return r
}

// fitFigure compares landmark by landmark: along the axis, if there is but one.
func (v *view) fitFigure() *figure.Figure {
	order, x := make([]int, v.rel.Of.Len()), figure.Axis{Label: v.rel.point(), Count: true}
	for r := range order {
		order[r] = r
	}
	at := func(_, i int) float64 { return float64(i + 1) }
	key := func(r int) float64 { return v.fit.Expected[r] }
	caption := "Landmarks in the order of what the mixture expects there. The band holds nine of ten observed means if the mixture is right."
	if v.rel.sketched() {
		caption = "Cosines and sines in the order of what the mixture expects of them. The band holds nine of ten observed means if the mixture is right."
	} else if v.Marks.Dim == 1 {
		x = figure.Axis{Label: v.Labels()[0]}
		key = func(r int) float64 { return v.Marks.Point(r)[0] }
		at = func(r, _ int) float64 { return key(r) }
		caption = "Each mark is a landmark. The band holds nine of ten observed means if the mixture is right."
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
	observed, expected := figure.Line{Name: "observed", Points: true}, figure.Line{Name: "expected, with 90 %"}
	const z90 = 1.6448536269514722
	for i, r := range order {
		at, e := at(r, i), v.fit.Expected[r]
		observed.X, observed.Y = append(observed.X, at), append(observed.Y, v.observed.Mean[r])
		expected.X, expected.Y = append(expected.X, at), append(expected.Y, e)
		expected.Low, expected.High = append(expected.Low, e-z90*v.fit.SD[r]), append(expected.High, e+z90*v.fit.SD[r])
	}
	if v.observed.NoiseVar > 0 {
		caption += fmt.Sprintf(" Privacy noise is part of it: a standard deviation of %.2g on every mean.", math.Sqrt(v.observed.NoiseVar))
	}
	value := "mean kernel value"
	if v.rel.sketched() {
		value = "mean cosine or sine"
	}
	return &figure.Figure{ID: v.rel.point() + "-means", Title: "Observed and expected means", Caption: caption,
		Chart: figure.Lines{X: x, Y: figure.Axis{Label: value}, Series: []figure.Line{expected, observed}},
		Alt:   "Observed means of what the sites released, against the expected ones with their band."}
}

// fitMap draws the means over a grid of landmarks in two features, and how far they
// are from each other; nil for others.
func (v *view) fitMap() *figure.Figure {
	c, ok := v.grid()
	if !ok {
		return nil
	}
	const legend = "mean kernel value"
	c.Groups = nil
	c.Panels = []figure.Panel{{Title: "observed", Legend: legend, Values: v.onGrid(v.observed.Mean)}, {Title: "expected", Legend: legend, Values: v.onGrid(v.fit.Expected)},
		{Title: "difference", Legend: "standard deviations", Values: v.onGrid(v.residuals()), Diverging: true, Reach: figure.Numbers{sketch.LikelyLargest(v.rel.Of.Len())}}}
	return &figure.Figure{ID: "landmark-map", Title: "Kernel means over the landmarks", Chart: c,
		Caption: "Left, where rows are, as far as anybody outside a site can see; in the middle, where the mixture expects them; right, what is left over, in standard deviations of what chance and noise make of it, on a scale to the largest that is likely. The right one should look like pale noise: a hill or a hollow where a component lies says that its rows are not as normally distributed as the mixture takes them to be.",
		Alt:     "Three maps over the grid of landmarks: observed kernel means, those expected by the mixture, and their difference in standard deviations."}
}
