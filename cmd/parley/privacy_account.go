package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
)

// costJSON is what `privacy account --json` prints.
type costJSON struct {
	Adjacency  account.Adjacency   `json:"adjacency"`
	Mechanisms []account.Mechanism `json:"mechanisms"`
	Bounds     []boundJSON         `json:"bounds"`
	Deltas     []account.Budget    `json:"deltas,omitempty"` // tight δ at each ε asked for
	Published  *publishedJSON      `json:"published,omitempty"`
	Plan       *planJSON           `json:"plan,omitempty"`
}

type boundJSON struct {
	Name    string   `json:"name"`
	Delta   float64  `json:"delta"`
	Epsilon *float64 `json:"epsilon"` // null where it says nothing
	Note    string   `json:"note,omitempty"`
}

// publishedJSON is what the paper says of its own setting.
type publishedJSON struct {
	Name    string         `json:"name"`
	Claimed account.Budget `json:"claimed"` // its Theorem 8
	Basic   account.Budget `json:"basic"`   // the sum over all rounds
	Reason  string         `json:"reason"`
}

func accountCommand() *cobra.Command {
	var c composition
	var deltas, epsilons []float64
	var site string
	var as form
	cmd := &cobra.Command{
		Use:   "account [PLAN]",
		Short: "Count what noised sums cost together",
		Long:  "Count the tight ε of noised sums, given or those of a plan, beside what weaker theorems say.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := c.checkPlan(cmd, len(a) > 0); err != nil {
				return err
			}
			if err := c.check(cmd); err != nil {
				return err
			}
			var cost costJSON
			var err error
			switch {
			case len(a) > 0:
				var at float64
				if at, err = cost.ofPlan(a[0], site); err == nil && !cmd.Flags().Changed("delta") {
					deltas = []float64{at}
				}
			case c.published != "":
				if !cmd.Flags().Changed("delta") {
					deltas = []float64{c.each.Delta, 1e-5}
				}
				err = cost.ofRounds(&c)
			default:
				cost.Mechanisms, cost.Adjacency, err = c.mechanisms(true)
			}
			if err == nil {
				err = cost.count(deltas, epsilons)
			}
			if err != nil {
				return err
			}
			return as.object(cmd, &cost, cost.print)
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.Float64Var(&c.each.Epsilon, "release-epsilon", 10, "with --published: ε of each release")
	f.Float64SliceVar(&deltas, "delta", []float64{1e-5}, "δ to count at; with a plan its own")
	f.StringVar(&site, "site", "", "with a plan: the site to count for (default its first)")
	f.Float64SliceVar(&epsilons, "epsilon", nil, "also count the tight δ at these ε")
	return as.flag(cmd, "print everything as one JSON object")
}

// ofRounds sets what the paper releases, and what it says of it.
func (cost *costJSON) ofRounds(c *composition) (err error) {
	if cost.Mechanisms, err = account.Rounds(c.views, c.rounds, c.each); err != nil {
		return err
	}
	cost.Adjacency = account.ReplaceOne
	gaussian := account.Releases{Each: c.each, Count: cost.Mechanisms[0].Count}
	laplace := account.Releases{Each: account.Budget{Epsilon: c.each.Epsilon}, Count: cost.Mechanisms[1].Count}
	basic, err := account.Basic([]account.Releases{gaussian, laplace})
	if err != nil {
		return err
	}
	k := float64(c.views)
	cost.Published = &publishedJSON{
		Name:    c.published,
		Claimed: account.Budget{Epsilon: 3 * k * c.each.Epsilon, Delta: 2 * k * c.each.Delta},
		Basic:   basic,
		Reason: fmt.Sprintf("Theorem 8 adds up the three releases of each view, once. That is what one round gives "+
			"away, and\nthe coordinator sees %d: the losses of all rounds add up.", c.rounds),
	}
	return nil
}

func (cost *costJSON) count(deltas, epsilons []float64) error {
	for _, delta := range deltas {
		bounds, err := account.Bounds(cost.Mechanisms, cost.Adjacency, delta)
		if err != nil {
			return err
		}
		for _, b := range bounds {
			cost.Bounds = append(cost.Bounds, boundJSON{b.Name, delta, orNull(b.Epsilon), b.Note})
		}
	}
	for _, epsilon := range epsilons {
		delta, err := account.Delta(cost.Mechanisms, cost.Adjacency, epsilon)
		if err != nil {
			return err
		}
		cost.Deltas = append(cost.Deltas, account.Budget{Epsilon: epsilon, Delta: delta})
	}
	return nil
}

