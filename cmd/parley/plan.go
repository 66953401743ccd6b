package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/privacy/ledger"
	"parley/study"
)

func planCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "Check and show plans"}
	cmd.AddCommand(planCheckCommand(), planShowCommand())
	return cmd
}

// loadPlan reads a plan, and says what it costs.
func loadPlan(path string) (*study.Plan, *ledger.Cost, error) {
	plan, err := study.Load(path, methods)
	if err != nil {
		return nil, nil, err
	}
	cost, err := methods.Cost(plan)
	return plan, cost, err
}

func planCheckCommand() *cobra.Command {
	var withData bool
	var as form
	cmd := &cobra.Command{
		Use:   "check PLAN",
		Short: "Check a plan, say what it promises and costs, and with --data check the data that it is bound to",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			plan, cost, err := loadPlan(a[0])
			if err != nil {
				return err
			}
			digest, err := plan.Digest()
			if err != nil {
				return err
			}
			notes, err := methods.Notes(plan)
			if err != nil {
				return err
			}
			if withData {
				binding, err := local.Bind(cmd.Context(), plan)
				if err != nil {
					return err
				}
				said, err := methods.CheckData(cmd.Context(), plan, binding.Data)
				if err != nil {
					return err
				}
				notes = append(append(notes, binding.Notes...), said...)
			}
			lines := notes.Lines()
			checked := struct {
				Name    string       `json:"name"`
				Digest  string       `json:"digest"`
				Privacy *ledger.Cost `json:"privacy"`
				Notes   []string     `json:"notes"`
			}{plan.Name, digest.String(), cost, lines}
			return as.line(cmd, checked, func(w io.Writer) error {
				printLines(w, "note:", lines)
				fmt.Fprintf(w, "plan %s is in order; digest %s\n", plan.Name, digest)
				printLines(w, "privacy:", cost.Lines())
				return nil
			})
		},
	}
	as.flag(cmd, "print the digest and the notes as JSON")
	cmd.Flags().BoolVar(&withData, "data", false, "also open the data of the local section and compare every site's columns with the plan")
	return cmd
}

func planShowCommand() *cobra.Command {
	var as form
	cmd := &cobra.Command{
		Use:   "show PLAN",
		Short: "Print the effective plan: every default filled in, and the digest",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			plan, cost, err := loadPlan(a[0])
			if err != nil {
				return err
			}
			plan.Local = nil // no part of the plan's identity
			digest, err := plan.Digest()
			if err != nil {
				return err
			}
			shown := struct {
				Digest  string       `json:"digest"`
				Privacy *ledger.Cost `json:"privacy"`
				Plan    *study.Plan  `json:"plan"`
			}{digest.String(), cost, plan}
			return as.line(cmd, shown, func(w io.Writer) error {
				text, err := plan.YAML()
				if err != nil {
					return err
				}
				w.Write(text)
				printLines(w, "# privacy:", cost.Lines())
				return nil
			})
		},
	}
	as.flag(cmd, "print the digest and the plan as JSON")
	return cmd
}
