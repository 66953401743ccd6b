package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/federation/coordinator"
	"parley/federation/live"
	"parley/internal/files"
	"parley/problem"
)

func coordinatorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "coordinator", Short: "Coordinate studies over a network"}
	cmd.AddCommand(coordinatorInitCommand(), coordinatorServeCommand(), coordinatorInviteCommand(),
		coordinatorSitesCommand(), coordinatorRevokeCommand(),
		coordinatorSubmitCommand(), coordinatorStatusCommand(), coordinatorWatchCommand(), coordinatorDropCommand(),
		coordinatorAbortCommand(),
		coordinatorResultsCommand(), coordinatorRebuildCommand(), coordinatorDoctorCommand(),
		logCommand("the coordinator"))
	return cmd
}

// placeFlags say where a coordinator is reached.
type placeFlags struct {
	config  coordinator.Config
	account string
	id      string
	roots   string
}

func (p *placeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.config.Listen, "listen", ":4222", "where the broker listens with TLS; empty for nowhere")
	f.StringVar(&p.config.WebSocket, "websocket", ":8443", "where it listens for WebSocket with TLS; empty for nowhere")
	f.StringSliceVar(&p.config.Hosts, "host", nil, "names and addresses of this machine for the sites (default its "+
		"host name)")
	f.StringSliceVar(&p.config.NATS, "nats", nil, "servers of a NATS cluster, in place of the broker in this program")
	f.StringVar(&p.account, "account", "", "with --nats: file with the seed of the account")
	f.StringVar(&p.id, "account-id", "", "with the seed of a signing key: the account's public key")
	f.StringVar(&p.roots, "ca", "", "with --nats: PEM file of the cluster's authorities (default the system's)")
	f.IntVar(&p.config.Replicas, "replicas", 3, "with --nats: number of servers that keep each value")
}

// complete reads the files that the flags name.
func (p *placeFlags) complete() (account coordinator.Account, err error) {
	c := &p.config
	if len(c.NATS) == 0 {
		c.Replicas = 0
		if p.account != "" || p.id != "" || p.roots != "" {
			return account, &usageError{fmt.Errorf("--account, --account-id and --ca belong to --nats")}
		}
		if len(c.Hosts) == 0 {
			c.Hosts, err = defaultHosts(c.Listen, c.WebSocket)
		}
		return account, err
	}
	c.Listen, c.WebSocket, c.Hosts = "", "", nil
	if p.roots != "" {
		data, err := os.ReadFile(p.roots)
		if err != nil {
			return account, err
		}
		c.Roots = string(data)
	}
	if p.account == "" {
		return account, nil
	}
	data, err := os.ReadFile(p.account)
	return coordinator.Account{Seed: []byte(strings.TrimSpace(string(data))), ID: p.id}, err
}

// defaultHosts is where a machine is reached that was not told: at the addresses
// that it listens at, or by its name.
func defaultHosts(addresses ...string) ([]string, error) {
	for _, a := range addresses {
		if host, _, err := net.SplitHostPort(a); err == nil && host != "" && host != "0.0.0.0" && host != "::" {
			return []string{host}, nil
		}
	}
	name, err := os.Hostname()
	return []string{name}, err
}

func coordinatorInitCommand() *cobra.Command {
	var p placeFlags
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a coordinator's folder and its keys",
		Long:  "Make a coordinator's folder and its keys. Keep a secret copy of its file coordinator.key.",
		RunE: func(cmd *cobra.Command, a []string) error {
			account, err := p.complete()
			if err != nil {
				return err
			}
			if len(p.config.NATS) > 0 && account.Seed == nil {
				return &usageError{fmt.Errorf("--nats needs --account\n  hint: the people who run the cluster make " +
					"an account with JetStream for parley, and its seed")}
			}
			f, err := coordinator.Init(a[0], methods, p.config, account)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s is a coordinator's folder now; sites will connect to %s\n", f.Path,
				strings.Join(f.Config.URLs(), " or "))
			fmt.Fprintf(out, "Keep a copy of %s where nobody else can read it.\n\n",
				filepath.Join(f.Path, "coordinator.key"))
			fmt.Fprintf(out, "Next:\n  parley coordinator invite %[1]s SITE        (for each site)\n  parley "+
				"coordinator submit %[1]s PLAN\n  parley coordinator serve %[1]s\n", problem.Shell(f.Path))
			return nil
		},
	}
	p.add(cmd)
	return cmd
}

func coordinatorServeCommand() *cobra.Command {
	var flags daemonFlags
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve every study",
		Long:  "Serve every study until Ctrl-C or SIGTERM. What is under way continues at the next start.",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, _ []string) error {
			return serveCoordinator(cmd, f, flags)
		}),
	}
	flags.add(cmd)
	return cmd
}

func serveCoordinator(cmd *cobra.Command, f *coordinator.Folder, flags daemonFlags) error {
	// What the broker has read or written lately is kept for a while, and what it has dropped until it is collected:
	// with 200 sites a third of a gigabyte without a limit. Above the limit it is collected more often; half as much
	// again as is in use, as of long releases, stays below it. GOMEMLIMIT sets another.
	if os.Getenv("GOMEMLIMIT") == "" {
		go func() {
			inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			for tick := time.Tick(10 * time.Second); cmd.Context().Err() == nil; <-tick {
				if r, err := f.Registry(); err == nil {
					metrics.Read(inUse)
					debug.SetMemoryLimit(max(104<<20+int64(len(r.Members))*100<<10, int64(inUse[0].Value.Uint64()/2*3)))
				}
			}
		}()
	}
	return flags.serve(cmd, f.Path, live.OfCoordinator(f), coordinatorGauges(f),
		func(log *slog.Logger, watch *monitor) func(context.Context) error {
			return (&coordinator.Daemon{Folder: f, Again: flags.again, Log: log, Watch: watch}).Serve
		})
}

