package main

import (
	"context"

	"github.com/spf13/cobra"

	"parley/method"
	"parley/report"
)

func compareCommand() *cobra.Command {
	var on string
	var page accountPage
	var as form
	cmd := &cobra.Command{
		Use:   "compare MODEL MODEL",
		Short: "Compare two fits",
		Long:  "Show how alike two fits of one method are: factors matched, or effects side by side.",
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
	cmd.Flags().StringVar(&on, "data", "", "also compare their predictions for the subjects of this data set")
	page.flag(cmd)
	return as.flag(cmd, "print everything as JSON")
}

// compare holds two models against each other, on data unless there are none.
func compare(ctx context.Context, a, b, on string) (*method.Account, error) {
	if on == "" {
		first, err := openModel[method.Comparer](a, "compared")
		if err != nil {
			return nil, err
		}
		second, err := report.ReadModel(methods, b)
		if err != nil {
			return nil, err
		}
		return first.Compare(second)
	}
	first, data, notes, err := openUse[method.DataComparer](ctx, []string{a, on}, "compared on data", "")
	if err != nil {
		return nil, err
	}
	second, err := report.ReadModel(methods, b)
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
