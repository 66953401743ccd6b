package mixture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/mixture/sketch"
)

// componentsSection draws the components over what is known of the rows.
func (v *view) componentsSection() figure.Section {
	section := v.View.ComponentsSection()
	var says []figure.Item
	for _, note := range v.statements() {
		says = append(says, figure.Item{Note: &note})
	}
	for _, note := range []*figure.Note{leftOut(v.lacking, int(v.observed.Rows)+v.lacking)} {
		if note != nil {
			says = append(says, figure.Item{Note: note})
		}
	}
	section.Items = slices.Concat(says, section.Items)
	return section
}

// misfits reports whether what was released speaks against the mixture.
func (v *view) misfits() bool {
	return v.fit.Tail <= Level
}

// fitSection compares what sites released with what the mixture expects.
func (v *view) fitSection() figure.Section {
	lead := fmt.Sprintf("All that is known of the rows are the means of a cosine and a sine at each of %d public frequencies. If the mixture describes the rows, observed means scatter around those that the posterior expects as chance and noise make them; the largest distance is %.1f of their standard deviations.", v.own.Of.Len()/2, v.fit.Largest)
	lead += fmt.Sprintf(" Of so many the largest should be below about %.1f. All together, χ² is %.0f with %.0f degrees of freedom. Data sets were drawn from this mixture, with the same noise. By them, a mixture that is right is off by as much in %s of studies.", sketch.LikelyLargest(v.own.Of.Len()), v.fit.ChiSq, v.fit.Freedom, rarity(v.fit.Tail))
	section := figure.Section{ID: "fit", Title: "Does the mixture fit?", Lead: lead}
	section.Items = append(section.Items, figure.Item{Figure: v.fitFigure()})
	return section
}

// rarity writes a share of studies.
func rarity(p float64) string {
	if p <= Level {
		return "1\u00a0% or fewer"
	}
	return fmt.Sprintf("%.2g\u00a0%%", 100*p)
}

// fitFigure compares mean by mean.
func (v *view) fitFigure() *figure.Figure {
	order := make([]int, v.own.Of.Len())
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v.fit.Expected[a], v.fit.Expected[b]) })
	observed, expected := figure.Line{Name: "observed", Points: true}, figure.Line{Name: "expected, with 90 %"}
	const z90 = 1.6448536269514722
	for i, r := range order {
		at, e := float64(i+1), v.fit.Expected[r]
		observed.X, observed.Y = append(observed.X, at), append(observed.Y, v.observed.Mean[r])
		expected.X, expected.Y = append(expected.X, at), append(expected.Y, e)
		expected.Low, expected.High = append(expected.Low, e-z90*v.fit.SD[r]), append(expected.High, e+z90*v.fit.SD[r])
	}
	caption := "Cosines and sines in the order of what the mixture expects of them. The band holds nine of ten observed means if the mixture is right."
	if v.observed.NoiseVar > 0 {
		caption += fmt.Sprintf(" Privacy noise is part of it: a standard deviation of %.2g on every mean.", math.Sqrt(v.observed.NoiseVar))
	}
	return &figure.Figure{ID: "frequency-means", Title: "Observed and expected means", Caption: caption,
		Chart: figure.Lines{X: figure.Axis{Label: "frequency", Count: true}, Y: figure.Axis{Label: "mean cosine or sine"}, Series: []figure.Line{expected, observed}},
		Alt:   "Observed means of what the sites released, against the expected ones with their band."}
}
