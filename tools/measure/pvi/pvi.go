// Package pvi measures regression by partitioned variational inference:
// what intervals hold on simulated studies, and the private default beside its rivals. It
// prints Markdown tables.
//
//	go run ./tools/measure pvi -coverage [-seeds 200] [-epsilon 1,3,8] [-delta 1e-5]
//	go run ./tools/measure pvi -rivals [-quick] [-seeds 5] [-epsilon 0.25,0.5,1,3,8] [-delta 1e-5] [-sets DIR] [-cases …]
//	go run ./tools/measure pvi -reference tools/reference [-sets DIR]
//
// The first form tells how often intervals hold the truth, for every outcome, and for the
// private default. The second sets the private default beside today's rivals on simulations, on the census data
// and, from DIR, on heart-sites and physionet2012. The last compares studies without privacy
// with a second implementation.
//
// Noise comes from the operating system, so that private rows repeat within their
// deviation only.
package pvi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"

	"parley/privacy/account"
	"parley/tools/measure/flags"
)

// config is what the flags say.
type config struct {
	measure func(context.Context, *config) error
	seeds   int
	totals  []account.Budget
	schemes []string // of the census data, beside rivals
	quick   bool     // of rivals a few cases
	folder  string   // of recorded data
	only    []string // of rivals' cases; all if empty
	second  string   // the directory of the second implementation
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
	return c.measure(ctx, c)
}

func parse(set *flag.FlagSet, args []string) (*config, error) {
	c := &config{}
	set.IntVar(&c.seeds, "seeds", 5, "runs of each row that draws anything, at least 2")
	schemes := set.String("schemes", "ABCD", "for -rivals: distributions of the census data over sites")
	epsilons := set.String("epsilon", "1,3,8", "totals ε of every site")
	deltas := set.String("delta", "1e-5", "δ of these totals")
	rivals := set.Bool("rivals", false, "measure the private default beside its rivals")
	coverage := set.Bool("coverage", false, "measure what intervals hold")
	set.BoolVar(&c.quick, "quick", false, "of -rivals a few cases only")
	set.StringVar(&c.folder, "sets", "", "for -rivals and -reference: the directory of heart-sites and physionet2012")
	set.StringVar(&c.second, "reference", "", "compare studies with the second implementation in this directory")
	cases := set.String("cases", "", "for -rivals: names of cases, with semicolons; all if empty")
	if err := flags.Values(set, args); err != nil {
		return nil, err
	}
	if *cases != "" {
		c.only = strings.Split(*cases, ";")
	}
	es, err1 := flags.Numbers(*epsilons)
	ds, err2 := flags.Numbers(*deltas)
	if err1 != nil || err2 != nil || set.NArg() > 0 || c.seeds < 2 {
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
	asked := 0
	for _, m := range []struct {
		is  bool
		run func(context.Context, *config) error
	}{{*rivals, runRivals}, {*coverage, runCoverage}, {c.second != "", references}} {
		if m.is {
			c.measure = m.run
			asked++
		}
	}
	if asked != 1 {
		return nil, fmt.Errorf("want one of -rivals, -coverage and -reference")
	}
	return c, nil
}
