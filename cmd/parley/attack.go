package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/judge"
	"parley/study"
)

func attackCommand() *cobra.Command {
	c := judge.AttackConfig{}
	var as form
	cmd := &cobra.Command{
		Use:   "attack [METHOD [PLAN]]",
		Short: "Attack simulated studies of a method",
		Long: "Attack simulated studies of a method, and print what is recovered. The rows are made up, or those\n" +
			"of the plan's simulated sites. Without METHOD it lists what can be attacked.",
		RunE: func(cmd *cobra.Command, a []string) error {
			targets := judge.AttackTargets(methods)
			if len(a) == 0 {
				return as.line(cmd, targets, func(w io.Writer) error {
					for _, name := range targets {
						fmt.Fprintln(w, "parley attack", name)
					}
					return nil
				})
			}
			m, ok := methods.Lookup(a[0])
			if !ok {
				return &usageError{fmt.Errorf("method %q is not known\n  hint: what can be attacked is %s", a[0], strings.Join(targets, ", "))}
			}
			c.Method = m
			if len(a) == 2 {
				var err error
				if c.Plan, err = study.Load(a[1], methods); err != nil {
					return err
				}
				if c.Plan.Method.Name == m.Name() { // else it is refused before anybody reads data
					bound, err := local.Bind(cmd.Context(), c.Plan, nil)
					if err != nil {
						return err
					}
					c.Data = bound.Data
				}
			}
			show := newProgress(cmd)
			defer show.close()
			c.Tell = func(what string) { show.step("attacking %s", what) }
			report, err := judge.Attack(cmd.Context(), c)
			if err != nil {
				return err
			}
			show.close()
			err = as.object(cmd, report, report.Print)
			if err == nil && !report.OK {
				err = errors.New("not everything went as the method's documentation says")
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&c.Seed, "seed", 1, "seed of all that is drawn except noise")
	f.Float64SliceVar(&c.Epsilons, "epsilon", []float64{1, 5}, "totals of private studies, beside the plan's own")
	f.IntVar(&c.Releases, "releases", 4000, "private releases of each of two neighbouring data sets")
	return as.flag(cmd, "print every attack, or the list, as JSON")
}
