package mixture

import (
	"fmt"

	"parley/figure"
)

// seriously is the share of subjects who lack a feature from which on a report warns: wrong by
// as much can a weight be, if all of them belong to one component.
const seriously = 0.05

// leftOut warns that so many of all subjects take no part because they lack a feature; nil if
// those are too few to matter.
func leftOut(lacking, all int) *figure.Note {
	if lacking == 0 || float64(lacking) < seriously*float64(all) {
		return nil
	}
	return &figure.Note{Warning: true, Title: "Subjects who lack a feature take no part",
		Text: fmt.Sprintf("%d of %d subjects lack a feature, and the mixture is of the others. Where that goes with the component that they belong to, weights are wrong by it, and means and standard deviations can be. Leave out of the plan what many lack.", lacking, all)}
}
