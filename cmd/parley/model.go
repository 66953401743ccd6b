package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/judge"
	"parley/method"
	"parley/problem"
	"parley/report"
)

func modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Use a fitted model",
		Long: "Use a fitted model. MODEL is a run's results directory, its model folder, or its model.json.\n" +
			"DATA is a data set with the views and columns of the fit, in the same units.",
	}
	cmd.AddCommand(modelSummaryCommand(), modelTransformCommand(), modelImputeCommand(), modelPredictCommand(),
		modelRotateCommand(), modelContrastCommand(), modelAssociateCommand(), modelRefitCommand(),
		former("export", "results have model/model.json and model/loadings.csv; parley model summary --json prints "+
			"all of a model"),
		former("sample", "its model.json has the law of its subjects, N(mean, W Wᵀ + noise) in scaled units; parley "+
			"privacy curve draws studies like a plan's"))
	return cmd
}

func modelSummaryCommand() *cobra.Command {
	var as form
	var top int
	cmd := &cobra.Command{
		Use:   "summary MODEL",
		Short: "Show what was fitted, and what the factors or effects are",
		RunE: func(cmd *cobra.Command, a []string) error {
			if top < 1 {
				return &usageError{fmt.Errorf("--top %d: at least 1", top)}
			}
			m, err := openModel[method.Summariser](a[0], "summarised")
			if err != nil {
				return err
			}
			account, err := m.Summary(top)
			if err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}
	cmd.Flags().IntVar(&top, "top", 5, "loadings of each factor to show")
	return as.flag(cmd, "print everything as JSON")
}

const siteUse = "site of the fit that the subjects come from (default all sites together)"

const newSiteUse = "the subjects come from a site that took no part in the fit"

func modelTransformCommand() *cobra.Command {
	var opts method.TransformOptions
	var out output
	var as form
	cmd := &cobra.Command{
		Use:   "transform MODEL DATA --out FILE.csv",
		Short: "Score subjects on the factors or components",
		Long: "Write the posterior mean and standard deviation of each factor for each subject, or of the " +
			"probability of each component.",
		RunE: func(cmd *cobra.Command, a []string) error {
			return tabulate(cmd, a, &out, as, "used to score subjects", "subjects",
				func(m method.Transformer, data dataset.Source, w io.Writer) (int, method.Notes, error) {
					return m.Transform(cmd.Context(), data, w, opts)
				})
		},
	}
	f := cmd.Flags()
	out.flags(cmd)
	f.StringVar(&opts.Site, "site", "", siteUse)
	f.BoolVar(&opts.NewSite, "new-site", false, newSiteUse)
	return as.flag(cmd, "print what was written, and the warnings, as JSON")
}

func modelImputeCommand() *cobra.Command {
	var opts method.ImputeOptions
	var out output
	var as form
	cmd := &cobra.Command{
		Use:   "impute MODEL DATA --out FILE.csv",
		Short: "Predict missing values, with intervals",
		Long:  "Write mean, standard deviation and interval of each value that is missing, in the feature's unit.",
		RunE: func(cmd *cobra.Command, a []string) error {
			return tabulate(cmd, a, &out, as, "used to impute", "values",
				func(m method.Imputer, data dataset.Source, w io.Writer) (int, method.Notes, error) {
					return m.Impute(cmd.Context(), data, w, opts)
				})
		},
	}
	f := cmd.Flags()
	out.flags(cmd)
	f.StringSliceVar(&opts.Views, "view", nil, "only these views (default all)")
	f.Float64Var(&opts.Level, "level", 0.9, "probability of the intervals")
	f.StringVar(&opts.Site, "site", "", siteUse)
	f.BoolVar(&opts.NewSite, "new-site", false, newSiteUse)
	return as.flag(cmd, "print what was written, and the warnings, as JSON")
}

func modelPredictCommand() *cobra.Command {
	var score bool
	var level float64
	var site string
	var out output
	var as form
	cmd := &cobra.Command{
		Use:   "predict MODEL DATA --out FILE.csv",
		Short: "Predict the outcome of new subjects",
		Long: "Write each subject's predicted outcome: probabilities of levels, an interval of a number, or\n" +
			"survival at each cut of a time.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if site != "" {
				own, err := report.SiteModel(a[0], site)
				if err != nil {
					return err
				}
				a = []string{own, a[1]}
			}
			if err := out.check(inputsOf(a)...); err != nil {
				return err
			}
			m, err := openModel[method.Predictor](a[0], "used to predict")
			if err != nil {
				return err
			}
			var known []string
			if score {
				known = m.Outcome().Columns()
			}
			m, data, notes, err := openUse[method.Predictor](cmd.Context(), a, "used to predict", "", known...)
			if err != nil {
				return err
			}
			var subjects int
			var scores *method.Account
			if err := out.write(func(w io.Writer) error {
				n, odd, err := m.Predict(cmd.Context(), data, w, level)
				if err == nil && score {
					scores, err = judge.Score(cmd.Context(), m, data, level)
				}
				subjects, notes = n, append(notes, odd...)
				return err
			}); err != nil {
				return err
			}
			if !score {
				return printWritten(cmd, as, out.path, "subjects", subjects, notes)
			}
			scores.Notes = notes
			return printAccount(cmd, scores, as)
		},
	}
	f := cmd.Flags()
	out.flags(cmd)
	f.BoolVar(&score, "score", false, "compare with the outcomes in subjects.csv")
	f.StringVar(&site, "site", "", "site whose own model, with its random intercept, predicts (default a new site)")
	f.Float64Var(&level, "level", 0.9, "probability of the intervals")
	return as.flag(cmd, "print what was written or the scores, and the warnings, as JSON")
}

func modelContrastCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "contrast MODEL COLUMN AGAINST",
		Short: "Compare two effects of a regression",
		Long: "Print how much larger the effect of one column is than that of another, with its standard error.\n" +
			"The names of the columns are those of correlations.csv.",
		RunE: func(cmd *cobra.Command, a []string) error {
			m, err := openModel[method.Contraster](a[0], "asked for contrasts")
			if err != nil {
				return err
			}
			account, err := m.Contrast(a[1], a[2])
			if err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}, "print everything as JSON")
}

func modelRotateCommand() *cobra.Command {
	var to, out string
	var force bool
	var as form
	cmd := &cobra.Command{
		Use:   "rotate MODEL --to varimax --out DIR",
		Short: "Turn the factors towards simple structure",
		Long: "Write the same model with its factors turned, and as uncorrelated as before. Predictions stay the " +
			"same.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := checkFolder(out); err != nil {
				return err
			}
			m, err := openModel[method.Rotator](a[0], "rotated")
			if err != nil {
				return err
			}
			files, account, err := m.Rotate(to)
			if err != nil {
				return err
			}
			if err := writeFiles(files, out, force, inputsOf(a)); err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "varimax or none (the form of the fit)")
	f.StringVar(&out, "out", "", "folder to write to")
	f.BoolVar(&force, "force", false, forceUsage)
	as.flag(cmd, "print the summary of the rotated model as JSON")
	cmd.MarkFlagRequired("to")
	cmd.MarkFlagRequired("out")
	return cmd
}

// openModel opens a model and refuses it by its method's name if the method
// cannot do what is wanted.
func openModel[C any](path, doing string) (C, error) {
	m, err := report.ReadModel(methods, path)
	if err != nil {
		var none C
		return none, err
	}
	return capable[C](m, path, doing)
}

func capable[C any](m method.Model, path, doing string) (C, error) {
	can, ok := m.(C)
	if !ok {
		return can, problem.Problem{File: path, What: fmt.Sprintf("a model of %s cannot be %s", m.Method(), doing),
			Hint: "what can be done with it: parley model " + uses(m)}
	}
	return can, nil
}

// uses lists the commands for what a model can do.
func uses(m method.Model) string {
	var can []string
	for _, u := range []struct {
		command string
		has     bool
	}{
		{"transform", does[method.Transformer](m)}, {"impute", does[method.Imputer](m)},
		{"predict", does[method.Predictor](m)},
		{"contrast", does[method.Contraster](m)}, {"rotate", does[method.Rotator](m)},
		{"associate", does[method.Associater](m)},
		{"summary", does[method.Summariser](m)},
	} {
		if u.has {
			can = append(can, u.command)
		}
	}
	return strings.Join(can, " | ")
}

func does[C any](m method.Model) bool {
	_, ok := m.(C)
	return ok
}

// openUse opens a model, and data as the model's fit had them, with some
// subject columns, and with that which identifies a person, if there is one; it returns what to
// know of the data too.
func openUse[C any](ctx context.Context, a []string, doing, person string,
	columns ...string) (can C, data dataset.Source, notes method.Notes, err error) {
	m, err := report.ReadModel(methods, a[0])
	if err != nil {
		return can, nil, nil, err
	}
	if can, err = capable[C](m, a[0], doing); err != nil {
		return can, nil, nil, err
	}
	schema, needed := m.Schema(), subjectColumns(m)
	for _, c := range columns {
		if !slices.Contains(needed, c) {
			schema.Subject = append(schema.Subject, dataset.Column{Name: c, Kind: dataset.Label})
		}
	}
	schema.Person = person
	dir, err := dataset.Open(ctx, a[1], dataset.Options{Schema: &schema})
	switch {
	case err != nil && slices.ContainsFunc(needed, func(c string) bool {
		return strings.Contains(err.Error(), "column "+c)
	}):
		return can, nil, nil, fmt.Errorf("%w\n  hint: this model says nothing of subjects without %s: their "+
			"subjects.csv needs these columns", err, strings.Join(needed, ", "))
	case err != nil:
		return can, nil, nil, err
	}
	if fit, ok := m.(method.Cautious); ok {
		notes = fit.Cautions()
	}
	notes = append(notes, slices.DeleteFunc(slices.Clone(dir.Warnings()), func(p problem.Problem) bool {
		return p.Where == "subjects" // columns that nobody asked for
	})...)
	return can, dir, notes, nil
}

