// Package pvi measures partitioned variational inference on the census data of the
// income example, for the four ways to divide them among ten sites: exact central
// inference, partitioned inference and the baseline Global VI without privacy, the
// published private settings and the default, through the real engine. It prints
// Markdown tables.
//
//	go run ./tools/measure pvi [-data DIR] [-schemes ABCD] [-seeds 5] [-epsilon 0.5,1] [-delta 1e-4,1e-5] [-methods …]
//	go run ./tools/measure pvi -example [-seeds 5]
//	go run ./tools/measure pvi -intercepts 200
//	go run ./tools/measure pvi -rivals [-quick] [-seeds 5] [-epsilon 0.25,0.5,1,3,8] [-delta 1e-5] [-sets DIR] [-cases …]
//	go run ./tools/measure pvi -coverage [-seeds 200] [-epsilon 1,3,8] [-delta 1e-5]
//	go run ./tools/measure pvi -reference tools/reference [-sets DIR]
//
// The second form runs the example's own plan, with its privacy, without it and at other
// totals: how well it predicts, and what the intervals of its weights hold. The third
// draws studies whose sites have random intercepts, and tells how often intervals hold the
// truth.
//
// The third measures the private default beside today's rivals on simulations, on the
// census data and, from DIR, on heart-sites and physionet2012; the last but one what its
// intervals hold. The last compares studies without privacy with a second implementation.
//
// In the first, numbers are standardised over all rows, test rows included, as the published
// experiments do: a plan for real data takes publicly known constants. Noise comes
// from the operating system, so that private rows repeat within their deviation
// only.
package pvi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"

	"parley/tools/measure/flags"

	"parley/internal/cputime"
	"parley/privacy/account"
)

// config is what the flags say.
type config struct {
	plan    string
	data    string
	schemes []string
	seeds   int
	totals  []account.Budget
	methods []string
	alone   bool // the example itself, in place of the tables
	random  int  // simulated studies with random intercepts, in place of all else
	rival   bool // the private default beside its rivals
	covers  bool // what the private default's intervals hold
	quick   bool // of rivals a few cases
	sets    string
	// reference is the directory of the second implementation, to compare with it; or ""
	reference string
	only      []string // of rivals' cases; all if empty
}

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("pvi", flag.ContinueOnError)
	c, err := parse(set, args)
	if errors.Is(err, flag.ErrHelp) || errors.Is(err, flags.ErrUsage) {
		return err
	}
	if err != nil {
		log.Print(err)
		return flags.Refuse(set)
	}
	return run(ctx, c)
}

func parse(set *flag.FlagSet, args []string) (*config, error) {
	c := &config{}
	set.StringVar(&c.plan, "plan", "examples/income/plan.yaml", "the example's plan")
	set.StringVar(&c.data, "data", "examples/income/data", "the example's data")
	set.IntVar(&c.seeds, "seeds", 5, "runs of each row that draws anything, at least 2")
	schemes := set.String("schemes", "ABCD", "distributions over sites")
	epsilons := set.String("epsilon", "0.5,1", "totals ε of every site")
	deltas := set.String("delta", "1e-4,1e-5", "δ of these totals")
	names := set.String("methods", strings.Join(methodNames(false), ","), "which methods to measure, of "+strings.Join(methodNames(true), ","))
	set.BoolVar(&c.alone, "example", false, "run the example itself, and tell what its predictions and its intervals are worth")
	set.IntVar(&c.random, "intercepts", 0, "so many simulated studies of each kind with random intercepts: how often intervals of 90 % hold the truth")
	set.BoolVar(&c.rival, "rivals", false, "measure the private default beside its rivals")
	set.BoolVar(&c.covers, "coverage", false, "measure what the intervals of the private default hold")
	set.BoolVar(&c.quick, "quick", false, "of -rivals a few cases only")
	set.StringVar(&c.reference, "reference", "", "compare studies with the second implementation in this directory")
	set.StringVar(&c.sets, "sets", "", "for -rivals and -reference: the directory of heart-sites and physionet2012")
	cases := set.String("cases", "", "for -rivals: names of cases, with semicolons; all if empty")
	if err := flags.Values(set, args); err != nil {
		return nil, err
	}
	if *cases != "" {
		c.only = strings.Split(*cases, ";")
	}
	es, err1 := flags.Numbers(*epsilons)
	ds, err2 := flags.Numbers(*deltas)
	if err1 != nil || err2 != nil || set.NArg() > 0 || c.seeds < 2 || c.random < 0 {
		return nil, fmt.Errorf("flags out of range")
	}
	for _, d := range ds {
		for _, e := range es {
			b := account.Budget{Epsilon: e, Delta: d}
			if err := b.Check(); err != nil {
				return nil, err
			}
			c.totals = append(c.totals, b)
		}
	}
	for _, s := range *schemes {
		if !strings.ContainsRune("ABCD", s) {
			return nil, fmt.Errorf("no distribution %q", s)
		}
		c.schemes = append(c.schemes, string(s))
	}
	for name := range strings.SplitSeq(*names, ",") {
		if !slices.Contains(methodNames(true), name) {
			return nil, fmt.Errorf("no method %q", name)
		}
		c.methods = append(c.methods, name)
	}
	return c, nil
}

