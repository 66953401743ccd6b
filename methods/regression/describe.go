package regression

import (
	"fmt"
	"strings"

	"parley/methods/regression/options"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return ""
	}
	features := 0
	for _, v := range p.Views {
		features += len(v.Features)
	}
	what := fmt.Sprintf("the number in column %s", o.Outcome.Column)
	if len(o.Outcome.Levels) > 0 {
		what = fmt.Sprintf("which level of column %s a subject has (%s)", o.Outcome.Column, strings.Join(o.Outcome.Levels, ", "))
	}
	switch o.Likelihood {
	case options.LikelihoodPoisson:
		what = fmt.Sprintf("the count in column %s", o.Outcome.Column)
	case options.LikelihoodHazard:
		what = fmt.Sprintf("in which of %d periods of the time in column %s the event in column %s happens", len(o.Outcome.Cuts), o.Outcome.Column, o.Outcome.Event)
	}
	text := fmt.Sprintf("It predicts %s from %d features by a Bayesian %s regression, and says how surely each weight is known.", what, features, o.Likelihood)
	how := "the change of the weights that its own subjects ask for"
	switch {
	case o.Variant == options.VariantGlobal:
		how = "a step along the gradient of some of its own subjects"
	case o.Noised(p):
		how = "noised sums over its own subjects: of their features once, of how each would change the weights in every round"
	case o.Joint() && !p.Privacy.Differential():
		how = "sums over its own subjects: of how each would change the weights, and of how surely"
	case o.Private(p):
		how += ", which follows from noised sums of their gradients"
	case p.Privacy.Differential():
		how += ", which follows from noised sums of the gradients of samples of them"
	}
	return text + fmt.Sprintf(" Whenever the coordinator asks, a site sends %s.", how)
}
