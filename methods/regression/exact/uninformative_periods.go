package exact

import (
	"fmt"

	"parley/figure"
	"parley/methods/regression/predict"
	"parley/problem"
)

// uninformativePeriods says in which periods outcomes tell nothing of the hazard.
func (c common) uninformativePeriods(pooled *predict.Assessment) (says []string) {
	if pooled == nil || pooled.Periods == nil {
		return nil
	}
	var none, all []string
	at, had := pooled.Periods.Count()
	for k, rows := range at {
		name := fmt.Sprintf("%s (%s)", c.period(k, k), figure.Plural(int(rows), "subject"))
		switch events := had[k]; {
		case rows == 0: // its coefficient is that of the prior, which is said elsewhere
		case events == 0:
			none = append(none, name)
		case events == rows:
			all = append(all, name)
		}
	}
	say := func(what string, periods []string, size string) {
		if len(periods) > 0 {
			says = append(says, fmt.Sprintf("%s: %s. Only the prior says how %s the hazard is there, and a fit can take many exchanges to find that out. Do not read the coefficients of such periods. Merge each with a neighbour: leave out the cut between them.", what, problem.Names(periods), size))
		}
	}
	say("There are periods without an event", none, "low")
	say("There are periods that nobody leaves without an event", all, "high")
	return says
}
