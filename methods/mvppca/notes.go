package mvppca

import (
	"fmt"

	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/statistics"
	"parley/problem"
	"parley/study"
)

var _ method.Noter = Method{}

// Notes implements [method.Noter]: how many subjects a study of noised statistics needs, and
// whether the plan has more factors than its features can tell.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil
	}
	if set.Options.Mechanism == options.MechanismStatistics {
		if notes, err = statistics.Foresee(set); err != nil { // the plan's cost says what is wrong
			notes = nil
		}
	}
	if d := set.Layout.Features(); set.TooManyFactors(d) {
		most := set.Options.Latent
		for ; set.TooManyFactors(d); most-- {
			opts := *set.Options
			opts.Latent, set.Options = most-1, &opts
		}
		hint := fmt.Sprintf("at most %d, or noise: view; parley select says how many the data support", most)
		if most == 0 {
			hint = "noise: view, or more features"
		}
		notes.Add(problem.Problem{Where: "method.latent", What: fmt.Sprintf("%d factors are more than the covariances of %d features can tell: infinitely many models describe the same subjects", p.Method.Options.(*options.Options).Latent, d),
			Hint: hint})
	}
	return notes
}
