package main

import (
	"github.com/spf13/cobra"

	"parley/method"
)

func compareCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare MODEL MODEL",
		Short: "Compare two fits, with their factors matched",
		Long: "Compare says how alike two fits are on the features that both have: factors matched one to\n" +
			"one, the angles between the spaces that they span, and each view by itself; and which\n" +
			"factors may be compared one by one at all. Each MODEL is a run's results directory, its\n" +
			"model folder, or its model.json.",
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			first, err := openModel[method.Comparer](a[0], "compared")
			if err != nil {
				return err
			}
			second, err := methods.ReadModel(a[1])
			if err != nil {
				return err
			}
			account, err := first.Compare(second)
			if err != nil {
				return err
			}
			return printAccount(cmd, account, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	return cmd
}
