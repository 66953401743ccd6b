// Command papers repeats published experiments, and measures what the documentation
// quotes. It is for a clone of the repository, whose root its paths go by:
//
//	go run -C papers . list
//	go run -C papers . run NAME
//	go run -C papers . report [RUN...]
//
// It exits with status 1 when a promise is broken or the work cannot be done, with 2 on a
// command line that makes no sense, and with 130 when a person has stopped it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"parley/figure"
	"parley/judge"
	"parley/papers/dppvi"
	"parley/papers/experiment"
	"parley/papers/fedmvppca"
	"parley/papers/graffl"
	"parley/papers/internal/clone"
	"parley/papers/quoted"
	"parley/problem"
)

// experiments are all of them, and papers what they repeat.
var (
	experiments = withMethods(slices.Concat(fedmvppca.Experiments(), dppvi.Experiments(), graffl.Experiments(),
		quoted.Experiments()))
	papers = []experiment.Paper{fedmvppca.Paper, dppvi.Paper, graffl.Paper, quoted.Paper}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := 2
	root := commandTree(func() { code = 1 })
	err := clone.Enter()
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	switch {
	case err == nil:
		return
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "papers: interrupted; run the same command again to continue")
		os.Exit(130)
	}
	fmt.Fprintf(os.Stderr, "papers: error: %v\n", err)
	os.Exit(code)
}

// commandTree is the program's commands. They call began once their command line is
// understood.
func commandTree(began func()) *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:               "papers",
		Short:             "Repeat published experiments, and what the documentation quotes",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { began() },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(listCommand(), runCommand(), reportCommand())
	return root
}

func listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		Args:  cobra.NoArgs,
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
				list = append(list, map[string]any{"name": x.Name, "paper": x.Paper, "item": x.Item,
					"computations": cells, "about": x.About})
			}
			w := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(w).Encode(map[string]any{"experiments": list})
			}
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
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func runCommand() *cobra.Command {
	var c experiment.Config
	var asJSON, quiet bool
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Repeat one experiment",
		Long: "Repeat the table or figure of a paper on open data, and print published numbers beside ours.\n" +
			"After an interruption the same command continues it.",
		Args: cobra.ExactArgs(1),
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
			} else if info, err := os.Stat(c.Dir); err == nil && !info.IsDir() {
				return problem.Problem{File: c.Dir, What: "this is a file, and what is written is a folder",
					Hint: "choose another with --out"}
			}
			if !quiet {
				c.Progress = progress(cmd.ErrOrStderr())
			}
			r, broken := experiment.Run(cmd.Context(), c)
			if r == nil {
				return broken
			}
			return errors.Join(show(cmd.OutOrStdout(), c, r, asJSON), broken)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.Quick, "quick", false, "only a few small computations, to see whether the experiment runs")
	f.StringVar(&c.Dir, "out", "", "directory for the results (default results/experiments/NAME)")
	f.StringVar(&c.Data.Clone, "clone", ".", "a clone of the repository, for the data of its examples")
	f.StringVar(&c.Data.More, "data", "", "folder of the data sets that are not shipped")
	f.IntVar(&c.Workers, "workers", 0, "computations at a time (default as many as there are processors)")
	f.BoolVar(&asJSON, "json", false, "print the directory and all numbers as JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// progress tells how far the computations are, a line for every tenth.
func progress(w io.Writer) func(judge.Progress) {
	told, tenth := false, 0
	return func(now judge.Progress) {
		if !told {
			told = true
			if now.Stored > 0 {
				fmt.Fprintf(w, "%d of %d computations are stored already\n", now.Stored, now.Of)
			}
			if left := now.Of - now.Done; left > 0 {
				fmt.Fprintf(w, "running %s, %d at a time\n", figure.Plural(left, "computation"), now.Abreast)
			}
		}
		if n := 10 * now.Done / max(now.Of, 1); n > tenth && now.Done > now.Stored {
			tenth = n
			fmt.Fprintf(w, "%d of %d computations\n", now.Done, now.Of)
		}
	}
}

// show prints what was published beside ours.
func show(w io.Writer, c experiment.Config, r *experiment.Record, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"directory": c.Dir, "experiment": r})
	}
	for _, n := range c.Experiment.Notes {
		fmt.Fprintln(w, experiment.Plain(n))
	}
	for _, t := range r.AllTables() {
		fmt.Fprintln(w)
		if err := t.Text(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nOpen %s\n", filepath.Join(c.Dir, "report.html"))
	return err
}

// writePages writes everything that follows from records.
func writePages(dir string) error {
	if err := experiment.WriteStatus(dir, status, settings, experiments); err != nil {
		return err
	}
	return experiment.WritePages(dir, papers, experiments)
}

func reportCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "report [RUN...]",
		Short: "Write the pages of the documentation from finished runs",
		Long: "Add the records of finished runs to the documentation, and write its pages again.\n" +
			"Print how far every table and figure of the papers is repeated.",
		RunE: func(cmd *cobra.Command, runs []string) error {
			for _, run := range runs {
				r, err := experiment.ReadRecord(run)
				if err != nil {
					return problem.Problem{Where: run, What: err.Error(),
						Hint: "name the directory of a run that has finished"}
				}
				if r.Quick {
					return problem.Problem{Where: run, What: "this was a quick run, whose numbers say nothing",
						Hint: "run it without --quick"}
				}
				if err := experiment.Keep(dir, r); err != nil {
					return err
				}
			}
			if err := writePages(dir); err != nil {
				return err
			}
			tables, err := experiment.StatusTables(status, nil, experiments)
			if err != nil {
				return err
			}
			for _, t := range tables {
				t.Columns = t.Columns[:len(t.Columns)-1] // links are for the page
				for i, why := range t.Columns[2].Text {
					t.Columns[2].Text[i] = experiment.Plain(why)
				}
				fmt.Fprintln(cmd.OutOrStdout())
				if err := t.Text(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nOpen %s\n", filepath.Join(dir, experiment.StatusPage))
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "out", filepath.Join("docs", "experiments"), "folder of the pages")
	return cmd
}
