package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/judge"
	"parley/judge/evaluate"
	"parley/method"
	"parley/report"
	"parley/study"
	"parley/verify"
)

func evaluateCommand() *cobra.Command {
	c := judge.EvaluationConfig{Methods: methods}
	var scenarios []string
	var as form
	cmd := &cobra.Command{
		Use:   "evaluate PLAN",
		Short: "Judge a study by cross-validation",
		Long: "Fit the study again and again without some subjects or a whole site, and score the fit on those.\n" +
			"Simple rivals, each site alone and a central fit are scored beside it.",
		Annotations: map[string]string{resumes: "yes"},
		RunE: func(cmd *cobra.Command, a []string) error {
			for _, name := range scenarios {
				sc, err := evaluate.ParseScenario(name)
				if err != nil {
					return &usageError{fmt.Errorf("--scenarios: %w", err)}
				}
				c.Scenarios = append(c.Scenarios, sc)
			}
			if cmd.Flags().Changed("sites") && c.Sites < 1 {
				return &usageError{fmt.Errorf("--sites %d: there must be at least one", c.Sites)}
			}
			var err error
			if c.Plan, err = study.Load(a[0], methods); err != nil {
				return err
			}
			if c.Dir, err = directoryOf(c.Dir, c.Plan, "evaluation"); err != nil {
				return err
			}
			show := &evaluationProgress{progress: newProgress(cmd)}
			defer show.close()
			c.Progress = show.trials
			result, err := judge.Evaluate(cmd.Context(), c)
			if err != nil {
				return err
			}
			show.close()
			return present(cmd, as, c.Dir, "evaluation", result)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Folds, "folds", 3, "parts that the subjects are divided into")
	f.IntVar(&c.Repeats, "repeats", 10, "divisions into folds")
	f.StringSliceVar(&scenarios, "scenarios", nil, "some of iid, g, k, gk, unequal, column (default all that the data "+
		"allow)")
	f.IntVar(&c.Sites, "sites", 0, "number of simulated sites (default that of the plan)")
	f.StringVar(&c.Label, "label", "", "subject column that the factors should tell apart (default that of "+
		"local.split.by, or the first)")
	f.StringVar(&c.Dir, "out", "", "directory for the results (default results/NAME-DIGEST-evaluation)")
	return as.flag(cmd, "print the directory and all summaries as JSON")
}

// directoryOf is where results go: dir if somebody said so, else a folder that
// the plan and the kind of results name.
func directoryOf(dir string, plan *study.Plan, kind string) (string, error) {
	if dir != "" {
		return dir, checkFolder(dir)
	}
	digest, err := plan.Digest()
	if err != nil {
		return "", err
	}
	return filepath.Join("results", plan.Name+"-"+digest.Short()+"-"+kind), nil
}

// present tells what came of a command whose report lies in dir: in words, or
// as one JSON object with the results under the name of their kind.
func present(cmd *cobra.Command, as form, dir, kind string, results interface{ Print(io.Writer) error }) error {
	return as.line(cmd, map[string]any{"directory": dir, kind: results}, func(w io.Writer) error {
		if err := results.Print(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\nOpen %s\n", filepath.Join(dir, "report.html"))
		return err
	})
}

func attackCommand() *cobra.Command {
	c := judge.AttackConfig{}
	var as form
	cmd := &cobra.Command{
		Use:   "attack [METHOD [PLAN]]",
		Short: "Attack simulated studies of a method",
		Long: "Attack simulated studies of a method, and print what is learned. The rows are made up, or those\n" +
			"of the plan's simulated sites. Without METHOD it lists what can be attacked.",
		RunE: func(cmd *cobra.Command, a []string) error {
			targets := judge.AttackTargets(methods)
			if len(a) == 0 {
				return as.line(cmd, targets, func(w io.Writer) error {
					for _, name := range targets {
						fmt.Fprintln(w, "parley attack", name)
					}
					return nil
				})
			}
			m, ok := methods.Lookup(a[0])
			if !ok {
				return &usageError{fmt.Errorf("method %q is not known\n  hint: what can be attacked is %s", a[0],
					strings.Join(targets, ", "))}
			}
			c.Method = m
			if len(a) == 2 {
				var err error
				if c.Plan, err = study.Load(a[1], methods); err != nil {
					return err
				}
				if c.Plan.Method.Name == m.Name() { // else it is refused before anybody reads data
					bound, err := local.Bind(cmd.Context(), c.Plan, nil)
					if err != nil {
						return err
					}
					c.Data = bound.Data
				}
			}
			show := newProgress(cmd)
			defer show.close()
			c.Tell = func(what string) { show.step("attacking %s", what) }
			report, err := judge.Attack(cmd.Context(), c)
			if err != nil {
				return err
			}
			show.close()
			err = as.object(cmd, report, report.Print)
			if err == nil && !report.OK {
				err = errors.New("not everything went as the method's documentation says")
			}
			return err
		},
	}
	cmd.Flags().Uint64Var(&c.Seed, "seed", 1, "seed of all that is drawn except noise")
	return as.flag(cmd, "print every attack, or the list, as JSON")
}

func compareCommand() *cobra.Command {
	var page accountPage
	var as form
	cmd := &cobra.Command{
		Use:   "compare MODEL MODEL",
		Short: "Compare two fits",
		Long:  "Show how alike two fits of factors are, which are matched.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := page.check(); err != nil {
				return err
			}
			account, err := compare(a[0], a[1])
			if err != nil {
				return err
			}
			if err := page.write("Two fits compared", account); err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}
	page.flag(cmd)
	return as.flag(cmd, "print everything as JSON")
}

// compare holds two models against each other.
func compare(a, b string) (*method.Account, error) {
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

func verifyCommand() *cobra.Command {
	var as form
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the program against published test vectors",
		Long:  "Run every test vector of a folder, JSON with a \"schema\", and print where the program disagrees.",
		RunE: func(cmd *cobra.Command, a []string) error {
			report, err := verify.Run(os.DirFS(a[0]))
			if err != nil {
				return fmt.Errorf("verifying %s: %w", a[0], err)
			}
			err = as.object(cmd, report, report.Print)
			if err == nil && !report.OK {
				err = errors.New("this installation does not agree with the test vectors")
			}
			return err
		},
	}
	return as.flag(cmd, "print the agreement of every entry as JSON")
}
