package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "Look at data sets and split them"}
	cmd.AddCommand(dataDescribeCommand(), dataMapCommand(), dataSplitCommand())
	return cmd
}

func dataDescribeCommand() *cobra.Command {
	var plan string
	var features bool
	var as form
	cmd := &cobra.Command{
		Use:   "describe DATA",
		Short: "Check a data set, and count its subjects, values and views",
		Long: "Check a data set, and count its subjects, values and views. DATA is a folder or a long table.\n" +
			"Without --plan, a column that holds anything but numbers is left out with a warning.\n" +
			"With it, such a column is a category of the plan or an error.\n" +
			"If the folder has a mapping.yaml, it comes first what that makes of which cells.\n" +
			"The numbers are exact, so do not release them.",
		RunE: func(cmd *cobra.Command, a []string) error {
			dir, err := openData(cmd.Context(), a[0], plan)
			if err != nil {
				return err
			}
			warnings := dir.Warnings()
			summary, err := dataset.Describe(cmd.Context(), dir)
			if cells := (problem.List)(nil); plan == "" && errors.As(err, &cells) {
				numbers, left, none := dir.Numbers(cmd.Context())
				if none != nil && left != nil {
					return none
				} else if none != nil {
					return err
				}
				if summary, none = dataset.Describe(cmd.Context(), numbers); none != nil {
					return err
				}
				warnings = append(warnings, left...)
			} else if err != nil {
				return err
			}
			warnings = append(warnings, summary.Warnings()...)
			changed, err := dir.BeforeAndAfter(cmd.Context())
			if err != nil {
				return err
			}
			described := struct {
				*dataset.Summary
				Warnings []string `json:"warnings"`
				// what the site's mapping makes of which columns, and of their cells
				Mapping []string `json:"mapping,omitempty"`
			}{summary, warnings.Lines(), append(dir.Mapped(), changed...)}
			return as.line(cmd, described, func(w io.Writer) error {
				for _, line := range described.Mapping {
					fmt.Fprintln(w, line)
				}
				if len(described.Mapping) > 0 {
					fmt.Fprintln(w)
				}
				if err := summary.Print(w, features); err != nil {
					return err
				}
				if len(warnings) > 0 {
					fmt.Fprintln(w)
				}
				printLines(w, "warning:", warnings.Lines())
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", planUsage)
	as.flag(cmd, "print everything as JSON")
	cmd.Flags().BoolVar(&features, "features", false, "list every feature with its range")
	cmd.MarkFlagsMutuallyExclusive("json", "features")
	return cmd
}

func dataMapCommand() *cobra.Command {
	var plan string
	out := output{fixed: true}
	cmd := &cobra.Command{
		Use:   "map DATA --plan PLAN --out FILE",
		Short: "Write a first mapping of a site's names and levels to a plan's",
		Long: "Write a first mapping of a site's names and levels to a plan's. DATA is the site's folder.\n" +
			"What differs in spelling alone is mapped, and what is much like it stands in comments.\n" +
			"Read it, change what is wrong, add units, and keep it as mapping.yaml in the folder.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := out.check(dataset.Files(a[0])...); err != nil {
				return err
			}
			p, err := study.Load(plan, methods)
			if err != nil {
				return err
			}
			text, err := dataset.ProposeMapping(cmd.Context(), a[0], p.Schema())
			if err != nil {
				return err
			}
			if text == "" {
				return problem.Problem{File: a[0], What: "needs no mapping, or has one: names and levels are those " +
					"of the plan", Hint: "units are for people: see what parley data describe --features says"}
			}
			return out.write(func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "plan whose names and levels the site should have")
	cmd.Flags().StringVar(&out.path, "out", "", "file to write the mapping to")
	cmd.MarkFlagRequired("plan")
	cmd.MarkFlagRequired("out")
	return cmd
}

const planUsage = "plan that names the views and columns to read (default all numbers)"

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

// splitOptions is what the command line says of a split.
type splitOptions struct {
	scenario, by, scheme string
	rho, kappa           float64
	unused               []string
	sites                int
	seed                 uint64

	kind  evaluate.Scenario // of scenario
	shape evaluate.Scheme   // of scheme, or of rho and kappa
}

func dataSplitCommand() *cobra.Command {
	var o splitOptions
	var plan, out string
	var as form
	cmd := &cobra.Command{
		Use:   "split DATA --scenario NAME --out DIR",
		Short: "Split a data set into a folder for each simulated site",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return &usageError{err}
			}
			if err := o.vacant(out); err != nil {
				return err
			}
			dir, err := openData(cmd.Context(), a[0], plan)
			if err != nil {
				return err
			}
			names, placed, err := o.assign(cmd.Context(), dir)
			if err != nil {
				return err
			}
			lacking, err := evaluate.Lacking(o.kind, len(names), len(dir.Schema().Views))
			if err != nil {
				return err
			}
			return writeSites(cmd, as, dir, out, names, placed, lacking)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", "", "iid, g (groups unevenly), k (some sites lack views), gk, column or "+
		"unequal")
	f.IntVar(&o.sites, "sites", 3, "number of sites")
	f.StringVar(&o.by, "by", "", "subject column with the groups (g, gk), the sites (column) or the two classes "+
		"(unequal)")
	f.StringVar(&o.scheme, "scheme", "", "published rho and kappa: A, B, C or D (unequal)")
	f.Float64Var(&o.rho, "rho", 0, "how far sizes differ, from 0 to below 1 (unequal)")
	f.Float64Var(&o.kappa, "kappa", 0, "how far classes differ, up to 1 (unequal)")
	f.StringSliceVar(&o.unused, "unused", nil, "values of --by whose subjects no site gets (column, unequal)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the random assignment")
	f.StringVar(&plan, "plan", "", planUsage)
	f.StringVar(&out, "out", "", "folder to write the sites' folders to")
	as.flag(cmd, "print the folders with their subjects and the views they lack as JSON")
	cmd.MarkFlagRequired("scenario")
	cmd.MarkFlagRequired("out")
	return cmd
}

// check finds command lines that cannot be meant, before anything is read.
func (o *splitOptions) check(given func(flag string) bool) (err error) {
	if o.kind, err = evaluate.ParseScenario(o.scenario); err != nil {
		return err
	}
	column, unequal := o.kind == evaluate.Column, o.kind == evaluate.Unequal
	differ := given("rho") || given("kappa")
	switch {
	case column && (o.by == "" || given("sites")):
		return errors.New("scenario column: give --by, and no --sites: there is one site for each value")
	case o.sites < 1:
		return fmt.Errorf("--sites %d: there must be at least one", o.sites)
	case !unequal && (differ || given("scheme")):
		return errors.New("--scheme, --rho and --kappa are for --scenario unequal")
	case !unequal && !column && given("unused"):
		return errors.New("--unused is for --scenario column or unequal")
	case !unequal:
		return nil
	case o.by == "":
		return errors.New("scenario unequal: give --by, a column with two values")
	case differ == given("scheme"):
		return errors.New("scenario unequal: give either --scheme, or --rho and --kappa")
	case o.sites%2 != 0:
		return fmt.Errorf("scenario unequal: --sites %d: there must be an even number, half of them small and half "+
			"large", o.sites)
	}
	o.shape, err = evaluate.SchemeOf(o.scheme, o.rho, o.kappa)
	return err
}

// vacant refuses folders that writing would refuse, as far as their names are
// known before anything is read.
func (o *splitOptions) vacant(out string) error {
	if err := checkFolder(out); err != nil || o.kind == evaluate.Column {
		return err
	}
	for _, name := range evaluate.SiteNames(o.sites) {
		if err := dataset.Vacant(filepath.Join(out, name)); err != nil {
			return err
		}
	}
	return nil
}

// assign names the sites and says who is at which.
func (o *splitOptions) assign(ctx context.Context,
	src dataset.Source) (names []string, placed []evaluate.Placement, err error) {
	ids, groups, err := dataset.Labels(ctx, src, o.by)
	if err != nil {
		return nil, nil, err
	}
	for _, level := range o.unused {
		if !slices.Contains(groups, level) {
			return nil, nil, problem.Problem{Where: "--unused", What: fmt.Sprintf("nobody has %q as %s", level, o.by)}
		}
	}
	var subjects []evaluate.Subject
	used := map[string]bool{}
	for i, id := range ids {
		if !slices.Contains(o.unused, groups[i]) {
			subjects = append(subjects, evaluate.Subject{ID: id, Group: groups[i]})
			used[groups[i]] = true
		}
	}
	names = evaluate.SiteNames(o.sites)
	if o.kind == evaluate.Column {
		names = slices.Sorted(maps.Keys(used))
	}
	if o.kind == evaluate.Unequal {
		placed, err = o.shape.Assign(subjects, names, o.seed)
	} else {
		placed, err = evaluate.Assign(subjects, names, o.kind, o.seed)
	}
	return names, placed, err
}

// writeSites writes one folder for each site and says what is in them.
func writeSites(cmd *cobra.Command, as form, src dataset.Source, out string, names []string,
	placed []evaluate.Placement, lacking [][]int) error {
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
	at := func(r *dataset.Row) (int, error) {
		if i, placed := site[r.ID]; placed {
			return i, nil
		}
		return -1, nil
	}
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
	return as.line(cmd, made, func(w io.Writer) error {
		for _, m := range made {
			fmt.Fprintf(w, "%s: %d subjects", m.Folder, m.Subjects)
			for _, view := range m.Lacks {
				fmt.Fprintf(w, ", without %s", view)
			}
			fmt.Fprintln(w)
		}
		return nil
	})
}

// siteFolder is a site that was split off.
type siteFolder struct {
	Folder   string   `json:"folder"`
	Subjects int      `json:"subjects"`
	Lacks    []string `json:"lacks"` // views
}
