package draft

import (
	"fmt"
	"slices"
	"strings"

	"parley/problem"
	"parley/study"
)

// perWeight is how many events, or rows for a number, a regression without a prior should
// have for each of its weights (Peduzzi et al. 1996).
const perWeight = 10

// enough says whether the subjects are few for the weights of a regression. Without some
// prior there is no fit where weights outnumber events; with one, the prior decides most.
func (d *Draft) enough() {
	weights, events, what := 0, int64(0), "values of "+d.Outcome.Column
	for _, v := range d.Views {
		for _, f := range v.Features {
			if weights++; f.Kind == study.Category {
				weights += len(f.Levels) - 2
			}
		}
	}
	for _, c := range d.columns {
		if c.View != "" || c.Name != d.Outcome.Column {
			continue
		}
		events = c.Numbers
		for i, l := range d.Outcome.Levels {
			if n := c.words[l]; i == 0 || n < events {
				events, what = n, fmt.Sprintf("events (%s: %s)", d.Outcome.Column, l)
			}
		}
	}
	if events >= perWeight*int64(weights) {
		return
	}
	most := max(1, events/perWeight)
	advice := fmt.Sprintf("keep at most %s, chosen without looking at the outcome", plural(most, "feature"))
	d.tooFew = fmt.Sprintf("Few data: at most %d %s for %s. The usual rule is %d for each.\n"+
		"The prior keeps the weights finite, and decides much of the result: single effects are uncertain.\n"+
		"Better: %s,\nor begin without an outcome: mvppca finds a few factors.", (events+9)/10*10, oneLine(what), plural(weights, "weight"), perWeight, advice)
	d.Said = append(problem.List{{Where: "--outcome " + d.Outcome.Column,
		What: fmt.Sprintf("there are %d %s for %s, which is few: the usual rule is %d for each; the prior keeps the weights finite, and decides much of the result", events, what, plural(weights, "weight"), perWeight),
		Hint: advice + "\nor begin without --outcome: mvppca finds a few factors first"}}, d.Said...)
}

// Parts of names of columns that are the time until an event, and of those that say how it ended.
var (
	times = []string{"time", "day", "week", "month", "year", "follow", "surviv", "duration", "until", "pfs", "tte"}
	ends  = []string{"event", "status", "death", "died", "dead", "deceased", "surviv", "censor"}
)

// followUp says so if a number that is to be predicted looks like the time until an event, which
// not everybody had: a regression of such times takes the others' for times of the event.
func (d *Draft) followUp() {
	named := func(column string, parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(column), part) })
	}
	if len(d.Outcome.Levels) > 0 || !named(d.Outcome.Column, times) {
		return
	}
	for _, c := range d.Candidates {
		if len(c.Levels) != 2 || !named(c.Column, ends) {
			continue
		}
		levels := slices.Clone(c.Levels)
		if named(c.Column, []string{"censor"}) {
			slices.Reverse(levels)
		}
		d.survival = fmt.Sprintf("outcome: {column: %s, event: %s, levels: %s, cuts: [END OF EACH PERIOD]}", study.Quote(d.Outcome.Column), study.Quote(c.Column), flow(levels, study.Quote))
		d.Said = append(problem.List{{Where: "--outcome " + d.Outcome.Column, What: fmt.Sprintf("if %s says how the time %s ended, a plain regression of the times is wrong: the event had not come for everybody", c.Column, d.Outcome.Column),
			Hint: "in the plan, with no event before the event among the levels: " + d.survival}}, d.Said...)
		return
	}
}
