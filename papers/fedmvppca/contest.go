package fedmvppca

import (
	"fmt"
	"strings"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// compared sets methods beside each other on one common scale.
func compared(o experiment.Outcomes, conditions []condition, rivals []rival) []figure.Table {
	won := contest{"who-wins", "Who wins where", "The default less a rival on the same folds.", today, rivals}
	return append([]figure.Table{ours(o, conditions, rivals)}, won.tables(o, conditions)...)
}

// ours shows every method on one common scale.
func ours(o experiment.Outcomes, conditions []condition, rivals []rival) figure.Table {
	return scores(figure.Table{ID: "common-scale", Title: "On one common scale",
		Caption: "All rows by the minimum and maximum of all training rows together. " +
			"Mean ± standard deviation over folds."}, o, conditions, rivals)
}

// scores fills a table with what methods are worth.
func scores(t figure.Table, o experiment.Outcomes, conditions []condition, rivals []rival) figure.Table {
	t.Columns = figure.TextColumns("scenario", "sites", "method")
	for _, m := range measures {
		t.Columns = append(t.Columns, figure.Column{Name: m.title})
	}
	for _, c := range conditions {
		for _, r := range rivals {
			ids := c.ids(o, r.name)
			if len(ids) == 0 {
				continue
			}
			cells := []any{c.scenario.String(), fmt.Sprint(c.sites), r.name}
			for _, m := range measures {
				text := experiment.SpreadOf(o.Gather(m.name, ids...)).Text(m.digits)
				if n := len(o.Gather(failed, ids...)); n > 0 {
					text = strings.TrimSpace(fmt.Sprintf("%s (%d diverged)", text, n))
				}
				cells = append(cells, text)
			}
			t.Add(cells...)
		}
	}
	return t
}

// contest compares one method with every rival on the same folds.
type contest struct {
	id, title, caption string
	champion           rival
	rivals             []rival
}

// judgedBy are the measures of a contest.
var judgedBy = []struct {
	name   string
	larger bool // is better
}{{testError, false}, {accuracy, true}}

// tables are the count of verdicts by rival, and the differences behind them.
func (x contest) tables(o experiment.Outcomes, conditions []condition) []figure.Table {
	t := figure.Table{ID: x.id, Title: x.title,
		Caption: x.caption +
			" In brackets a 95 % interval for cross-validation (Nadeau and Bengio); then the verdict, and on how " +
			"many folds the method won and lost. Below zero the error is smaller, above zero the accuracy is larger.",
		Columns: figure.TextColumns("scenario", "sites", "rival", "test error", "verdict", "accuracy", "verdict")}
	count := map[string]int{}
	for _, c := range conditions {
		for _, r := range x.rivals {
			cells := []any{c.scenario.String(), fmt.Sprint(c.sites), r.name}
			for _, m := range judgedBy {
				if d, ok := x.against(o, c, r, m.name); ok {
					won, lost := d.Wins, d.Losses // of smaller scores
					if m.larger {
						won, lost = lost, won
					}
					verdict := experiment.Verdict(d.Low, d.High, m.larger)
					count[r.name+m.name+verdict]++
					cells = append(cells, experiment.Interval(d.Mean, d.Low, d.High),
						fmt.Sprintf("%s, %d : %d", verdict, won, lost))
				}
			}
			if len(cells) == len(t.Columns) {
				t.Add(cells...)
			}
		}
	}
	short := figure.Table{ID: x.id + "-count", Title: x.title + ", in short",
		Caption: "In how many scenarios " + x.champion.name + " wins against the rival, loses, or neither can be told.",
		Columns: figure.TextColumns("rival", "error: wins", "loses", "even", "accuracy: wins", "loses", "even")}
	for _, r := range x.rivals {
		cells, n := []any{r.name}, 0
		for _, m := range judgedBy {
			for _, verdict := range []string{experiment.Wins, experiment.Loses, experiment.Even} {
				n += count[r.name+m.name+verdict]
				cells = append(cells, fmt.Sprint(count[r.name+m.name+verdict]))
			}
		}
		if n > 0 {
			short.Add(cells...)
		}
	}
	return []figure.Table{short, t}
}

// against is the difference to a rival on the folds that both have; not ok if there are
// too few, or a score is not finite, which the table of scores shows.
func (x contest) against(o experiment.Outcomes, c condition, r rival, measure string) (evaluate.Difference, bool) {
	own := o.Gather(measure, c.ids(o, x.champion.name)...)
	theirs := o.Gather(measure, c.ids(o, r.name)...)
	n := min(len(own), len(theirs)) // of the same repeats
	if r.name == x.champion.name || n < 2 || len(o.Gather(failed, c.ids(o, r.name)...)) > 0 {
		return evaluate.Difference{}, false
	}
	d, err := evaluate.Paired(own[:n], theirs[:n], 0.95, 1/float64(folds-1))
	return d, err == nil
}
