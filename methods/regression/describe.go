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
	how := "sums over its own subjects: of how each would change the weights, and of how surely"
	if o.Noised(p) {
		how = "noised sums over its own subjects: of their features once, of how each would change the weights in every round"
		if o.Scaling == options.ScaleStandard {
			how = strings.Replace(how, "once", "once, after two histograms of each number", 1)
		}
	}
	return o.Predicts(p) + fmt.Sprintf(" Whenever the coordinator asks, a site sends %s.", how)
}
