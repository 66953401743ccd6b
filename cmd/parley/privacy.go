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
	f.StringArrayVar(&c.gaussian, "gaussian", nil, "sums with Gaussian noise: noise= (standard deviation), count=, "+
		"rate=, diameter= (repeatable)")
	f.StringArrayVar(&c.laplace, "laplace", nil, "sums with Laplace noise: noise= (scale), count=, diameter= "+
		"(repeatable)")
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
				return nil, a, &usageError{fmt.Errorf("--%s %s: %w\n  hint: such as --%s noise=2,count=10", list.kind,
					text, err, list.kind)}
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
			if cmd.Flags().Changed("noise-share") && c.Noise == 0 {
				return &usageError{errors.New("--noise-share is between 0 and 1: some of the variance is always noise")}
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
	f.Float64Var(&c.Noise, "noise-share", 0, "share of the variance that nothing explains, between 0 and 1 (default "+
		"0.3; 0.84 for classes and events: an AUC of 0.7)")
	f.StringVar(&c.Dir, "out", "", "directory for the results (default results/NAME-DIGEST-curve)")
	return as.flag(cmd, "print the directory and all numbers as JSON")
}

// calibrationJSON is what `privacy calibrate --json` prints.
type calibrationJSON struct {
	Total      account.Budget      `json:"total"`
	Adjacency  account.Adjacency   `json:"adjacency"`
	Mechanisms []account.Mechanism `json:"mechanisms"` // with the noise that the total needs
	Scale      float64             `json:"scale,omitempty"`
	Most       *int                `json:"most,omitempty"` // how often the last sum fits
	Single     *singleJSON         `json:"single,omitempty"`
	Rounds     *roundsJSON         `json:"rounds,omitempty"`
}

// singleJSON is the noise of a single Gaussian release by older theorems.
type singleJSON struct {
	Zhao          float64 `json:"theorem5,omitempty"`
	Classic       float64 `json:"classic"`
	ClassicProven bool    `json:"classic_proven"`
	ClassicDelta  float64 `json:"classic_delta"` // that it really attains
}

// roundsJSON is what each release of the published setting may cost, and what
// one release a round would need in their place.
type roundsJSON struct {
	Each  account.Budget `json:"each"`
	Joint float64        `json:"joint"` // standard deviation, in units of its clipping bound
}

func calibrateCommand() *cobra.Command {
	var c composition
	var out calibrationJSON
	var most bool
	var as form
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Find the noise that a total needs",
		Long: "Find the least noise with which all sums together keep to a total. Noise that is given sets the\n" +
			"proportions between the sums.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.check(cmd)
			switch {
			case err != nil:
			case c.published != "":
				err = out.ofRounds(&c)
			case most:
				err = out.ofRepeats(&c)
			default:
				err = out.ofComposition(&c)
			}
			if err != nil {
				return err
			}
			return as.object(cmd, &out, out.print)
		},
	}
	c.flags(cmd)
	cmd.MarkFlagsOneRequired("published", "gaussian", "laplace")
	f := cmd.Flags()
	f.Float64Var(&out.Total.Epsilon, "epsilon", 0, "ε of the total")
	f.Float64Var(&out.Total.Delta, "delta", 0, "δ of the total")
	f.BoolVar(&most, "most", false, "count how often the last sum fits, with the noise as given")
	cmd.MarkFlagsMutuallyExclusive("most", "published")
	as.flag(cmd, "print everything as one JSON object")
	cmd.MarkFlagRequired("epsilon")
	cmd.MarkFlagRequired("delta")
	return cmd
}

func (out *calibrationJSON) ofComposition(c *composition) (err error) {
	ms, a, err := c.mechanisms(false)
	if err != nil {
		return err
	}
	if out.Scale, err = account.Scale(ms, a, out.Total); err != nil {
		return err
	}
	for i := range ms {
		ms[i].Noise *= out.Scale
	}
	out.Mechanisms, out.Adjacency = ms, a
	if m := ms[0]; len(ms) > 1 || m.Kind != account.Gaussian || m.Count > 1 || m.Rate < 1 {
		return nil
	}
	sensitivity := 1.0
	if a == account.ReplaceOne {
		sensitivity = ms[0].Diameter
	}
	classic, proven, err := account.ClassicGaussian(out.Total.Epsilon, out.Total.Delta)
	if err != nil {
		return err
	}
	s := &singleJSON{Classic: classic * sensitivity, ClassicProven: proven}
	if s.ClassicDelta, err = account.GaussianDelta(classic, out.Total.Epsilon); err != nil {
		return err
	}
	if zhao, _, err := account.ZhaoGaussian(out.Total.Epsilon, out.Total.Delta); err == nil { // it needs δ below ½
		s.Zhao = zhao * sensitivity
	}
	out.Single = s
	return nil
}

func (out *calibrationJSON) ofRepeats(c *composition) error {
	ms, a, err := c.mechanisms(true)
	if err != nil {
		return err
	}
	last := len(ms) - 1
	n, err := account.Most(ms[last], ms[:last], a, out.Total)
	out.Adjacency, out.Most = a, &n
	ms[last].Count = n
	out.Mechanisms = ms[:last]
	if n > 0 {
		out.Mechanisms = ms
	}
	return err
}

func (out *calibrationJSON) ofRounds(c *composition) (err error) {
	r := &roundsJSON{Each: c.each}
	if r.Each.Epsilon, err = account.ScaleRounds(c.views, c.rounds, c.each.Delta, out.Total); err != nil {
		return err
	}
	if out.Mechanisms, err = account.Rounds(c.views, c.rounds, r.Each); err != nil {
		return err
	}
	out.Adjacency, out.Rounds = account.ReplaceOne, r
	joint := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: c.rounds}
	r.Joint, err = account.Scale([]account.Mechanism{joint}, account.ReplaceOne, out.Total)
	return err
}

func (out *calibrationJSON) print(w io.Writer) error {
	fmt.Fprintf(w, "for ε %g at δ %g in total\n", out.Total.Epsilon, out.Total.Delta)
	if out.Most != nil {
		fmt.Fprintf(w, "the last sum fits %d times\n", *out.Most)
	}
	if out.Rounds != nil {
		fmt.Fprintln(w, "Algorithm 2 of the Fed-mv-PPCA paper; a record is a whole centre")
	}
	ms := slices.Clone(out.Mechanisms)
	for i := range ms {
		ms[i].Noise = roundUp(ms[i].Noise)
	}
	err := printComposition(w, ms, out.Adjacency)
	if err != nil {
		return err
	}
	if s := out.Single; s != nil {
		if s.Zhao > 0 {
			fmt.Fprintf(w, "By Theorem 5 of the Fed-mv-PPCA paper (Zhao et al.) it would be %.6g.\n", s.Zhao)
		}
		proven := ""
		if !s.ClassicProven {
			proven = ", which is proven up to ε 1 only"
		}
		_, err = fmt.Fprintf(w, "By the classic formula it would be %.6g%s; that has a δ of %.4g.\n", s.Classic, proven,
			s.ClassicDelta)
	}
	if r := out.Rounds; r != nil {
		_, err = fmt.Fprintf(w, "Each release has ε %.4g at δ %g.\n"+
			"One joint clip and one Gaussian release a round would need a standard deviation of %.6g.\n",
			r.Each.Epsilon, r.Each.Delta, roundUp(r.Joint))
	}
	return err
}

// roundUp leaves six digits, never less noise than was needed.
func roundUp(noise float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(noise))-5)
	return math.Ceil(noise/unit) * unit
}
