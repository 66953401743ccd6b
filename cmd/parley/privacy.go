package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/judge"
	"parley/privacy/account"
	"parley/study"
)

func privacyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "privacy",
		Short: "Count what differential privacy costs",
	}
	cmd.AddCommand(accountCommand(), calibrateCommand(), curveCommand())
	return cmd
}

// composition is what the flags of a privacy command describe: a list of
// mechanisms, or the published setting of a paper.
type composition struct {
	gaussian, laplace []string
	adjacency         string

	published     string
	views, rounds int
	each          account.Budget
}

// fedMVPPCA is the one published setting.
const fedMVPPCA = "fed-mv-ppca"

func (c *composition) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&c.gaussian, "gaussian", nil, "sums with Gaussian noise: noise= (standard deviation), count=, rate=, diameter= (repeatable)")
	f.StringArrayVar(&c.laplace, "laplace", nil, "sums with Laplace noise: noise= (scale), count=, diameter= (repeatable)")
	f.StringVar(&c.adjacency, "adjacency", "", "add-remove or replace-one")
	f.StringVar(&c.published, "published", "", "the setting of a paper in place of sums: "+fedMVPPCA)
	f.IntVar(&c.views, "views", 3, "with --published: views of each centre")
	f.IntVar(&c.rounds, "rounds", 100, "with --published: rounds")
	f.Float64Var(&c.each.Delta, "release-delta", 0.01, "with --published: δ of each release")
	cmd.MarkFlagsMutuallyExclusive("published", "gaussian")
	cmd.MarkFlagsMutuallyExclusive("published", "laplace")
	cmd.MarkFlagsMutuallyExclusive("published", "adjacency")
}

// check refuses flags that do not go together, and a setting that is not known.
func (c *composition) check(cmd *cobra.Command) error {
	if c.published == "" {
		for _, name := range []string{"views", "rounds", "release-epsilon", "release-delta"} {
			if cmd.Flags().Changed(name) {
				return &usageError{fmt.Errorf("--%s belongs to --published", name)}
			}
		}
		return nil
	}
	if c.published != fedMVPPCA {
		return &usageError{fmt.Errorf("--published %s is not known\n  hint: there is %s", c.published, fedMVPPCA)}
	}
	return nil
}

// mechanisms reads the mechanisms of the flags. Their noise is 1 where it is
// left out and need not be given.
func (c *composition) mechanisms(needNoise bool) ([]account.Mechanism, account.Adjacency, error) {
	a := account.Adjacency(c.adjacency)
	if err := a.Check(); err != nil {
		return nil, a, &usageError{fmt.Errorf("--adjacency: %w", err)}
	}
	var ms []account.Mechanism
	for _, list := range []struct {
		kind  account.Kind
		flags []string
	}{{account.Gaussian, c.gaussian}, {account.Laplace, c.laplace}} {
		for _, text := range list.flags {
			m, err := parseMechanism(list.kind, text, needNoise)
			if err != nil {
				return nil, a, &usageError{fmt.Errorf("--%s %s: %w\n  hint: such as --%s noise=2,count=10", list.kind, text, err, list.kind)}
			}
			ms = append(ms, m)
		}
	}
	return ms, a, nil
}

// parseMechanism reads pairs such as "noise=1.2,count=100,rate=0.02".
func parseMechanism(kind account.Kind, text string, needNoise bool) (m account.Mechanism, err error) {
	m = account.Mechanism{Kind: kind, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	var given []string
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if slices.Contains(given, key) {
			return m, fmt.Errorf("%s is given twice", key)
		}
		given = append(given, key)
		switch key {
		case "noise":
			m.Noise, err = strconv.ParseFloat(value, 64)
		case "rate":
			m.Rate, err = strconv.ParseFloat(value, 64)
		case "diameter":
			m.Diameter, err = strconv.ParseFloat(value, 64)
		case "count":
			m.Count, err = strconv.Atoi(value)
		default:
			return m, fmt.Errorf("%q is none of noise, count, rate, diameter", key)
		}
		if err != nil {
			return m, fmt.Errorf("%s is no number: %q", key, value)
		}
	}
	if needNoise && !slices.Contains(given, "noise") {
		return m, errors.New("noise is missing")
	}
	return m, m.Check()
}

// describe says in words what a mechanism is, and under which adjacency.
func describe(m account.Mechanism, a account.Adjacency) string {
	var text string
	switch m.Kind {
	case account.Gaussian:
		text = fmt.Sprintf("%d × Gaussian noise of standard deviation %.6g", m.Count, m.Noise)
	case account.Laplace:
		text = fmt.Sprintf("%d × Laplace noise of scale %.6g", m.Count, m.Noise)
	default: // the kind's own word, which misleads nobody
		text = fmt.Sprintf("%d × noise %s of %.6g", m.Count, m.Kind, m.Noise)
	}
	if m.Rate < 1 {
		text += fmt.Sprintf(", each record by itself with probability %g", m.Rate)
	}
	if a == account.ReplaceOne && m.Diameter != 2 {
		text += fmt.Sprintf(", diameter %.6g", m.Diameter)
	}
	return text
}

// printComposition writes what is counted.
func printComposition(w io.Writer, ms []account.Mechanism, a account.Adjacency) error {
	difference := "one data set has a record more than the other"
	if a == account.ReplaceOne {
		difference = "one record is exchanged for another"
	}
	for _, m := range ms {
		if _, err := fmt.Fprintln(w, describe(m, a)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "in units of the clipping bound of a record; adjacency %s: %s\n\n", a, difference)
	return err
}

// orNull is a number for JSON, which has no infinity.
func orNull(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// shortFloat prints four digits or more, and a dash for what says nothing.
func shortFloat(x float64) string {
	switch {
	case math.IsInf(x, 0):
		return "–"
	case math.Abs(x) >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
}

func curveCommand() *cobra.Command {
	c := judge.SimulationConfig{Methods: methods}
	var as form
	cmd := &cobra.Command{
		Use:   "curve PLAN",
		Short: "Show how useful a private study can be at each ε",
		Long: "Run the whole private study on imagined subjects at several ε, and score every fit. It reads no\n" +
			"data and charges no ledger. After an interruption the same command continues it.",
		Annotations: map[string]string{resumes: "yes"},
		RunE: func(cmd *cobra.Command, a []string) error {
			var err error
			if c.Plan, err = study.Load(a[0], methods); err != nil {
				return err
			}
			if c.Dir, err = directoryOf(c.Dir, c.Plan, "curve"); err != nil {
				return err
			}
			show := &evaluationProgress{progress: newProgress(cmd)}
			defer show.close()
			c.Progress = show.trials
			curve, err := judge.Simulate(cmd.Context(), c)
			if err != nil {
				return err
			}
			show.close()
			return present(cmd, as, c.Dir, "curve", curve)
		},
	}
	f := cmd.Flags()
	f.Float64SliceVar(&c.Epsilons, "epsilon", []float64{0.5, 1, 3, 10}, "totals to try, beside the plan's own")
	f.IntSliceVar(&c.Subjects, "subjects", []int{100, 500, 2500}, "numbers of subjects at each site")
	f.IntVar(&c.Repeats, "repeats", 5, "populations to imagine for each")
	f.Float64Var(&c.Noise, "noise-share", 0.3, "share of the variance that nothing explains, between 0 and 1")
	f.StringVar(&c.Dir, "out", "", "directory for the results (default results/NAME-DIGEST-curve)")
	return as.flag(cmd, "print the directory and all numbers as JSON")
}