// subjectColumns names the subject columns without which a model says nothing of a subject.
func subjectColumns(m method.Model) (names []string) {
	for _, c := range m.Schema().Subject {
		names = append(names, c.Name)
	}
	return names
}

// tabulate writes the table that a model makes of data, and says of how many things.
func tabulate[C any](cmd *cobra.Command, a []string, out *output, as form, doing, what string,
	table func(m C, data dataset.Source, w io.Writer) (int, method.Notes, error)) error {
	if err := out.check(inputsOf(a)...); err != nil {
		return err
	}
	m, data, notes, err := openUse[C](cmd.Context(), a, doing, "")
	if err != nil {
		return err
	}
	var n int
	if err := out.write(func(w io.Writer) error {
		many, more, err := table(m, data, w)
		n, notes = many, append(notes, more...)
		return err
	}); err != nil {
		return err
	}
	return printWritten(cmd, as, out.path, what, n, notes)
}

// printWritten says what was written where.
func printWritten(cmd *cobra.Command, as form, out, what string, n int, notes method.Notes) error {
	return as.line(cmd, map[string]any{"out": out, what: n, "warnings": notes.Lines()}, func(w io.Writer) error {
		printLines(cmd.ErrOrStderr(), "warning:", notes.Lines())
		_, err := fmt.Fprintf(w, "%s: %d %s\n", out, n, what)
		return err
	})
}

// printAccount writes an account for people or for programs.
func printAccount(cmd *cobra.Command, a *method.Account, as form) error {
	printLines(cmd.ErrOrStderr(), "warning:", a.Notes.Lines())
	return as.line(cmd, a.Value, func(w io.Writer) error { return accountText(w, a) })
}

func accountText(out io.Writer, a *method.Account) error {
	width := 0
	for _, f := range a.Facts {
		width = max(width, len(f.Name))
	}
	for _, f := range a.Facts {
		fmt.Fprintf(out, "%s  %s\n", f.Name+strings.Repeat(" ", width-len(f.Name)), f.Value)
	}
	for i, t := range a.Tables {
		if i > 0 || len(a.Facts) > 0 {
			fmt.Fprintln(out)
		}
		if err := t.Text(out); err != nil {
			return err
		}
	}
	return nil
}

func modelRefitCommand() *cobra.Command {
	values := map[string]*int{}
	var out string
	var as form
	cmd := &cobra.Command{
		Use:   "refit RESULTS --latent Q | --components K --out DIR",
		Short: "Change the number of factors or components of a study",
		Long: "Make a model with another number of factors or components from what the sites of a private study,\n" +
			"or of a mixture, released: without data, and at no further cost of privacy.",
		RunE: func(cmd *cobra.Command, a []string) error {
			option := given(cmd, chosenOptions)
			value := *values[option]
			if value < 1 || value > maxCount {
				return &usageError{fmt.Errorf("--%s %d: from 1 to %d", option, value, maxCount)}
			}
			if err := checkFolder(out); err != nil {
				return err
			}
			s, err := judge.OpenStudy(a[0], methods)
			if err != nil {
				return err
			}
			if err := checkChosen(option, s.Method.Chooses(), s.Plan.Method.Name); err != nil {
				return err
			}
			if err := s.ClaimRefit(out); err != nil {
				return err
			}
			r, err := s.Refit(value)
			if err != nil {
				return err
			}
			if err := s.WriteRefit(out, value, r, time.Now()); err != nil {
				return err
			}
			return as.line(cmd, ran{out, r.Numbers()}, func(w io.Writer) error {
				facts(w, r)
				for _, line := range s.Origin.Lines() {
					fmt.Fprintf(w, "%-22s %s\n", "privacy", line)
				}
				_, err := fmt.Fprintf(w, "\nOpen %s\n", filepath.Join(out, "report.html"))
				return err
			})
		},
	}
	f := cmd.Flags()
	for _, option := range chosenOptions {
		values[option] = f.Int(option, 0, "number of "+nounOf[option])
	}
	f.StringVar(&out, "out", "", "directory for the model and its report")
	as.flag(cmd, "print the directory and the metrics as JSON")
	chooseOne(cmd)
	cmd.MarkFlagRequired("out")
	return cmd
}
