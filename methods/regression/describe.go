package regression

import (
	"fmt"
	"strings"

	"parley/methods/regression/options"
	"parley/problem"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return ""
	}
	text := o.Predicts(p)
	how := "the change of the weights that its own subjects ask for"
	switch {
	case o.Noised(p):
		how = "noised sums over its own subjects: of their features once, of how each would change the weights in every round"
		if o.Scaling == options.ScaleStandard {
			how = strings.Replace(how, "once", "once, after two histograms of each number", 1)
		}
	case o.Joint():
		how = "sums over its own subjects: of how each would change the weights, and of how surely"
	default:
		how += ", which follows from noised sums of their gradients"
	}
	return text + fmt.Sprintf(" Whenever the coordinator asks, a site sends %s.", how)
}

// Notes implements [method.Noter].
func (Method) Notes(p *study.Plan) problem.List {
	if o, ok := p.Method.Options.(*options.Options); ok {
		return o.Notes(p)
	}
	return nil
}
