package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley/judge/choose"
)

func modelRefitCommand() *cobra.Command {
	var latent int
	var out string
	var as form
	cmd := &cobra.Command{
		Use:   "refit RESULTS --latent Q --out DIR",
		Short: "Make another model of what the sites of a private study released",
		Long: "Refit makes the model that a private study would have had with another number of factors,\n" +
			"from what its sites have released: without data, without asking a site, and at no further\n" +
			"cost of privacy. RESULTS is the results directory of the study, or of another refit of it.\n" +
			"DIR gets what a run's directory has, but for the sites' own pages.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if latent < 1 || latent > maxCount {
				return &usageError{fmt.Errorf("--latent %d: from 1 to %d", latent, maxCount)}
			}
			if err := checkFolder(out); err != nil {
				return err
			}
			s, err := choose.OpenStudy(a[0], methods)
			if err != nil {
				return err
			}
			if err := s.ClaimRefit(out); err != nil {
				return err
			}
			r, err := s.Method.Refit(s.Plan, s.Released, latent)
			if err != nil {
				return err
			}
			if err := s.WriteRefit(out, "latent", latent, r, time.Now()); err != nil {
				return err
			}
			return as.line(cmd, ran{out, r.Numbers()}, func(w io.Writer) error {
				for _, f := range r.Headline {
					fmt.Fprintf(w, "%-22s %s\n", f.Name, f.Value)
				}
				for _, line := range s.Origin.Guarantee {
					fmt.Fprintf(w, "%-22s nothing is added to %s\n", "privacy", line)
				}
				_, err := fmt.Fprintf(w, "\nOpen %s\n", filepath.Join(out, "report.html"))
				return err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&latent, "latent", 0, "number of factors")
	f.StringVar(&out, "out", "", "directory for the model and its report")
	as.flag(cmd, "print where the results are, and the metrics, as JSON")
	cmd.MarkFlagRequired("latent")
	cmd.MarkFlagRequired("out")
	return cmd
}
