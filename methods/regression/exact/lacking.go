package exact

import (
	"fmt"
	"math"

	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// halfError and wholeError are the least shifts that are worth a verdict: of a category, the reference of
// which counts in the place of a missing cell, and of a number, whose mean does. A number is then about half
// a standard deviation off, so that either moves effects by half a standard error.
const halfError, wholeError = 0.5, 1.0

// informativeMissingness says which features' cells are missing where outcomes are other than the model expects, as
// where less is recorded of cases.
func (c coordinator) informativeMissingness(parts []remainder, m *fitted.Model) []string {
	columns := m.Encoding.Columns
	var names []string
	j := 0
	for i := range columns {
		if columns[i].Width() == 0 {
			continue
		}
		least := wholeError
		if len(columns[i].Levels) > 0 {
			least = halfError
		}
		for _, part := range parts {
			if shift := predict.Lacking(part.sites, part.all, j, len(parts)*len(columns)); math.Abs(shift) > least {
				names = append(names, fmt.Sprintf("%s (%s without it)", columns[i].Name, c.more(part.class, shift > 0)))
			}
		}
		j += columns[i].Width()
	}
	if names == nil {
		return nil
	}
	advice := "Filling the cells or leaving such subjects out makes up for that only where the lack goes with other features alone."
	if !c.Options.Numeric() {
		advice = "If the outcome alone decides that, a fit to subjects who have the values has the right effects, but for the intercept and the probabilities."
	}
	return []string{fmt.Sprintf("Outcomes of subjects who lack values are not as the model expects: of %s. So it is where less is recorded of cases than of others, or values are missing because of what they are. Effects of these features, and of all that go with them, can be off by more than their intervals say. Ask the sites why the values are missing. %s", problem.Names(names), advice)}
}

// more says that there is more, or less, of a class or of what outcomes are.
func (c coordinator) more(class string, more bool) string {
	word := map[bool]string{true: "higher", false: "lower"}[more]
	switch {
	case c.Options.Likelihood == options.LikelihoodHazard:
		return map[bool]string{true: "more events", false: "fewer events"}[more]
	case c.Options.Numeric():
		return word
	case class == "":
		class = c.Options.Outcome.Levels[1]
	}
	return map[bool]string{true: "more", false: "less"}[more] + " often " + class
}
