package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
	"parley/study/draft"
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

// checkNotes says what to know before a plan is run, with its data or without.
func checkNotes(ctx context.Context, plan *study.Plan, cost *ledger.Cost, withData bool) (problem.List, error) {
	notes, err := methods.Notes(plan)
	if err != nil || !withData {
		return notes, err
	}
	binding, err := local.Bind(ctx, plan, cost)
	if err != nil {
		return nil, err
	}
	said, err := methods.CheckData(ctx, plan, binding.Data)
	return append(append(notes, binding.Notes...), said...), err
}

func planCheckCommand() *cobra.Command {
	var withData bool
	var as form
	cmd := &cobra.Command{
		Use:   "check PLAN",
		Short: "Check a plan, and say what it promises and costs",
		RunE: func(cmd *cobra.Command, a []string) error {
			plan, cost, err := loadPlan(a[0])
			if err != nil {
				return err
			}
			digest, err := plan.Digest()
			if err != nil {
				return err
			}
			notes, err := checkNotes(cmd.Context(), plan, cost, withData)
			if err != nil {
				return err
			}
			lines := notes.Lines()
			checked := struct {
				Name    string       `json:"name"`
				Digest  string       `json:"digest"`
				Privacy *ledger.Cost `json:"privacy"`
				Notes   []string     `json:"notes"`
				Sum     []string     `json:"sum,omitempty"` // who could see a site's own sums, if they are secure
			}{plan.Name, digest.String(), cost, lines, method.SecureLines(plan)}
			return as.line(cmd, checked, func(w io.Writer) error {
				printLines(w, "note:", lines)
				fmt.Fprintf(w, "plan %s is in order; digest %s\n", plan.Name, digest)
				printLines(w, "privacy:", cost.Lines())
				printLines(w, "sum:", checked.Sum)
				return nil
			})
		},
	}
	as.flag(cmd, "print the digest, the cost and the notes as JSON")
	cmd.Flags().BoolVar(&withData, "data", false, "also check the data that the local section names")
	return cmd
}

func planShowCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "show PLAN",
		Short: "Print the plan with every default filled in, and its digest",
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
	}, "print the digest, the cost and the plan as JSON")
}

// proposedMapping is the file in a site's folder that nothing reads until a person has given it the name of a mapping.
const proposedMapping = "mapping.draft.yaml"

// proposeMappings writes, beside the data of sites that name the same differently, what could be their mappings.
func proposeMappings(err error) error {
	differ := (*draft.Differing)(nil)
	if !errors.As(err, &differ) {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(differ.Mappings)) {
		if path, e := writeMapping(folder, differ.Mappings[folder]); e == nil {
			err = fmt.Errorf("%w\n  hint: or read what was written to %s, make it the site's mapping.yaml, and begin "+
				"again:\n  hint: mv %[2]s %s", err, path, filepath.Join(folder, dataset.MappingFile))
		}
	}
	return err
}

