package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"parley/engine/host"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/problem"
	"parley/report"
)

func runCommand() *cobra.Command {
	var out string
	var as form
	cmd := &cobra.Command{
		Use:   "run PLAN",
		Short: "Run a study with every site in this process",
		Long: "Run a study with every site in this process, on the data that the plan's local section names.\n" +
			"After an interruption the same command continues it to the same model.",
		Annotations: map[string]string{resumes: "yes"},
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := checkFolder(out); err != nil {
				return err
			}
			ctx := cmd.Context()
			plan, cost, err := loadPlan(a[0])
			if err != nil {
				return err
			}
			show := newProgress(cmd)
			defer show.close()
			for _, l := range cost.Lines() {
				show.line("privacy: %s", l)
			}
			binding, err := local.Bind(ctx, plan, cost)
			if err != nil {
				return err
			}
			notes, err := methods.Notes(plan)
			if err != nil {
				return err
			}
			for _, note := range append(notes, binding.Notes...) {
				show.note(note)
			}
			if out == "" {
				digest, err := plan.Digest()
				if err != nil {
					return err
				}
				out = filepath.Join("results", plan.Name+"-"+digest.Short())
			}
			dir, err := report.OpenResults(out, plan, true, time.Now())
			if err != nil {
				return err
			}
			folders := map[string]*report.Site{}
			for _, site := range plan.Sites {
				if folders[site], err = report.OpenSite(report.SiteIn(out, site), plan, site, binding.Summaries[site].Census.Hex()); err != nil {
					return err
				}
			}
			config := local.Config{Plan: plan, Methods: methods, Data: binding.Data, Summaries: binding.Summaries, Dir: out, Policy: binding.Policy, Stores: plan.Local.Stores, Observe: show.event}
			outcome, err := local.Run(ctx, config)
			if err != nil {
				return err
			}
			sites, err := outcome.SiteReports(ctx)
			if err != nil {
				return err
			}
			for site, r := range sites {
				if err := folders[site].Write(r.Result, r.Ledger, binding.Policy); err != nil {
					return fmt.Errorf("site %s: %w", site, err)
				}
			}
			r, err := dir.Write(outcome.Outcome, time.Now())
			if err != nil {
				return err
			}
			show.close()
			return as.line(cmd, ran{dir.Path(), r.Numbers()}, func(w io.Writer) error {
				facts(w, r)
				siteVerdicts(w, plan.Sites, sites)
				_, err := fmt.Fprintf(w, "\nOpen %s\n", filepath.Join(dir.Path(), "report.html"))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for the results (default results/NAME-DIGEST)")
	return as.flag(cmd, "print the directory and the metrics as JSON")
}

// ran is what --json prints of a run, and of another model of what one released.
type ran struct {
	Results string         `json:"results"`
	Metrics map[string]any `json:"metrics"`
}

// facts says what a reader of a result should know first, and what speaks against relying on it.
func facts(w io.Writer, r *method.Result) {
	for _, f := range r.Headline {
		name := f.Name
		if utf8.RuneCountInString(name) > 22 {
			name += ":" // beyond the column
		}
		fmt.Fprintf(w, "%-22s %s\n", name, f.Value)
	}
	if says := r.Verdicts(); len(says) > 0 {
		fmt.Fprintf(w, "\nBefore you rely on this result:\n")
		for _, v := range says {
			fmt.Fprintf(w, "- %s\n", v)
		}
	}
}

// siteVerdicts tells someone who has the data of all sites what only the sites' own reports say
// against relying on the result. What they say of the sites' rows was noted before the run, and is
// not said again.
func siteVerdicts(w io.Writer, names []string, reports map[string]*local.SiteReport) {
	var says []string // in the order in which they are said first
	at := map[string][]string{}
	for _, name := range names {
		if r := reports[name]; r != nil {
			for _, w := range figure.Warnings(r.Result.Sections) {
				v := w.Title
				if w.Section == host.DoubtsID {
					v = "There is something to check in the data, as noted before the first round"
				}
				if at[v] == nil {
					says = append(says, v)
				}
				if !slices.Contains(at[v], name) {
					at[v] = append(at[v], name)
				}
			}
		}
	}
	if says == nil {
		return
	}
	fmt.Fprintf(w, "\nIn reports of single sites, which only they see:\n")
	for _, v := range says {
		fmt.Fprintf(w, "- %s (%s)\n", v, problem.Names(at[v]))
	}
}
