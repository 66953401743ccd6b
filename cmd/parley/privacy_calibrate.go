package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"parley/privacy/account"
)

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
		_, err = fmt.Fprintf(w, "By the classic formula it would be %.6g%s; that has a δ of %.4g.\n", s.Classic, proven, s.ClassicDelta)
	}
	if r := out.Rounds; r != nil {
		_, err = fmt.Fprintf(w, "Each release has ε %.4g at δ %g.\n"+
			"One joint clip and one Gaussian release a round would need a standard deviation of %.6g.\n", r.Each.Epsilon, r.Each.Delta, roundUp(r.Joint))
	}
	return err
}

// roundUp leaves six digits, never less noise than was needed.
func roundUp(noise float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(noise))-5)
	return math.Ceil(noise/unit) * unit
}
