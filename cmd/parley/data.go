package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/evaluate"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "Look at data sets and split them"}
	cmd.AddCommand(dataDescribeCommand(), dataSplitCommand())
	return cmd
}

func dataDescribeCommand() *cobra.Command {
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
			dir, err := dataset.Open(cmd.Context(), a[0], dataset.Options{})
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	cmd.Flags().BoolVar(&features, "features", false, "list the features with their ranges")
	cmd.MarkFlagsMutuallyExclusive("json", "features")
	return cmd
}

func dataSplitCommand() *cobra.Command {
	var scenario, by, out string
	var sites int
	var seed uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "split DATA --scenario NAME --out DIR",
		Short: "Split a data set into one folder for each site of a simulation",
		Long: "Split spreads the subjects of a data set over sites: iid evenly; g with groups spread\n" +
			"unevenly; k with views that some sites lack; gk with both; column by a column of\n" +
			"subjects.csv, with one site for each of its values.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			sc, err := evaluate.ParseScenario(scenario)
			if err != nil {
				return &usageError{err}
			}
			if sc == evaluate.Column && (by == "" || cmd.Flags().Changed("sites")) {
				return &usageError{errors.New("scenario column: give --by, and no --sites: there is one site for each value")}
			}
			if sites < 1 {
				return &usageError{fmt.Errorf("--sites %d: there must be at least one", sites)}
			}
			ctx := cmd.Context()
			dir, err := dataset.Open(ctx, a[0], dataset.Options{})
			if err != nil {
				return err
			}
			ids, groups, err := dataset.Labels(ctx, dir, by)
			if err != nil {
				return err
			}
			names := evaluate.SiteNames(sites)
			if sc == evaluate.Column {
				names = slices.Compact(slices.Sorted(slices.Values(groups)))
			}
			subjects := make([]evaluate.Subject, len(ids))
			for i, id := range ids {
				subjects[i] = evaluate.Subject{ID: id, Group: groups[i]}
			}
			placed, err := evaluate.Assign(subjects, names, sc, seed)
			if err != nil {
				return err
			}
			lacking, err := evaluate.Lacking(sc, len(names), len(dir.Schema().Views))
			if err != nil {
				return err
			}
			return writeSites(cmd, asJSON, dir, out, names, placed, lacking)
		},
	}
	f := cmd.Flags()
	f.StringVar(&scenario, "scenario", "", "how to split: iid, g, k, gk or column")
	f.IntVar(&sites, "sites", 3, "number of sites")
	f.StringVar(&by, "by", "", "column of subjects.csv that holds the groups (g, gk) or the sites (column);\nfor iid and k its values are spread evenly")
	f.Uint64Var(&seed, "seed", 1, "seed of the random assignment")
	f.StringVar(&out, "out", "", "folder to write the sites' folders to")
	f.BoolVar(&asJSON, "json", false, "print the folders with their subjects and the views they lack as JSON")
	cmd.MarkFlagRequired("scenario")
	cmd.MarkFlagRequired("out")
	return cmd
}

// writeSites writes one folder for each site and says what is in them.
func writeSites(cmd *cobra.Command, asJSON bool, src dataset.Source, out string, names []string, placed []evaluate.Placement, lacking [][]int) error {
	dirs := make([]string, len(names))
	for i, name := range names {
		if name == "" || !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("site %q: cannot be the name of a folder", name)
		}
		dirs[i] = filepath.Join(out, name)
	}
	site := make(map[string]int, len(placed))
	count := make([]int, len(names))
	for _, p := range placed {
		site[p.ID] = p.Site
		count[p.Site]++
	}
	at := func(r *dataset.Row) (int, error) { return site[r.ID], nil }
	if err := dataset.Split(cmd.Context(), src, dirs, at, lacking); err != nil {
		return err
	}
	made := make([]siteFolder, len(dirs))
	for i, dir := range dirs {
		made[i] = siteFolder{Folder: dir, Subjects: count[i], Lacks: []string{}}
		for _, k := range lacking[i] {
			made[i].Lacks = append(made[i].Lacks, src.Schema().Views[k].Name)
		}
	}
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(made)
	}
	for _, m := range made {
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d subjects", m.Folder, m.Subjects)
		for _, view := range m.Lacks {
			fmt.Fprintf(cmd.OutOrStdout(), ", without %s", view)
		}
		fmt.Fprintln(cmd.OutOrStdout())
	}
	return nil
}

// siteFolder is a site that was split off.
type siteFolder struct {
	Folder   string   `json:"folder"`
	Subjects int      `json:"subjects"`
	Lacks    []string `json:"lacks"` // views
}