func (cost *costJSON) print(w io.Writer) error {
	if cost.Published != nil {
		fmt.Fprintln(w, "Algorithm 2 of the Fed-mv-PPCA paper, as published; a record is a whole centre")
	}
	if cost.Plan != nil {
		cost.Plan.print(w)
	}
	if err := printComposition(w, cost.Mechanisms, cost.Adjacency); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "composition\tδ\tε\t")
	for _, b := range cost.Bounds {
		epsilon := math.Inf(1)
		if b.Epsilon != nil {
			epsilon = *b.Epsilon
		}
		fmt.Fprintf(t, "%s\t%g\t%s\t%s\n", b.Name, b.Delta, shortFloat(epsilon), b.Note)
	}
	for _, b := range cost.Deltas {
		fmt.Fprintf(t, "tight\t%.4g\t%g\tas asked for\n", b.Delta, b.Epsilon)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p := cost.Published
	if p == nil {
		return nil
	}
	promise := ""
	if p.Basic.Delta >= 1 {
		promise = ", where a δ of 1 or more promises nothing at all"
	}
	_, err := fmt.Fprintf(w, "\nThe paper says ε = %g, δ = %g (3Kε, 2Kδ).\n%s\n"+
		"The same sum over all rounds is ε = %s, δ = %g%s.\n"+
		"The tight value is the least ε that is true of these releases. It leaves out that the first round\n"+
		"of the published experiments is not protected at all: it has no prior to clip by.\n",
		p.Claimed.Epsilon, p.Claimed.Delta, p.Reason, shortFloat(p.Basic.Epsilon), p.Basic.Delta, promise)
	return err
}

// planJSON is what a plan promises, and the site that is counted for.
type planJSON struct {
	Site string       `json:"site"`
	Cost *ledger.Cost `json:"cost"`
	Rows []rowsJSON   `json:"rows,omitempty"` // where every row counts as another person
}

// rowsJSON is what is promised to a person who has so many rows.
type rowsJSON struct {
	Rows    int64   `json:"rows"`
	Epsilon float64 `json:"epsilon"`
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
		return &usageError{fmt.Errorf("%s beside a plan\n  hint: the plan says what is released, and under which "+
			"adjacency", strings.Join(foreign, ", "))}
	case !plan && len(described) == 0:
		return &usageError{errors.New("there is nothing to count\n  hint: a plan, or at least one of --gaussian, " +
			"--laplace, --published")}
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
		return 0, problem.Problem{File: path, Where: "privacy",
			What: "the plan has no differential privacy, so there is nothing to count"}
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
		return 0, problem.Problem{File: path, Where: "sites", What: fmt.Sprintf("%q is not a site of the plan", site),
			Hint: problem.DidYouMean(site, plan.Sites, "one of "+problem.Names(plan.Sites))}
	}
	s := total.Sites[i]
	if len(s.Mechanisms) == 0 {
		return 0, problem.Problem{File: path, Where: "site " + site,
			What: fmt.Sprintf("no noised sums that would protect a %s", total.Unit)}
	}
	cost.Mechanisms, cost.Adjacency, cost.Plan = s.Mechanisms, total.Adjacency, &planJSON{Site: site, Cost: total}
	for _, n := range []int64{2, 5} {
		if epsilon, ok := total.ForRows(n); ok && total.Worth() != nil {
			cost.Plan.Rows = append(cost.Plan.Rows, rowsJSON{n, epsilon})
		}
	}
	return s.Losses[0].Delta, nil
}

func (p *planJSON) print(w io.Writer) {
	for _, l := range p.Cost.Lines() {
		fmt.Fprintln(w, l)
	}
	for _, r := range p.Rows {
		fmt.Fprintf(w, "for a person with %d rows it would be ε %s, at the same δ\n", r.Rows, shortFloat(r.Epsilon))
	}
	fmt.Fprintf(w, "\nsite %s, as it protects one %s:\n", p.Site, p.Cost.Unit)
}
