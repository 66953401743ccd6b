package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
)

// planJSON is what a plan promises, and the site that is counted for.
type planJSON struct {
	Site string       `json:"site"`
	Cost *ledger.Cost `json:"cost"`
}

// checkPlan refuses flags that do not go with a plan, or without one.
func (c *composition) checkPlan(cmd *cobra.Command, plan bool) error {
	set := func(names ...string) (found []string) {
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				found = append(found, "--"+name)
			}
		}
		return found
	}
	described := set("published", "gaussian", "laplace")
	switch foreign := append(described, set("adjacency")...); {
	case plan && len(foreign) > 0:
		return &usageError{fmt.Errorf("%s beside a plan\n  hint: the plan says what is released, and under which adjacency", strings.Join(foreign, ", "))}
	case !plan && len(described) == 0:
		return &usageError{errors.New("there is nothing to count\n  hint: a plan, or at least one of --gaussian, --laplace, --published")}
	case !plan && len(set("site")) > 0:
		return &usageError{errors.New("--site belongs to a plan")}
	}
	return nil
}

// ofPlan sets what a site would release under a plan, and returns the plan's δ.
func (cost *costJSON) ofPlan(path, site string) (delta float64, err error) {
	plan, err := study.Load(path, methods)
	if err != nil {
		return 0, err
	}
	if !plan.Privacy.Differential() {
		return 0, problem.Problem{File: path, Where: "privacy", What: "the plan has no differential privacy, so there is nothing to count"}
	}
	total, err := methods.Cost(plan)
	if err != nil {
		return 0, err
	}
	if site == "" {
		site = plan.Sites[0]
	}
	i := slices.Index(plan.Sites, site)
	if i < 0 {
		return 0, problem.Problem{File: path, Where: "sites", What: fmt.Sprintf("%q is not a site of the plan", site), Hint: problem.DidYouMean(site, plan.Sites, "one of "+strings.Join(plan.Sites, ", "))}
	}
	s := total.Sites[i]
	if len(s.Mechanisms) == 0 {
		return 0, problem.Problem{File: path, Where: "site " + site, What: fmt.Sprintf("no noised sums that would protect a %s", total.Unit)}
	}
	cost.Mechanisms, cost.Adjacency, cost.Plan = s.Mechanisms, total.Adjacency, &planJSON{site, total}
	return s.Losses[0].Delta, nil
}

func (p *planJSON) print(w io.Writer) {
	for _, l := range p.Cost.Lines() {
		fmt.Fprintln(w, l)
	}
	fmt.Fprintf(w, "\nsite %s, as it protects one %s:\n", p.Site, p.Cost.Unit)
}