// writeMapping writes what could be the mapping of a site beside its data.
func writeMapping(folder, text string) (path string, err error) {
	path = filepath.Join(folder, proposedMapping)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

func initCommand() *cobra.Command {
	var o draft.Options
	var as form
	out := output{fixed: true}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a first plan for a folder of data",
		Long:  "Write a commented plan for the data in DIR: one data set, or a folder for each site.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := out.check(dataset.Files(a[0])...); err != nil {
				return err
			}
			if cmd.Flags().Changed("outcome") {
				split, err := draft.SplitSites(a[0], o.Outcome)
				if err != nil {
					return err
				}
				printLines(cmd.ErrOrStderr(), "note:", split.Lines())
			}
			o.Plan = out.path
			d, err := draft.Look(cmd.Context(), a[0], o)
			if err != nil {
				return proposeMappings(err)
			}
			if !cmd.Flags().Changed("outcome") && !as.json && len(d.Candidates) > 0 && terminal(cmd.InOrStdin()) {
				if o.Outcome, err = askOutcome(cmd, d); err != nil {
					return err
				}
				if d, err = draft.Look(cmd.Context(), a[0], o); err != nil {
					return err
				}
			}
			text := d.YAML(filepath.Dir(out.path))
			if _, err := study.Parse(out.path, text, methods); err != nil {
				return fmt.Errorf("no plan was written, since none can be made of these data as they are:\n%w",
					unwritten(err, a[0]))
			}
			if err := out.write(func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			}); err != nil {
				return err
			}
			plan, cost, err := loadPlan(out.path)
			if err != nil {
				return err
			}
			notes, err := checkNotes(cmd.Context(), plan, cost, true)
			if err != nil {
				return fmt.Errorf("%s was written, and is not in order yet:\n%w", out.path, err)
			}
			// columns that were left out
			notes = slices.DeleteFunc(notes, func(p problem.Problem) bool { return p.Hint == "" && p.File != "" })
			notes = append(slices.Clone(d.Said), notes...)
			made := struct {
				Plan string `json:"plan"`
				*draft.Draft
				Notes []string `json:"notes"`
			}{out.path, d, notes.Lines()}
			return as.line(cmd, made, func(w io.Writer) error { return printDraft(w, d, out.path, notes.Lines()) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&out.path, "out", "plan.yaml", "file to write; it must not exist yet")
	f.StringVar(&o.Name, "name", "", "name of the study (default from the folder)")
	f.StringVar(&o.Outcome, "outcome", "", "subject column to predict; empty for none (default asks on a terminal)")
	f.StringSliceVar(&o.Missing, "missing", nil, "codes for missing values")
	f.StringSliceVar(&o.LeaveOut, "leave-out", nil, "views and columns to leave out of the plan")
	return as.flag(cmd, "print the plan's parts, what was left out and the notes as JSON; ask nothing")
}

// unwritten tells what is wrong with a plan that was not written as what is wrong with
// the data.
func unwritten(err error, data string) error {
	list, ok := err.(problem.List)
	if !ok {
		return err
	}
	for i := range list {
		list[i].File, list[i].Line, list[i].Column = data, 0, 0
	}
	return list
}

// askOutcome asks what is to be predicted.
func askOutcome(cmd *cobra.Command, d *draft.Draft) (string, error) {
	fmt.Fprintln(cmd.ErrOrStderr(), "Do you want to predict one of these columns?")
	for _, c := range d.Candidates {
		what := "a number"
		if len(c.Levels) > 0 {
			what = strings.Join(c.Levels, ", ")
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "  %s (%s)\n", c.Column, what)
	}
	return askLine(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), "Its name, or Enter for none: ")
}

// printDraft says what is in a draft, and what to do with it.
func printDraft(w io.Writer, d *draft.Draft, path string, notes []string) error {
	printLines(w, "note:", notes)
	for _, line := range d.Omitted() {
		fmt.Fprintln(w, line)
	}
	if len(d.Missing) > 0 {
		fmt.Fprintf(w, "taken as missing in every column: %s\n", strings.Join(d.Missing, ", "))
	}
	for _, v := range d.Views {
		fmt.Fprintf(w, "view %s: %s\n", v.Name, figure.Plural(len(v.Features), "feature"))
		for _, f := range v.Features {
			for _, code := range f.Missing {
				fmt.Fprintf(w, "taken as missing: %s of %s\n", code, f.Name)
			}
		}
	}
	if d.Data != "" {
		fmt.Fprintf(w, "sites: %d simulated ones, since %s is one data set\n", len(d.Sites), d.Data)
	} else {
		for _, s := range d.Sites {
			fmt.Fprintf(w, "site %s: %s\n", s.Name, figure.Plural(int(s.Subjects), "subject"))
		}
	}
	fmt.Fprintf(w, "method %s: %s\n", d.Method, d.Reason)
	_, err := fmt.Fprintf(w, "\nRead %s, change what is wrong, and run it:\n  parley run %s\n", path,
		problem.Shell(path))
	return err
}
