package main

import (
	"context"

	"github.com/spf13/cobra"

	"parley/method/fitted"
	"parley/report/results"
)

func compareCommand() *cobra.Command {
	var on string
	var page accountPage
	var as form
	cmd := &cobra.Command{
		Use:   "compare MODEL MODEL",
		Short: "Compare two fits: factors matched, or effects side by side",
		Long: "Compare says how alike two fits of one method are on what both have. Of factor models: factors\n" +
			"matched one to one, the angles between the spaces that they span, and each view by itself; and\n" +
			"which factors may be compared one by one at all. Of models that predict an outcome: effects side\n" +
			"by side with their intervals and, with --data, how far apart the predictions are. Each MODEL is\n" +
			"a run's results directory, its model folder, or its model.json.",
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := page.check(); err != nil {
				return err
			}
			account, err := compare(cmd.Context(), a[0], a[1], on)
			if err != nil {
				return err
			}
			if err := page.write("Two fits compared", account); err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}
	cmd.Flags().StringVar(&on, "data", "", "also compare what both predict for the subjects of this data set")
	page.flag(cmd)
	as.flag(cmd, "print everything as JSON")
	return cmd
}

// compare holds two models against each other, on data unless there are none.
func compare(ctx context.Context, a, b, on string) (*fitted.Account, error) {
	if on == "" {
		first, err := openModel[fitted.Comparer](a, "compared")
		if err != nil {
			return nil, err
		}
		second, err := results.ReadModel(methods, b)
		if err != nil {
			return nil, err
		}
		return first.Compare(second)
	}
	first, data, notes, err := openUse[fitted.DataComparer](ctx, []string{a, on}, "compared on data")
	if err != nil {
		return nil, err
	}
	second, err := results.ReadModel(methods, b)
	if err != nil {
		return nil, err
	}
	account, err := first.CompareOn(ctx, second, data)
	if err != nil {
		return nil, err
	}
	account.Notes = append(notes, account.Notes...)
	return account, nil
}
