package exact

import (
	"fmt"
	"strings"

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

// changing says which features have an effect that changes over time.
func (c common) changing(pooled *predict.Assessment, m *fitted.Model) (says, names []string) {
	if pooled.Periods == nil {
		return nil, nil
	}
	columns := c.Weights() - c.periods()
	var how []string
	for j, name := range m.Encoding.Features()[:columns] {
		if highest, lowest, changes := pooled.Periods.Changing(j, columns); changes {
			names = append(names, name)
			how = append(how, fmt.Sprintf("that of %s is highest in %s and lowest in %s", name, c.period(highest[0], highest[1]), c.period(lowest[0], lowest[1])))
		}
	}
	if names == nil {
		return nil, nil
	}
	return []string{fmt.Sprintf("The effect of %s changes over time: %s. A coefficient is then an average that may hold in no period, and survival is predicted wrongly. No plan has interactions of a feature with time. Fit parts of the time as studies of their own: one with the first cuts alone, and one of those who are left after them, with time counted from there. A strong feature that is missing, and one that goes with another whose effect changes, can look like this too.", problem.Names(names), strings.Join(how, "; "))}, names
}
