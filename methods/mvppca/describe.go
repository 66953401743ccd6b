package mvppca

import (
	"fmt"

	"parley/methods/mvppca/options"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	set, err := options.SetUp(p)
	if err != nil {
		return ""
	}
	o, l := set.Options, set.Layout
	factors := "1 factor"
	if o.Latent != 1 {
		factors = fmt.Sprintf("%d factors", o.Latent)
	}
	text := fmt.Sprintf("It looks for %s, patterns that run through the %d features of all %d views together, and how strongly each feature belongs to each.", factors, l.Features(), l.Views())
	if len(o.Adjust) > 0 {
		text += fmt.Sprintf(" Before that, a linear regression on %s is taken out of the features, which follows from sums of all sites.", options.AdjustedFor(o.Adjust))
	}
	switch {
	case o.Mechanism == options.MechanismStatistics:
		return text + " Each site releases noised counts, sums and products of its subjects' values once, and everything is computed from these."
	case o.Variant == options.PublishedVariant:
		text += fmt.Sprintf(" In each of %d rounds every site fits the model to its own subjects, and sends the model's numbers back", o.Rounds)
		switch {
		case o.FirstInClear():
			return text + ", the first time as they are and then noised."
		case o.Clips():
			return text + ", noised."
		}
		return text + "."
	case o.Rounds == 0:
		return text + " Each site describes its own subjects once, by a few numbers for each set of views that they have, to which the coordinator fits the model."
	}
	return text + fmt.Sprintf(" Each site describes its own subjects once, by a few numbers for each set of views that they have, to which the coordinator fits the model; at most %d more rounds find how sites differ.", o.Rounds)
}
