package factors

import (
	"fmt"

	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/statistics"
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
		if notes, err = statistics.RequiredSampleSize(set); err != nil { // the plan's cost says what is wrong
			notes = nil
		}
	}
	if d := set.Layout.Features(); set.TooManyFactors(d) {
		most := set.Rank()
		for ; set.TooManyFactors(d); most-- {
			set = set.With(most - 1)
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

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	set, err := options.SetUp(p)
	if err != nil {
		return ""
	}
	o, l := set.Options, set.Layout
	factors := "1 factor"
	switch {
	case o.Latent == options.Select:
		factors = "as many factors as the sites' sums support"
	case o.Latent != 1:
		factors = fmt.Sprintf("%d factors", o.Latent)
	}
	text := fmt.Sprintf("It looks for %s, patterns that run through the %d features of all %d views together, and how strongly each feature belongs to each.", factors, l.Features(), l.Views())
	if len(o.Adjust) > 0 {
		text += fmt.Sprintf(" Before that, a linear regression on %s is taken out of the features, which follows from sums of all sites.", options.AdjustedFor(o.Adjust))
	}
	switch {
	case o.Mechanism == options.MechanismStatistics:
		return text + " Each site releases noised counts, sums and products of its subjects' values once, and everything is computed from these."
	case o.Rounds == 0:
		return text + " Each site sends the number, means and covariances of its subjects once, for each set of views that they have, to which the coordinator fits the model."
	}
	return text + fmt.Sprintf(" Each site sends the number, means and covariances of its subjects, for each set of views that they have, to which the coordinator fits the model; where values are missing it fills them by the model and sends these again, at most %d times.", o.Rounds)
}
