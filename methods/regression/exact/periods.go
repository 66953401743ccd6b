package exact

import (
	"fmt"

	"parley/methods/regression/fitted"
	"parley/methods/regression/predict"
	"parley/problem"
)

// period names the periods from the first to the last of a stretch of time.
func (c common) period(first, last int) string {
	begin := 0.0
	if first > 0 {
		begin = c.Options.Outcome.Cuts[first-1]
	}
	return fmt.Sprintf("(%v, %v]", begin, c.Options.Outcome.Cuts[last])
}

// changes are tests of whether effects change over time, of each column of features and of all together.
func (c common) changes(s *state, pooled *predict.Assessment) (each []predict.Change, all predict.Change) {
	var sets [][]int
	for j := range c.Weights() - c.periods() {
		sets = append(sets, []int{j})
	}
	return pooled.Periods.Changes(sets, c.PriorOf(s.Scale), pooled.Residuals.Dispersion())
}

// changing says which features have an effect that changes over time.
func (c common) changing(s *state, pooled *predict.Assessment, m *fitted.Model) (says, names []string) {
	if pooled.Periods == nil || pooled.Residuals == nil {
		return nil, nil
	}
	each, _ := c.changes(s, pooled)
	for j, change := range each {
		if change.Matters(len(each), pooled.Residuals.Variance) {
			word := "grows"
			if change.Slope < 0 {
				word = "falls"
			}
			names = append(names, fmt.Sprintf("%s (%s)", m.Encoding.Features()[j], word))
		}
	}
	if names == nil {
		return nil, nil
	}
	return []string{fmt.Sprintf("The effect of %s changes over time. A coefficient is then an average that may hold in no period, and survival is predicted wrongly. No plan has interactions of a feature with time. Fit parts of the time as studies of their own: one with the first cuts alone, and one of those who are left after them, with time counted from there. A strong feature that is missing, and one that goes with another whose effect changes, can look like this too.", problem.Names(names))}, names
}
