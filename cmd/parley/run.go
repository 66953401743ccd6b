package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/host"
	"parley/engine/local"
	"parley/federation/coordinator"
	"parley/figure"
	"parley/internal/files"
	"parley/method"
	"parley/problem"
	"parley/report"
	"parley/study"
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
			dir.Paper = methods.Paper(plan)
			folders := map[string]*report.Site{}
			for _, site := range plan.Sites {
				if folders[site], err = report.OpenSite(report.SiteIn(out, site), plan, site,
					binding.Summaries[site].Census.Hex()); err != nil {
					return err
				}
			}
			config := local.Config{Plan: plan, Methods: methods, Data: binding.Data, Summaries: binding.Summaries,
				Dir: out, Policy: binding.Policy, Stores: plan.Local.Stores, Observe: show.event}
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

func demoCommand() *cobra.Command {
	var dir, listen, websocket string
	var noServe bool
	var flags daemonFlags
	cmd := &cobra.Command{
		Use:   "demo PLAN",
		Short: "Try a study over a network on one machine",
		Long:  "Make a coordinator's folder and one for each site on this machine, and serve as the coordinator.",
		RunE: func(cmd *cobra.Command, a []string) error {
			plan, err := study.Load(a[0], methods)
			if err != nil {
				return err
			}
			f, err := demo(cmd, dir, plan, listen, websocket)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "In another terminal, for each of the sites, join and then serve:")
			for _, site := range plan.Sites {
				fmt.Fprintf(out, "  parley site join %s\n", problem.Shell(filepath.Join(dir, site+".invitation")))
			}
			if plan.Privacy.Secure() {
				fmt.Fprintf(out, "\nOnce all of them have joined, since the plan names their keys:\n  parley "+
					"coordinator submit %s %s\n", problem.Shell(f.Path), problem.Shell(a[0]))
			}
			if noServe {
				fmt.Fprintf(out, "\nBefore that, here:\n  parley coordinator serve %s\n", problem.Shell(f.Path))
				return nil
			}
			fmt.Fprintln(out)
			return serveCoordinator(cmd, f, flags)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "demo", "folder to make everything in")
	cmd.Flags().StringVar(&listen, "listen", "", "where the broker listens (default 127.0.0.1:4222, or another free "+
		"port)")
	cmd.Flags().StringVar(&websocket, "websocket", "", "where it listens for WebSocket (default 127.0.0.1:8443, or "+
		"another free port)")
	cmd.Flags().BoolVar(&noServe, "no-serve", false, "only make the folders, and do not serve")
	flags.add(cmd)
	return cmd
}

// demo makes the folders, or opens those that an earlier call has made.
func demo(cmd *cobra.Command, dir string, plan *study.Plan, listen, websocket string) (*coordinator.Folder, error) {
	path := filepath.Join(dir, "coordinator")
	f, err := coordinator.Open(path, methods)
	if err == nil {
		if _, fresh, err := f.Submit(plan); err != nil || !fresh {
			return f, err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "This folder has sites already; the plan was submitted to them.")
		return f, nil
	}
	if _, missing := os.Stat(filepath.Join(path, "coordinator.key")); !errors.Is(missing, fs.ErrNotExist) {
		return nil, err
	}
	binding, err := local.Bind(cmd.Context(), plan, nil)
	if err != nil {
		return nil, err
	}
	for _, site := range plan.Sites {
		if err := (&output{path: filepath.Join(dir, site, "policy.yaml"), flag: "--dir", fixed: true}).check(); err !=
			nil {
			return nil, err
		}
	}
	for _, site := range plan.Sites {
		if err := dataset.Write(cmd.Context(), filepath.Join(dir, site, "data"), binding.Data[site]); err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		text := fmt.Appendf(nil, demoPolicy, site)
		if plan.Local.Policy != "" {
			if text, err = os.ReadFile(plan.Local.Policy); err != nil {
				return nil, err
			}
		}
		if err := files.Write(filepath.Join(dir, site, "policy.yaml"), text); err != nil {
			return nil, err
		}
	}
	c := coordinator.Config{}
	for _, a := range []struct {
		to           *string
		given, first string
	}{{&c.Listen, listen, "127.0.0.1:4222"}, {&c.WebSocket, websocket, "127.0.0.1:8443"}} {
		if *a.to = a.given; a.given == "" {
			if *a.to, err = freeAddress(a.first); err != nil {
				return nil, err
			}
		}
	}
	if c.Hosts, err = defaultHosts(c.Listen, c.WebSocket); err != nil {
		return nil, err
	}
	if f, err = coordinator.Init(path, methods, c, coordinator.Account{}); err != nil {
		return nil, err
	}
	if !plan.Privacy.Secure() { // which names the keys of sites that have joined
		if _, _, err := f.Submit(plan); err != nil {
			return nil, err
		}
	}
	for _, site := range plan.Sites {
		if err := writeInvitation(f, site, filepath.Join(dir, site+".invitation"), 7*24*time.Hour, false); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s holds a coordinator and %d sites: plan %s, its data split among them, an "+
		"invitation for each.\n", dir, len(plan.Sites), plan.Name)
	return f, nil
}

// demoPolicy lets a demonstration run any plan: it protects nobody.
const demoPolicy = `# The policy of a site of a demonstration: it allows what simulations do, and
# protects nobody. For a policy to begin your own with: parley site policy init
policy: 1
site: %s
protection: optional
max_delta: 1
per_release: true
`

// freeAddress is the first, if nobody listens there, or another port of its host.
func freeAddress(first string) (string, error) {
	listener, err := net.Listen("tcp", first)
	if err != nil {
		host, _, _ := net.SplitHostPort(first)
		if listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", err
		}
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