func run(ctx context.Context, c *config) error {
	if c.random > 0 {
		return intercepts(ctx, c.random)
	}
	if c.alone {
		return c.example(ctx)
	}
	if c.reference != "" {
		return c.references(ctx)
	}
	if c.rival {
		return c.rivals(ctx)
	}
	if c.covers {
		return c.coverage(ctx)
	}
	census, err := open(ctx, c)
	if err != nil {
		return err
	}
	exact, err := census.exact()
	if err != nil {
		return err
	}
	fmt.Printf("Exact central inference: %s.\n\n", exact)
	if err := c.table(ctx, census, "Without privacy", nil); err != nil {
		return err
	}
	for _, b := range c.totals {
		if err := c.table(ctx, census, fmt.Sprintf("ε = %v, δ = %v", b.Epsilon, b.Delta), &b); err != nil {
			return err
		}
	}
	return nil
}

// table prints one row for each method that was asked for: those with privacy, or,
// without a total, those without.
func (c *config) table(ctx context.Context, census *census, title string, total *account.Budget) error {
	wanted := slices.DeleteFunc(slices.Clone(specs), func(s spec) bool {
		return !slices.Contains(c.methods, s.name) || s.private != (total != nil)
	})
	if len(wanted) > 0 {
		c.header(title)
	}
	for _, s := range wanted {
		if err := c.row(ctx, census, s, total); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) header(title string) {
	fmt.Printf("\n### %s\n\n| method | true ε | %s | CPU s |\n|---|---|%s---|\n", title, strings.Join(c.schemes, " | "), strings.Repeat("---|", len(c.schemes)))
}

// row prints what a method reaches on every distribution.
func (c *config) row(ctx context.Context, census *census, s spec, total *account.Budget) error {
	seeds := c.seeds
	if !s.draws {
		seeds = 1
	}
	var cells []string
	var spent []float64
	start, runs := cputime.Used(), 0
	for _, scheme := range c.schemes {
		var all scores
		for seed := range seeds {
			out, err := census.study(ctx, s, scheme, total, uint64(seed+1))
			if err != nil {
				return fmt.Errorf("%s, %s, seed %d: %w", s.name, scheme, seed+1, err)
			}
			all = append(all, out.score)
			spent = append(spent, out.epsilon)
			runs++
		}
		cells = append(cells, all.String())
	}
	cost := "∞"
	if total != nil {
		cost = fmt.Sprintf("%.3f", slices.Max(spent))
	}
	fmt.Printf("| %s | %s | %s | %.1f |\n", s.name, cost, strings.Join(cells, " | "), (cputime.Used()-start).Seconds()/float64(runs))
	return nil
}
