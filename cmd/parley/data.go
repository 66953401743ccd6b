package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/study"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "Look at data sets and split them"}
	cmd.AddCommand(dataDescribeCommand(), dataSplitCommand())
	return cmd
}

func dataDescribeCommand() *cobra.Command {
	var plan string
	var asJSON, features bool
	cmd := &cobra.Command{
		Use:   "describe DATA",
		Short: "Check a data set and draw who has which views",
		Long: "Describe reads a data set once: a folder with subjects.csv and one view_NAME.csv for\n" +
			"each view, or a long table with the columns id, view, feature and value. It lists\n" +
			"everything wrong with the files, or draws who has which views. The numbers are\n" +
			"exact and are not for release.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			dir, err := openData(cmd.Context(), a[0], plan)
			if err != nil {
				return err
			}
			summary, err := dataset.Describe(cmd.Context(), dir)
			if err != nil {
				return err
			}
			warnings := append(dir.Warnings(), summary.Warnings()...)
			out := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(struct {
					*dataset.Summary
					Warnings []string `json:"warnings"`
				}{summary, warnings.Lines()})
			}
			if err := summary.Print(out, features); err != nil {
				return err
			}
			for i, w := range warnings.Lines() {
				if i == 0 {
					fmt.Fprintln(out)
				}
				fmt.Fprintln(out, "warning:", w)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", planUsage)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	cmd.Flags().BoolVar(&features, "features", false, "list the features with their ranges")
	cmd.MarkFlagsMutuallyExclusive("json", "features")
	return cmd
}

const planUsage = "plan with the views and columns to read; without one, all numbers that are there"

// openData opens a data set as a plan describes it or, without one, by its own
// headers, which say nothing of categories.
func openData(ctx context.Context, path, plan string) (*dataset.Dir, error) {
	var o dataset.Options
	if plan != "" {
		p, err := study.Load(plan, methods)
		if err != nil {
			return nil, err
		}
		schema := p.Schema()
		o.Schema = &schema
	}
	return dataset.Open(ctx, path, o)
}
