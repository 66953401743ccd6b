package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/judge/attack"
	"parley/study"
)

func attackCommand() *cobra.Command {
	c := attack.Config{}
	var as form
	cmd := &cobra.Command{
		Use:   "attack [METHOD [PLAN]]",
		Short: "Attack simulated studies of a method, and print what is recovered",
		Long: "Runs whole studies in this process, and turns what a coordinator sees of them against the rows:\n" +
			"by every attack that the method knows of itself, with and without privacy. Without PLAN the rows\n" +
			"are made on the spot; with one they are those of its simulated sites. Rows are only read, and\n" +
			"counts and errors printed. Without METHOD it lists what can be attacked.\n\n" +
			"Exits with 0 if everything went as the method's documentation says: demonstrations succeed, and\n" +
			"private releases hide what they claim to hide. Exits with 1 if an attack did worse or better.",
		Args: args(cobra.RangeArgs(0, 2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			targets := attack.Targets(methods)
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
					bound, err := local.Bind(cmd.Context(), c.Plan)
					if err != nil {
						return err
					}
					c.Data = bound.Data
				}
			}
			show := newProgress(cmd)
			defer show.close()
			c.Tell = func(what string) { show.step("attacking %s", what) }
			report, err := attack.Run(cmd.Context(), c)
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
	f.Uint64Var(&c.Seed, "seed", 1, "of the rows that are made and of all that is drawn but noise")
	f.Float64SliceVar(&c.Epsilons, "epsilon", []float64{1, 5}, "totals of private studies, beside that of PLAN")
	f.IntVar(&c.Releases, "releases", 4000, "private releases of each of two neighbouring data sets that are to be told apart")
	as.flag(cmd, "print every attack and what came of it as JSON; without METHOD the list")
	return cmd
}
