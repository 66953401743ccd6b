package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"parley/method"
)

func modelAssociateCommand() *cobra.Command {
	var with []string
	var opts method.AssociateOptions
	var as form
	cmd := &cobra.Command{
		Use:   "associate MODEL DATA --with COLUMN",
		Short: "Test each factor against subject columns",
		Long: "Test each factor against subject columns by least squares, with p values adjusted over all tests.\n" +
			"The answer is exact and for the subjects' own site. A study of method regression over all\nsites tells " +
			"the same, whose features are the scores that parley model transform writes.",
		RunE: func(cmd *cobra.Command, a []string) error {
			adjusted := func(c string) bool { return slices.Contains(opts.Adjust, c) }
			if i := slices.IndexFunc(with, adjusted); i >= 0 {
				return &usageError{fmt.Errorf("column %s cannot be tested and adjusted for\n  hint: leave it out of "+
					"--with or of --adjust", with[i])}
			}
			opts.Tested = slices.DeleteFunc(append(slices.Clone(with), opts.Categories...), adjusted)
			if len(opts.Tested) == 0 {
				return &usageError{fmt.Errorf("name a column of subjects.csv\n  hint: --with age, or --category group")}
			}
			var columns []string
			for _, c := range slices.Concat(opts.Tested, opts.Adjust) {
				if !slices.Contains(columns, c) {
					columns = append(columns, c)
				}
			}
			m, data, notes, err := openUse[method.Associater](cmd.Context(), a, "associated with columns",
				"", columns...)
			if err != nil {
				return err
			}
			account, err := m.Associate(cmd.Context(), data, opts)
			if err != nil {
				return err
			}
			account.Notes = append(notes, account.Notes...)
			return printAccount(cmd, account, as)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&with, "with", nil, "columns to test")
	f.StringSliceVar(&opts.Categories, "category", nil, "columns of codes to take as categories")
	f.StringSliceVar(&opts.Adjust, "adjust", nil, "columns to adjust every test for")
	f.StringVar(&opts.Site, "site", "", "site of the fit that the subjects are of")
	return as.flag(cmd, "print everything as JSON")
}
