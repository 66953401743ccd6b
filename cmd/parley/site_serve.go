package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley/engine/wire"
	"parley/federation"
	"parley/federation/live"
	"parley/federation/site"
	"parley/problem"
)

func siteServeCommand() *cobra.Command {
	var flags daemonFlags
	var untilDone bool
	var copies site.Copies
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Answer the studies that the site approved",
		Long: "Answer approved studies until Ctrl-C or SIGTERM, through a proxy if HTTPS_PROXY names one. What is\n" +
			"under way continues at the next start.",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, a []string) error {
			if copies.Every < time.Second {
				return &usageError{errors.New("--copies-every takes a second or more")}
			}
			return flags.serve(cmd, f.Path, live.OfSite(f), siteGauges(f),
				func(log *slog.Logger, watch *monitor) func(context.Context) error {
					return (&site.Daemon{Folder: f, Again: flags.again, Log: log, Watch: watch, UntilDone: untilDone,
						Copies: copies}).Serve
				})
		}),
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&copies.Folder, "copies", "", "folder for copies of what the site must not lose, made as it "+
		"changes (default none)")
	cmd.Flags().DurationVar(&copies.Every, "copies-every", time.Hour,
		"the least time between two copies; the last seven stay")
	cmd.Flags().BoolVar(&untilDone, "until-done", false, "end when every study that was posted has ended here")
	return cmd
}

func siteStatusCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use: "status DIR", Short: "Show where the site stands with each study",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, _ []string) error {
			s, err := f.ReadStatus()
			if err != nil {
				return err
			}
			return as.object(cmd, s, func(w io.Writer) error {
				printSite(w, f.Path, s)
				return nil
			})
		}),
	}, "print it as one JSON object")
}

func printSite(w io.Writer, dir string, s site.Status) {
	fmt.Fprintln(w, siteLine(dir, s))
	for _, st := range s.Studies {
		line := st.State
		if !st.Since.IsZero() {
			line += " " + ago(st.Since)
		}
		fmt.Fprintf(w, "study %s (%.12s): %s\n", st.Name, st.Study, withText(line, st.Text))
	}
}

func siteWatchCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "watch DIR",
		Short: "Print what changes until every study has ended here",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, a []string) error {
			return watchSite(cmd.Context(), cmd.OutOrStdout(), f, as)
		}),
	}, "print one JSON object for each change of a study")
}

func watchSite(ctx context.Context, w io.Writer, f *site.Folder, as form) error {
	said := map[string]string{}
	say := func(key, line string) {
		if line != "" && said[key] != line {
			said[key] = line
			fmt.Fprintln(w, line)
		}
	}
	for {
		s, err := f.ReadStatus()
		if err != nil {
			return err
		}
		if !as.json {
			say("", siteLine(f.Path, s))
		}
		open := 0
		for _, st := range s.Studies {
			if !slices.Contains([]string{federation.Done, federation.Refused, federation.Withdrawn, federation.Closed},
				st.State) {
				open++
			}
			line := withText(fmt.Sprintf("study %s: %s", st.Name, st.State), st.Text)
			if as.json {
				data, err := json.Marshal(st)
				if err != nil {
					return err
				}
				line = string(data)
			}
			say(st.Study, line)
		}
		if open == 0 && len(s.Studies) > 0 {
			return nil
		}
		if err := wire.Pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
}

// siteLine says whether the site is served.
func siteLine(dir string, s site.Status) string {
	switch {
	case !s.Serving:
		return fmt.Sprintf("site %s: not serving. Start it with: parley site serve %s", s.Site, problem.Shell(dir))
	case s.Connected:
		return withText(fmt.Sprintf("site %s: serving, and connected", s.Site), s.Trouble)
	}
	return fmt.Sprintf("site %s: serving, and not connected: %s", s.Site, s.Trouble)
}

func sitePendingCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use: "pending DIR", Short: "List the studies that wait for a decision",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, _ []string) error {
			s, err := f.ReadStatus()
			if err != nil {
				return err
			}
			waiting := []site.StudyStatus{}
			for _, st := range s.Studies {
				if st.State == federation.Pending {
					waiting = append(waiting, st)
				}
			}
			return as.line(cmd, waiting, func(w io.Writer) error {
				for _, st := range waiting {
					name := st.Name
					if slices.ContainsFunc(s.Studies, func(o site.StudyStatus) bool {
						return o.Name == st.Name && o.Study != st.Study
					}) {
						name = st.Study[:12]
					}
					fmt.Fprintf(w, "study %s (%.12s): parley site show %s %s\n", st.Name, st.Study,
						problem.Shell(f.Path), name)
				}
				if len(waiting) == 0 {
					fmt.Fprintln(w, "no study waits for a decision")
				}
				return nil
			})
		}),
	}, "print them as JSON")
}

func siteResultsCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use: "results DIR [STUDY]", Short: "Print where the site's results are",
		Long: "Print where the site's results are, and ask the coordinator for those of a study that it did not send " +
			"along.",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, a []string) error {
			if len(a) > 1 {
				digest, err := f.Find(a[1])
				if err != nil {
					return err
				}
				if err := printResults(cmd, f, digest, as); err != nil {
					return err
				}
				return fetchResults(cmd, f, digest)
			}
			list, err := f.Studies()
			if err != nil {
				return err
			}
			found := 0
			for _, digest := range list {
				switch err := printResults(cmd, f, digest, as); {
				case err == nil:
					found++
				case !errors.Is(err, errNoResults):
					return err
				}
			}
			if found == 0 {
				return fmt.Errorf("no study has results here yet\n  hint: parley site status %s says where each stands",
					problem.Shell(a[0]))
			}
			return nil
		}),
	}, "print it as JSON")
}

// fetchResults has the daemon fetch what is missing of a study's results, and waits a little for it.
func fetchResults(cmd *cobra.Command, f *site.Folder, digest string) error {
	for began := time.Now(); ; {
		missing, err := f.Ask(digest)
		if err != nil || missing == "" {
			return err
		}
		if !f.Served() || time.Since(began) > 10*time.Second {
			fmt.Fprintf(cmd.ErrOrStderr(), "The coordinator is asked for %s, which come to shared/ there while both "+
				"ends serve.\n", missing)
			return nil
		}
		if err := wire.Pause(cmd.Context(), 300*time.Millisecond); err != nil {
			return err
		}
	}
}
