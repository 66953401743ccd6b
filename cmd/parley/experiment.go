package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley/experiment"
	"parley/experiment/dppvi"
	"parley/experiment/fedmvppca"
	"parley/experiment/graffl"
	"parley/experiment/quoted"
	"parley/figure"
	"parley/problem"
)

// experiments are all of them, and papers what they repeat.
var (
	experiments = slices.Concat(fedmvppca.Experiments(), dppvi.Experiments(), graffl.Experiments(), quoted.Experiments())
	papers      = []experiment.Paper{fedmvppca.Paper, dppvi.Paper, graffl.Paper, quoted.Paper}
)

func experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Repeat published experiments, and what the documentation quotes",
	}
	cmd.AddCommand(experimentListCommand(), experimentRunCommand(), experimentReportCommand())
	return cmd
}

func experimentListCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []map[string]any
			tables := map[string]*figure.Table{} // by paper
			for _, x := range experiments {
				t := tables[x.Paper]
				if t == nil {
					t = &figure.Table{Columns: figure.TextColumns("name", "item", "computations", "about")}
					tables[x.Paper] = t
				}
				cells := len(x.Cells(false))
				t.Add(x.Name, x.Item, fmt.Sprint(cells), x.About)
				list = append(list, map[string]any{"name": x.Name, "paper": x.Paper, "item": x.Item, "computations": cells, "about": x.About})
			}
			return as.line(cmd, map[string]any{"experiments": list}, func(w io.Writer) error {
				for i, p := range papers {
					if i > 0 {
						fmt.Fprintln(w)
					}
					fmt.Fprintf(w, "%s\n\n", p.Title)
					if err := tables[p.Name].Text(w); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}, "print the list as JSON")
}

func experimentRunCommand() *cobra.Command {
	var c experiment.Config
	var as form
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Repeat one experiment",
		Long: "Repeat the table or figure of a paper on open data, and print published numbers beside ours.\n" +
			"After an interruption the same command continues it.",
		Annotations: map[string]string{resumes: "yes"},
		RunE: func(cmd *cobra.Command, a []string) error {
			var err error
			if c.Experiment, err = experiments.Find(a[0]); err != nil {
				return err
			}
			if c.Dir == "" {
				c.Dir = filepath.Join("results", "experiments", a[0])
				if c.Quick {
					c.Dir += "-quick"
				}
			} else if err := checkFolder(c.Dir); err != nil {
				return err
			}
			show := &evaluationProgress{progress: newProgress(cmd), noun: "computation"}
			defer show.close()
			c.Progress = show.trials
			r, broken := experiment.Run(cmd.Context(), c)
			if r == nil {
				return broken
			}
			show.close()
			return errors.Join(present(cmd, as, c.Dir, "experiment", printed{c.Experiment, r}), broken)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.Quick, "quick", false, "only a few small computations, to see whether the experiment runs")
	f.StringVar(&c.Dir, "out", "", "directory for the results (default results/experiments/NAME)")
	f.StringVar(&c.Data.Clone, "clone", ".", "a clone of the repository, for the data of its examples")
	f.StringVar(&c.Data.More, "data", "", "folder of the data sets that are not shipped")
	f.IntVar(&c.Workers, "workers", 0, "computations at a time (default as many as there are processors)")
	return as.flag(cmd, "print the directory and all numbers as JSON")
}

// printed is a record that can be shown.
type printed struct {
	of experiment.Experiment
	*experiment.Record
}

// Print shows what was published beside ours.
func (p printed) Print(w io.Writer) error {
	for _, n := range p.of.Notes {
		fmt.Fprintln(w, experiment.Plain(n))
	}
	for _, t := range p.AllTables() {
		fmt.Fprintln(w)
		if err := t.Text(w); err != nil {
			return err
		}
	}
	return nil
}

func experimentReportCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "report [RUN...]",
		Short: "Write the pages of the documentation from finished runs",
		Long:  "Add the records of finished runs to the documentation, and write its pages again.",
		RunE: func(cmd *cobra.Command, runs []string) error {
			for _, run := range runs {
				r, err := experiment.ReadRecord(run)
				if err != nil {
					return problem.Problem{Where: run, What: err.Error(), Hint: "name the directory of a finished 'parley experiment run'"}
				}
				if r.Quick {
					return problem.Problem{Where: run, What: "this was a quick run, whose numbers say nothing", Hint: "run it without --quick"}
				}
				if err := experiment.Keep(dir, r); err != nil {
					return err
				}
			}
			return experiment.WritePages(dir, papers, experiments)
		},
	}
	cmd.Flags().StringVar(&dir, "out", filepath.Join("docs", "experiments"), "folder of the pages")
	return cmd
}
