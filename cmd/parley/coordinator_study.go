package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/engine/wire"
	"parley/federation/coordinator"
	"parley/problem"
	"parley/study"
)

func coordinatorStatusCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "status DIR",
		Short: "Show where studies and sites stand",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			s, err := f.ReadStatus()
			if err != nil {
				return err
			}
			return as.object(cmd, s, func(w io.Writer) error {
				printCoordinator(w, f.Path, s)
				return nil
			})
		}),
	}, "print it as one JSON object")
}

func printCoordinator(w io.Writer, dir string, s coordinator.Status) {
	if s.Serving {
		fmt.Fprintf(w, "serving; broker: %s\n", s.Broker)
	} else {
		fmt.Fprintf(w, "not serving; what follows is how it was left. Start it with: parley coordinator serve %s\n",
			problem.Shell(dir))
	}
	for _, site := range s.Sites {
		line := site.State
		if site.LastSeen != nil {
			line += fmt.Sprintf("; parley %s on %s, last heard of %s ago", site.Program.Version, site.Program.Platform,
				time.Since(*site.LastSeen).Round(time.Second))
		}
		fmt.Fprintf(w, "site %-20s %s\n", site.Site, withText(line, site.Text))
	}
	for _, st := range s.Studies {
		fmt.Fprintf(w, "\nstudy %s (%.12s), method %s: %s\n", st.Name, st.Study, st.Method, studyLine(st))
		for _, x := range st.Sites {
			fmt.Fprintf(w, "  %-20s %s\n", x.Site, standingLine(x))
		}
	}
}

func studyLine(st coordinator.StudyStatus) string {
	line := st.State
	if st.State == coordinator.Running && st.Of > 0 {
		line += fmt.Sprintf(", round %d, step %d of %d", st.Round, st.Progress, st.Of)
	}
	return withText(line, st.Text)
}

// withText is a state with what there is to say of it.
func withText(state, text string) string {
	if text == "" {
		return state
	}
	return state + ": " + text
}

func standingLine(x coordinator.StandingState) string {
	line := x.State
	if x.Since != nil {
		line += " " + ago(*x.Since)
	}
	return withText(line, x.Text)
}

func coordinatorWatchCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "watch DIR [STUDY]",
		Short: "Print what changes until a study ends",
		Long:  "Print what changes until the study, or every study, ends. Exit code 1 if one has stopped.",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			var only string
			var err error
			if len(a) > 1 {
				only, err = f.Find(a[1])
			}
			if err != nil {
				return err
			}
			return watchStudies(cmd.Context(), cmd.OutOrStdout(), f, only, as)
		}),
	}, "print one JSON object for each change of a study")
}

