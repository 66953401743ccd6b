package graffl

import (
	"fmt"
	"strings"

	"parley/figure"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

const (
	maxCornerSize    = 9 // parameters in one picture of all their pairs
	maxCornerFigures = 4
)

// posteriorSection shows the posterior of weights and means in all pairs: together
// where that can be read, else component by component.
func posteriorSection(v *mixture.View) figure.Section {
	section := figure.Section{ID: "posterior", Title: "The " + v.Called + " in pairs",
		Lead: "What is known of the weights and means, and what is only known of them together: a narrow slanted region says that if one is larger, the other is too, or must be smaller. Every dot is a parameter that the data allow; no dot is a person."}
	all := make([][]figure.Parameter, v.Options.Components)
	left := 0
	for k := range all {
		all[k] = drawn(v, k)
		left += max(len(all[k])-maxCornerSize, 0)
		all[k] = all[k][:min(len(all[k]), maxCornerSize)]
	}
	if len(all)*len(all[0]) <= maxCornerSize {
		var together []figure.Parameter
		for _, p := range all {
			together = append(together, p...)
		}
		section.Items = append(section.Items, figure.Item{Figure: cornerFigure(v, "posterior-pairs", "Weights and means", together)})
		return section
	}
	order := gmm.BySize(v.Mean.Weights)
	for _, k := range order[:min(len(order), maxCornerFigures)] {
		section.Items = append(section.Items, figure.Item{Figure: cornerFigure(v, fmt.Sprintf("posterior-pairs-%d", k+1), fmt.Sprintf("Component %d", k+1), all[k])})
	}
	var missing []string
	if n := len(order) - maxCornerFigures; n > 0 {
		missing = append(missing, fmt.Sprintf("of %d components the %d largest are drawn", len(order), maxCornerFigures))
	}
	if left > 0 {
		missing = append(missing, fmt.Sprintf("of each the first %d parameters", maxCornerSize))
	}
	missing = append(missing, "pairs across components are not drawn")
	section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Not all pairs are here",
		Text: strings.ToUpper(missing[0][:1]) + strings.Join(missing, "; ")[1:] + ". model/posterior.csv has every draw."}})
	return section
}

// drawn returns the draws of what component k is drawn by: its weight, if there are
// others, and its mean.
func drawn(v *mixture.View, k int) []figure.Parameter {
	group := fmt.Sprintf("component %d", k+1)
	var all []figure.Parameter
	add := func(name string, value func(gmm.Mixture) float64) {
		p := figure.Parameter{Name: name, Group: group}
		for _, m := range v.Posterior.Draws {
			p.Values = append(p.Values, value(m))
		}
		all = append(all, p)
	}
	if v.Options.Components > 1 {
		add("weight", func(m gmm.Mixture) float64 { return m.Weights[k] })
	}
	for i, name := range v.Names {
		add("mean "+name, func(m gmm.Mixture) float64 { return m.Mean(k)[i] })
	}
	return all
}

func cornerFigure(v *mixture.View, id, title string, parameters []figure.Parameter) *figure.Figure {
	return &figure.Figure{ID: id, Title: title, Chart: figure.Corner{Parameters: parameters, Weights: v.Posterior.Weights, Groups: mixture.ComponentNames(v.Options.Components)},
		Caption: "Below the diagonal every pair of parameters, with the regions that hold half and nine tenths of the draws; on it each by itself, with its mean and the interval that holds 90 %. Pairs of different components are grey.",
		Alt:     "Corner plot of the posterior: densities of all parameters and of all their pairs."}
}
