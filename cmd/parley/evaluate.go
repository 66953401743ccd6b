package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/judge"
	"parley/judge/evaluate"
	"parley/study"
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
	f.StringSliceVar(&scenarios, "scenarios", nil, "some of iid, g, k, gk, unequal, column (default all that the data allow)")
	f.IntVar(&c.Sites, "sites", 0, "number of simulated sites (default that of the plan)")
	f.StringVar(&c.Label, "label", "", "subject column that the factors should tell apart (default that of local.split.by, or the first)")
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