func coordinatorInviteCommand() *cobra.Command {
	var out string
	var expires time.Duration
	var replace bool
	cmd := &cobra.Command{
		Use:   "invite DIR SITE",
		Short: "Write an invitation for a site",
		Long:  "Write an invitation, with which a site joins once. Send it as you would send a password.",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			if out == "" {
				out = a[1] + ".invitation"
			}
			if err := writeInvitation(f, a[1], out, expires, replace); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Send %s to the people of site %s; it works once, within %s. They use it "+
				"with:\n  parley site join %s\n", out, a[1], expires, problem.Shell(filepath.Base(out)))
			return nil
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write, which must not exist (default SITE.invitation)")
	cmd.Flags().DurationVar(&expires, "expires", 7*24*time.Hour, "how long it is valid")
	cmd.Flags().BoolVar(&replace, "replace", false, "for a site that has joined: revoke its old keys when the "+
		"invitation is used")
	return cmd
}

func writeInvitation(f *coordinator.Folder, site, out string, expires time.Duration, replace bool) error {
	if expires <= 0 {
		return &usageError{fmt.Errorf("--expires %s has passed already", expires)}
	}
	if err := (&output{path: out, fixed: true}).check(); err != nil {
		return err
	}
	i, err := f.Invite(site, time.Now().Add(expires), replace)
	if err != nil {
		return err
	}
	text, err := i.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o700); err != nil {
		return err
	}
	return files.WriteOwn(out, text)
}

func coordinatorSitesCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "sites DIR",
		Short: "List who was invited and who has joined",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			s, err := f.ReadStatus()
			if err != nil {
				return err
			}
			r, err := f.Registry()
			if err != nil {
				return err
			}
			found := struct {
				Invitations []coordinator.Invited    `json:"invitations"`
				Members     []coordinator.Member     `json:"members"`
				Seen        []coordinator.SiteStatus `json:"seen"`
			}{r.Invitations, r.Members, s.Sites}
			return as.object(cmd, found, func(w io.Writer) error {
				printSites(w, r, s)
				return nil
			})
		}),
	}, "print them as one JSON object")
}

// printSites lists who is invited and has not come, and then who has joined.
func printSites(w io.Writer, r coordinator.Registry, s coordinator.Status) {
	for _, i := range r.Invitations {
		if i.UsedBy == "" {
			fmt.Fprintf(w, "%-20s invited, until %s\n", i.Site, i.Expires.Local().Format(time.DateTime))
		}
	}
	for _, m := range r.Members {
		line := "joined " + m.Joined.Local().Format(time.DateTime)
		if m.Revoked {
			line = "revoked"
		}
		for _, seen := range s.Sites {
			if seen.Site == m.Site && seen.Program != nil {
				line += fmt.Sprintf("; parley %s on %s, last heard of %s", seen.Program.Version, seen.Program.Platform,
					seen.LastSeen.Local().Format(time.DateTime))
			}
		}
		fmt.Fprintf(w, "%-20s %s\n", m.Site, line)
	}
}

func coordinatorRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke DIR SITE",
		Short: "Refuse a site's keys, and withdraw its invitations",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			user, err := f.Revoke(a[1])
			if err != nil {
				return err
			}
			if len(f.Config.NATS) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "what site %s signs is passed over from now on. The cluster is not "+
					"told: its credentials can connect until they\nexpire, within %d days, unless the cluster's "+
					"people revoke them: %s\n", a[1], coordinator.ForeignDays, user)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "site %s is disconnected and refused from now on\n", a[1])
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Copy %s to where you keep it again: it holds the revocation.\n",
				filepath.Join(f.Path, "coordinator.key"))
			return nil
		}),
	}
}

func coordinatorSubmitCommand() *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "submit DIR PLAN",
		Short: "Submit a study",
		Long:  "Submit a study. The same plan twice is one study, and one that has stopped continues.",
		RunE: inCoordinator(func(cmd *cobra.Command, f *coordinator.Folder, a []string) error {
			plan, cost, err := loadPlan(a[1])
			if err != nil {
				return err
			}
			notes, err := methods.Notes(plan)
			if err != nil {
				return err
			}
			digest, fresh, err := f.Submit(plan)
			if err != nil {
				return err
			}
			stopped, err := f.Stopped(digest)
			if err == nil && stopped {
				err = f.Give(digest, coordinator.Order{Again: true})
			}
			if err != nil {
				return err
			}
			submitted := struct {
				Study string   `json:"study"`
				Fresh bool     `json:"fresh"`
				Again bool     `json:"again"` // it had stopped, and is tried again
				Notes []string `json:"notes"` // what to know of the plan
			}{digest, fresh, stopped, notes.Lines()}
			return as.line(cmd, submitted, func(w io.Writer) error {
				was := "was submitted"
				switch {
				case stopped:
					was = "had stopped, and goes on"
				case !fresh:
					was = "had been submitted already"
				}
				printLines(w, "note:", submitted.Notes)
				fmt.Fprintf(w, "study %s %s; digest %s\n", plan.Name, was, digest)
				printLines(w, "privacy:", cost.Lines())
				return nil
			})
		}),
	}, "print the digest as JSON")
}