// watchStudies prints changes until the studies have ended.
func watchStudies(ctx context.Context, w io.Writer, f *coordinator.Folder, only string, as form) error {
	said := map[string]string{}
	serving := true
	say := func(key, line string) {
		if said[key] != line {
			said[key] = line
			fmt.Fprintln(w, line)
		}
	}
	for {
		s, err := f.ReadStatus()
		if err != nil {
			return err
		}
		if !s.Serving && serving && !as.json {
			fmt.Fprintf(w, "nobody serves %s; waiting for: parley coordinator serve %s\n", f.Path,
				problem.Shell(f.Path))
		}
		serving = s.Serving
		open, stopped := 0, []string{}
		digests, err := f.Studies()
		if err != nil {
			return err
		}
		for _, digest := range digests {
			if only != "" && digest != only {
				continue
			}
			i := slices.IndexFunc(s.Studies, func(st coordinator.StudyStatus) bool { return st.Study == digest })
			if i < 0 || s.Studies[i].Name == "" { // its plan has not been read yet
				open++
				continue
			}
			st := s.Studies[i]
			switch st.State {
			case coordinator.Ended:
			case coordinator.Stopped:
				if again, err := triedAgain(f, st); err != nil {
					return err
				} else if again {
					open++
					continue
				}
				stopped = append(stopped, fmt.Sprintf("study %s has stopped: %s", st.Name, st.Text))
			default:
				open++
			}
			if as.json {
				line, err := json.Marshal(st)
				if err != nil {
					return err
				}
				say(digest, string(line))
				continue
			}
			for _, x := range st.Sites {
				say(digest+x.Site, fmt.Sprintf("%s: site %s %s", st.Name, x.Site, withText(x.State, x.Text)))
			}
			say(digest, st.Name+": "+studyLine(st))
		}
		if open == 0 && len(digests) > 0 {
			if len(stopped) > 0 {
				return fmt.Errorf("%s", strings.Join(stopped, "\n"))
			}
			return nil
		}
		if err := wire.Pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
}

// triedAgain says whether a study that has stopped is wanted again, which its status
// does not tell yet.
func triedAgain(f *coordinator.Folder, st coordinator.StudyStatus) (bool, error) {
	orders, err := f.Orders(st.Study)
	return slices.ContainsFunc(orders, func(o coordinator.Order) bool { return o.Again && !o.At.Before(st.Since) }), err
}

// order gives the daemon a person's word about a study.
func order(use, short, long string, make func(a []string) coordinator.Order, done string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: inCoordinator(ofStudy(func(cmd *cobra.Command, f *coordinator.Folder, digest string, a []string) error {
			plan, err := f.Plan(digest)
			if err != nil {
				return err
			}
			o := make(a)
			if o.Drop != "" && !slices.Contains(plan.Sites, o.Drop) {
				return fmt.Errorf("%s is not a site of study %s\n  hint: one of %s", o.Drop, plan.Name,
					problem.Names(plan.Sites))
			}
			if err := f.Give(digest, o); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), done+"\n", plan.Name)
			if !f.Served() {
				fmt.Fprintln(cmd.OutOrStdout(), "Nobody serves the folder: it is done as soon as somebody does.")
			}
			return nil
		})),
	}
}

func coordinatorDropCommand() *cobra.Command {
	return order("drop DIR STUDY SITE", "Let a study go on without a site",
		"Let a study go on without a site, whose contributions stay.",
		func(a []string) coordinator.Order { return coordinator.Order{Drop: a[2]} }, "the site leaves study %s")
}

func coordinatorAbortCommand() *cobra.Command {
	return order("abort DIR STUDY", "End a study without a result",
		"End a study for good, without a result. What sites have released stays charged.",
		func([]string) coordinator.Order { return coordinator.Order{Abort: true} }, "study %s is aborted")
}

func coordinatorResultsCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "results DIR STUDY",
		Short: "Print where the results of a study are",
		RunE: inCoordinator(ofStudy(func(cmd *cobra.Command, f *coordinator.Folder, digest string, a []string) error {
			return printResults(cmd, f, digest, as)
		})),
	}, "print it as JSON")
}

func coordinatorRebuildCommand() *cobra.Command {
	var p placeFlags
	var key string
	cmd := &cobra.Command{
		Use:   "rebuild DIR --key coordinator.key PLAN...",
		Short: "Make a lost coordinator's folder again",
		Long: "Make a lost coordinator's folder again from the copy of coordinator.key and its plans, with the\n" +
			"same addresses. Sites reconnect, and nothing is charged again.",
		RunE: func(cmd *cobra.Command, a []string) error {
			if _, err := p.complete(); err != nil {
				return err
			}
			var plans []*study.Plan
			for _, file := range a[1:] {
				plan, err := study.Load(file, methods)
				if err != nil {
					return err
				}
				plans = append(plans, plan)
			}
			f, err := coordinator.Rebuild(a[0], key, methods, p.config, plans)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is there again. Every site of a plan is asked for the plan's history: "+
				"let the study go on without one that\ncannot answer with: parley coordinator drop %[2]s STUDY "+
				"SITE\n\nNext:\n  parley coordinator serve %[2]s\n", f.Path, problem.Shell(f.Path))
			return nil
		},
	}
	p.add(cmd)
	cmd.Flags().StringVar(&key, "key", "", "the copy of coordinator.key")
	cmd.MarkFlagRequired("key")
	return cmd
}
