package judge

import (
	"fmt"
	"strings"

	"parley/figure"
	"parley/problem"
)

// checkPrivacy finds out, of a private plan, what it promises, and that it can
// be kept. An evaluation is none of its studies: it knows every row.
func (e *evaluation) checkPrivacy() error {
	if !e.Plan.Privacy.Differential() {
		return nil
	}
	cost, err := e.Methods.Cost(e.Plan)
	if err != nil {
		return err
	}
	e.promise = strings.Join(cost.Lines(), "; ")
	e.notes.Add(problem.Problem{Where: "privacy", What: "these are simulations on rows, and the numbers are not protected: every federated fit is a study of its own with fresh noise, " +
		"but its scores come from rows as they are, and no reference but single sites has noise; the sites' ledgers and policies have no part in it"})
	return nil
}

// privacySection says what a private plan means for an evaluation; only where
// there is one.
func (ev *Evaluation) privacySection() (figure.Section, bool) {
	return figure.Section{ID: "privacy", Title: "Privacy", Items: []figure.Item{{Note: &figure.Note{
		Title: "Simulated on rows: nothing on this page is protected", Warning: true,
		Text: fmt.Sprintf("The plan is private: %s. Each fit of the plan's method here, over all sites or at one alone, was a study of its own in one process, with that whole budget for its own training subjects, "+
			"and with noise drawn afresh. So the page tells what a study under this plan may be expected to reach; the same evaluation made anew gives other numbers.\n\n"+
			"But one process read the rows of all sites, the scores are exact sums over subjects held out, and no reference but single sites has any noise. "+
			"No ledger was charged, and no site's policy was asked. Show the numbers only to those who may see the rows, or evaluate on data that are nobody's.", ev.promise),
	}}}}, ev.promise != ""
}
